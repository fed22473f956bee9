#include "base/plain_text.h"

#include <gtest/gtest.h>

#include <string>

namespace gpuassay {
namespace {

TEST(PlainText, AMessageStaysOnOneLine) {
  EXPECT_EQ(OneLine("no\nsuch\r\nfile\t\x7f."), "no such  file  .");
  EXPECT_EQ(OneLine(std::string("a\0b", 3)), "a b");
  EXPECT_EQ(OneLine(""), "");
}

TEST(PlainText, ANameCannotMoveTheCursor) { EXPECT_EQ(Printable("train\x1b[2J"), "train?[2J"); }

TEST(PlainText, CharactersBeyondAsciiStay) {
  EXPECT_EQ(OneLine("Grüße, 東京"), "Grüße, 東京");
  EXPECT_EQ(Printable("Grüße, 東京"), "Grüße, 東京");
}

}  // namespace
}  // namespace gpuassay
