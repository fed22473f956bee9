#include "base/boxed.h"

#include <gtest/gtest.h>

#include <string>

namespace gpuassay {
namespace {

TEST(Boxed, IsAbsentUntilItIsGiven) {
  Boxed<std::string> box;
  EXPECT_FALSE(box.has_value());
  box = "text";
  ASSERT_TRUE(box.has_value());
  EXPECT_EQ(*box, "text");
  EXPECT_EQ(box->size(), 4U);
  box.reset();
  EXPECT_FALSE(box.has_value());
  EXPECT_EQ(box.emplace(), "");
}

TEST(Boxed, IsCopiedByValue) {
  Boxed<std::string> box = std::string("one");
  Boxed<std::string> copy = box;
  *copy = "two";
  EXPECT_EQ(*box, "one");
  box = copy;
  EXPECT_EQ(*box, "two");
  box = Boxed<std::string>();
  EXPECT_FALSE(box.has_value());
  EXPECT_EQ(*copy, "two");
}

TEST(Boxed, IsComparedByValue) {
  const Boxed<std::string> none;
  EXPECT_EQ(none, Boxed<std::string>());
  EXPECT_EQ(Boxed<std::string>(std::string("a")), Boxed<std::string>(std::string("a")));
  EXPECT_FALSE(Boxed<std::string>(std::string("a")) == Boxed<std::string>(std::string("b")));
  EXPECT_FALSE(Boxed<std::string>(std::string("a")) == none);
}

}  // namespace
}  // namespace gpuassay
