#include "agent/frame.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

TEST(FrameReader, GivesFramesOnceTheyAreWhole) {
  const std::string bytes = FrameHeader(FrameKind::kSnapshot, 3) + "abc" +
                            FrameHeader(FrameKind::kFailure, 0) +
                            FrameHeader(FrameKind::kSnapshot, 300) + std::string(300, 'x');
  FrameReader reader;
  std::string seen;
  for (const char byte : bytes) {
    reader.Append(std::string_view(&byte, 1));
    for (;;) {
      Result<std::optional<Frame>> frame = reader.Next();
      ASSERT_TRUE(frame.has_value());
      if (!frame->has_value()) break;
      seen += static_cast<char>((*frame)->kind) + std::to_string((*frame)->payload.size()) + " ";
    }
  }
  EXPECT_EQ(seen, "S3 E0 S300 ");
}

TEST(FrameReader, RefusesAnUnknownKindAndAnAbsurdLength) {
  FrameReader unknown;
  unknown.Append("X1234");
  EXPECT_EQ(unknown.Next().error().what, "unknown frame kind 88");
  FrameReader absurd;
  absurd.Append(std::string("S\xFF\xFF\xFF\xFF", 5));
  EXPECT_EQ(absurd.Next().error().what, "frame of 4294967295 bytes");
}

}  // namespace
}  // namespace gpuassay
