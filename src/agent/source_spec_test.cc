#include "agent/source_spec.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

TEST(SourceSpec, NamesEachKindOfSource) {
  EXPECT_EQ(ParseSourceSpec("nvml")->kind, SourceSpec::Kind::kNvml);
  EXPECT_EQ(ParseSourceSpec("nvml=/opt/libnvidia-ml.so.1")->argument, "/opt/libnvidia-ml.so.1");
  EXPECT_EQ(ParseSourceSpec("simulator=a=b.yaml")->argument, "a=b.yaml");
  EXPECT_EQ(ParseSourceSpec("replay=x.rec")->kind, SourceSpec::Kind::kReplay);
}

TEST(SourceSpec, IsWrittenAsItWasRead) {
  for (const char* text : {"nvml", "nvml=/x.so", "simulator=a.yaml", "replay=b"}) {
    EXPECT_EQ(SourceSpecText(*ParseSourceSpec(text)), text);
  }
}

TEST(SourceSpec, RefusesWhatIsNoSource) {
  EXPECT_EQ(ParseSourceSpec("nmvl").error().what,
            "source 'nmvl' is none of nvml[=LIBRARY], simulator=SCENARIO, replay=FILE");
  EXPECT_EQ(ParseSourceSpec("simulator").error().what,
            "source 'simulator': name the file, simulator=FILE");
  EXPECT_EQ(ParseSourceSpec("replay=").error().what,
            "source 'replay=': name the file, replay=FILE");
  EXPECT_EQ(ParseSourceSpec("nvml=").error().what,
            "source 'nvml=': name the library, or write just nvml");
}

}  // namespace
}  // namespace gpuassay
