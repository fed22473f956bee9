#include "cli/table.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({{"GPU", Table::Align::kRight}, {"Name"}, {"Power", Table::Align::kRight}});
  table.Add({{"0"}, {"T4"}, {"27 W"}});
  table.Add({{"10"}, {"H100"}, {"320 W"}});
  EXPECT_EQ(table.Render(false),
            "GPU  Name  Power\n"
            "  0  T4     27 W\n"
            " 10  H100  320 W\n");
}

TEST(Table, LinesHaveNoSpacesAtTheirEnd) {
  Table table({{"A"}, {"B"}});
  table.Add({{"x"}, {""}});
  EXPECT_EQ(table.Render(false), "A  B\nx\n");
}

TEST(Table, ALongTextIsCutWithAMark) {
  Table table({{"Name", Table::Align::kLeft, 4}});
  table.Add({{"python3"}});
  table.Add({{"four"}});
  EXPECT_EQ(table.Render(false), "Name\npyt~\nfour\n");
}

TEST(Table, CountsCharactersNotBytes) {
  Table table({{"N", Table::Align::kLeft, 3}, {"x"}});
  table.Add({{"äöü"}, {"1"}});
  table.Add({{"äöüß"}, {"2"}});
  EXPECT_EQ(table.Render(false), "N    x\näöü  1\näö~  2\n");
}

TEST(Table, ControlCharactersCannotReachTheTerminal) {
  Table table({{"Name"}});
  table.Add({{"a\x1b[31m\n"}});
  EXPECT_EQ(table.Render(false), "Name\na?[31m?\n");
}

TEST(Table, ColourDoesNotChangeTheWidths) {
  Table table({{"A"}, {"B"}});
  table.Add({{"1", Colour::kRed}, {"2"}});
  EXPECT_EQ(table.Render(true), "\x1b[2mA\x1b[0m  \x1b[2mB\x1b[0m\n\x1b[31m1\x1b[0m  2\n");
}

}  // namespace
}  // namespace gpuassay
