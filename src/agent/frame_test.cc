#include "agent/frame.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpuassay {
namespace {

std::string FrameOf(FrameKind kind, const std::string& payload) {
  std::string frame = std::string(kFrameHeaderBytes, '\0') + payload;
  FinishFrame(kind, frame);
  return frame;
}

void Give(FrameReader& reader, std::string_view bytes) {
  std::ranges::copy(bytes, reader.Space(bytes.size()).begin());
  reader.Filled(bytes.size());
}

TEST(FinishFrame, WritesKindAndLengthInLittleEndianOrder) {
  EXPECT_EQ(FrameOf(FrameKind::kSnapshot, "abc"), std::string("S\3\0\0\0abc", 8));
  EXPECT_EQ(FrameOf(FrameKind::kFailure, std::string(300, 'x')).substr(0, 5),
            std::string("E\x2C\1\0\0", 5));
}

TEST(FrameReader, GivesFramesOnceTheyAreWhole) {
  const std::string bytes = FrameOf(FrameKind::kSnapshot, "abc") +
                            FrameOf(FrameKind::kFailure, "") +
                            FrameOf(FrameKind::kSnapshot, std::string(300, 'x'));
  for (const std::size_t piece : {1U, 2U, 7U, 100U, 1000U}) {
    FrameReader reader;
    std::string seen;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      Give(reader, std::string_view(bytes).substr(at, piece));
      for (;;) {
        const Result<std::optional<Frame>> frame = reader.Next();
        ASSERT_TRUE(frame.has_value());
        if (!frame->has_value()) break;
        seen += static_cast<char>((*frame)->kind);
        seen += (*frame)->payload.size() == 3 ? std::string((*frame)->payload)
                                              : std::to_string((*frame)->payload.size());
        seen += ' ';
      }
    }
    EXPECT_EQ(seen, "Sabc E0 S300 ") << piece;
  }
}

TEST(FrameReader, RefusesAnUnknownKindAndAnAbsurdLength) {
  FrameReader unknown;
  Give(unknown, "X1234");
  EXPECT_EQ(unknown.Next().error().what, "unknown frame kind 88");
  FrameReader absurd;
  Give(absurd, std::string("S\xFF\xFF\xFF\xFF", 5));
  EXPECT_EQ(absurd.Next().error().what, "frame of 4294967295 bytes");
}

TEST(FrameReader, ForgetsEverythingWhenCleared) {
  FrameReader reader;
  Give(reader, "X1234");
  reader.Clear();
  Give(reader, FrameOf(FrameKind::kFailure, "why"));
  EXPECT_EQ((*reader.Next())->payload, "why");
}

}  // namespace
}  // namespace gpuassay
