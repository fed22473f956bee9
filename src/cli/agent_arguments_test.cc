#include "cli/agent_arguments.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string ErrorOf(const AgentArguments& arguments) {
  const Result<AgentOptions> options = MakeAgentOptions(arguments);
  return options ? "" : options.error().what;
}

TEST(AgentArguments, DefaultsReadTheDriverEverySecondAndServePort9400) {
  const Result<AgentOptions> options = MakeAgentOptions({.hostname = "node-1"});
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->server.address, ":9400");
  EXPECT_EQ(options->server.exposition.dcgm, DcgmNames::k48);
  EXPECT_EQ(options->supervisor.worker.source.kind, SourceSpec::Kind::kNvml);
  EXPECT_EQ(options->supervisor.worker.interval, seconds(1));
  EXPECT_EQ(options->supervisor.worker.hostname, "node-1");
  EXPECT_EQ(options->supervisor.policy.hang_after, seconds(3));
  EXPECT_EQ(options->supervisor.policy.replace_after, seconds(20));
  EXPECT_EQ(options->supervisor.stale_after, seconds(60));
}

TEST(AgentArguments, ABareIntervalIsInMillisecondsAsInDcgmExporter) {
  EXPECT_EQ(MakeAgentOptions({.collect_interval = "30000"})->supervisor.worker.interval,
            seconds(30));
  EXPECT_EQ(MakeAgentOptions({.collect_interval = "100ms"})->supervisor.worker.interval,
            milliseconds(100));
}

TEST(AgentArguments, PatienceGrowsWithTheInterval) {
  const Result<AgentOptions> options = MakeAgentOptions({.collect_interval = "30s"});
  EXPECT_EQ(options->supervisor.policy.hang_after, seconds(90));
  EXPECT_EQ(options->supervisor.policy.replace_after, seconds(180));
}

TEST(AgentArguments, EachBadValueIsNamed) {
  EXPECT_EQ(ErrorOf({.collect_interval = "99ms"}),
            "--collect-interval: '99ms' is not between 100ms and 5m");
  EXPECT_EQ(ErrorOf({.collect_interval = "301s"}),
            "--collect-interval: '301s' is not between 100ms and 5m");
  EXPECT_EQ(ErrorOf({.dcgm_names = "4.7"}), "--dcgm-names: '4.7' is none of 4.8, 4.9, off");
  EXPECT_EQ(ErrorOf({.log_level = "loud"}),
            "--log-level: 'loud' is none of error, warning, info, debug");
  EXPECT_EQ(ErrorOf({.stale_after = "x"}),
            "--stale-after: 'x' is not a duration; write for example 500ms, 1s, 30m or 2h");
}

TEST(AgentArguments, TimesThatContradictEachOtherAreRefused) {
  EXPECT_EQ(ErrorOf({.hang_after = "1s"}),
            "--hang-after 1s must be longer than --collect-interval 1s and not longer than "
            "--replace-after 20s");
  EXPECT_EQ(ErrorOf({.hang_after = "5s", .replace_after = "4s"}),
            "--hang-after 5s must be longer than --collect-interval 1s and not longer than "
            "--replace-after 4s");
  EXPECT_EQ(ErrorOf({.hang_after = "5s", .replace_after = "5s"}), "");
}

}  // namespace
}  // namespace gpuassay
