#include "cli/footnotes.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

TEST(Footnotes, NothingMissingSaysNothing) { EXPECT_EQ(Footnotes().Render(), ""); }

TEST(Footnotes, ColumnsOfOneReasonStandInOneLineWithTheirGpus) {
  Footnotes notes;
  notes.Add(Missing::kGpuLost, "Temp", 7);
  for (std::uint32_t gpu = 0; gpu < 4; ++gpu) notes.Add(Missing::kGpuLost, "Fan", gpu);
  notes.Add(Missing::kGpuLost, "Util", 7);
  EXPECT_EQ(notes.Render(),
            "-   gpu lost: Temp, Util (GPU 7); Fan (GPU 0-3): the GPU has fallen off the bus; see "
            "the kernel log,\n"
            "    then reset or reboot.\n");
}

TEST(Ranges, AreShort) {
  EXPECT_EQ(Ranges({3}), "3");
  EXPECT_EQ(Ranges({0, 1, 2, 3, 5, 7, 8}), "0-3,5,7-8");
}

TEST(Wrapped, BreaksAtSpacesAndIndents) {
  EXPECT_EQ(Wrapped("one two three", 8, 2), "one two\n  three");
  EXPECT_EQ(Wrapped("-   a bb", 6, 4), "-   a\n    bb");
  EXPECT_EQ(Wrapped("unbreakable", 4, 2), "unbreakable");
  EXPECT_EQ(Wrapped("", 4, 2), "");
}

}  // namespace
}  // namespace gpuassay
