#include "cli/node_arguments.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace gpuassay {
namespace {

TEST(NodeArguments, ListsAreSplitAtCommas) {
  CLI::App app;
  NodeArguments arguments;
  AddNodeArguments(app, arguments);
  app.parse("--nvidia-resource-names a.com/gpu,b.com/gpu --pod-labels team,app.kubernetes.io/*");
  const Result<NodeOptions> options = MakeNodeOptions(arguments);
  ASSERT_TRUE(options) << options.error().what;
  EXPECT_EQ(options->resource_names, (std::vector<std::string>{"a.com/gpu", "b.com/gpu"}));
  EXPECT_EQ(options->pod_labels, (std::vector<std::string>{"team", "app.kubernetes.io/*"}));
  EXPECT_TRUE(options->attribution);
}

std::string ErrorOf(const NodeArguments& arguments) {
  const Result<NodeOptions> options = MakeNodeOptions(arguments);
  return options ? "" : options.error().what;
}

TEST(NodeArguments, BadOnesAreNamed) {
  EXPECT_EQ(ErrorOf({.attribution = "maybe"}), "--attribution: 'maybe' is neither on nor off");
  EXPECT_EQ(ErrorOf({.resource_names = {"gpu"}}),
            "--nvidia-resource-names: 'gpu' is not of the form DOMAIN/NAME");
  EXPECT_EQ(ErrorOf({.resource_names = {"a/b/c"}}),
            "--nvidia-resource-names: 'a/b/c' is not of the form DOMAIN/NAME");
  EXPECT_EQ(ErrorOf({.pod_labels = {"a*b"}}),
            "--pod-labels: 'a*b' is not a label key; '*' may only end one");
  EXPECT_EQ(ErrorOf({.pod_labels = {""}}),
            "--pod-labels: '' is not a label key; '*' may only end one");
  EXPECT_EQ(ErrorOf({.attribution = "off", .pod_labels = {"*"}}), "");
}

}  // namespace
}  // namespace gpuassay
