#include "attribution/join/node_names.h"

#include <gtest/gtest.h>

#include "attribution/join/test_root.h"

namespace gpuassay {
namespace {

TEST(NodeNames, APodLogDirectoryIsThreeParts) {
  EXPECT_EQ(ParsePodLogName("ml_train-0_uid-1"), (PodLogName{"ml", "train-0", "uid-1"}));
  EXPECT_EQ(ParsePodLogName("ml_train-0"), std::nullopt);
  EXPECT_EQ(ParsePodLogName("ml_a_b_uid"), std::nullopt);
  EXPECT_EQ(ParsePodLogName("_a_uid"), std::nullopt);
  EXPECT_EQ(ParsePodLogName("ml__uid"), std::nullopt);
  EXPECT_EQ(ParsePodLogName("ml_a_"), std::nullopt);
  EXPECT_EQ(ParsePodLogName(""), std::nullopt);
}

TEST(NodeNames, ALogLinkNamesTheContainer) {
  EXPECT_EQ(ContainerOfLogLink("train-0_ml_main-aa.log", "train-0", "ml", "aa"), "main");
  EXPECT_EQ(ContainerOfLogLink("train-0_ml_a-b-aa.log", "train-0", "ml", "aa"), "a-b");
  EXPECT_EQ(ContainerOfLogLink("train-0_ml_main-bb.log", "train-0", "ml", "aa"), std::nullopt);
  EXPECT_EQ(ContainerOfLogLink("train-1_ml_main-aa.log", "train-0", "ml", "aa"), std::nullopt);
  EXPECT_EQ(ContainerOfLogLink("train-0_ml_-aa.log", "train-0", "ml", "aa"), std::nullopt);
  EXPECT_EQ(ContainerOfLogLink("train-0_ml_aa.log", "train-0", "ml", "aa"), std::nullopt);
}

TEST(NodeNames, RecordsOfRuntimesThatAreNoneNameNothing) {
  EXPECT_EQ(DockerContainerName(R"({"Name": "/web"})"), "web");
  EXPECT_EQ(DockerContainerName(R"({"Name": 3})"), "");
  EXPECT_EQ(DockerContainerName("[]"), "");
  EXPECT_EQ(DockerContainerName("{"), "");
  constexpr std::string_view kList = R"([{"id": "aa", "names": ["one", "two"]}, 7, {"id": "bb"}])";
  EXPECT_EQ(PodmanContainerName(kList, "aa"), "one");
  EXPECT_EQ(PodmanContainerName(kList, "bb"), "");
  EXPECT_EQ(PodmanContainerName(kList, "cc"), "");
  EXPECT_EQ(PodmanContainerName(R"([{"id": "aa", "names": [7]}])", "aa"), "");
  EXPECT_EQ(PodmanContainerName("{}", "aa"), "");
  EXPECT_EQ(PodmanContainerName("]", "aa"), "");
}

ProcessOwner OfPod(const std::string& uid, const std::string& container) {
  ProcessOwner owner;
  owner.pod = {"", "", uid};
  if (!container.empty()) owner.container = {container, "", "containerd"};
  return owner;
}

TEST(NodeNames, LogsOfTheKubeletNamePodAndContainer) {
  const TestRoot root;
  root.MakeDirectory("var/log/pods/ml_train-0_uid-1/main");
  root.MakeDirectory("var/log/pods/ml_train-0_uid-1/side");
  root.Link("var/log/containers/train-0_ml_side-bb.log", "/var/log/pods/x");
  NodeNames names(root.Root());
  ProcessOwner owner = OfPod("uid-1", "bb");
  names.Fill(owner);
  EXPECT_EQ(*owner.pod, (PodIdentity{"ml", "train-0", "uid-1"}));
  EXPECT_EQ(owner.container->name, "side");
  ProcessOwner other = OfPod("uid-1", "cc");  // no link yet, and two containers
  names.Fill(other);
  EXPECT_EQ(other.pod->name, "train-0");
  EXPECT_EQ(other.container->name, "");
  ProcessOwner unknown = OfPod("uid-2", "bb");
  names.Fill(unknown);
  EXPECT_EQ(unknown, OfPod("uid-2", "bb"));
}

TEST(NodeNames, TheOnlyContainerOfAPodNeedsNoLink) {
  const TestRoot root;
  root.MakeDirectory("var/log/pods/ml_train-0_uid-1/main");
  NodeNames names(root.Root());
  ProcessOwner owner = OfPod("uid-1", "bb");
  names.Fill(owner);
  EXPECT_EQ(owner.container->name, "main");
}

TEST(NodeNames, APodThatComesLaterIsFound) {
  const TestRoot root;
  root.MakeDirectory("var/log/pods/ml_old_uid-0/main");
  NodeNames names(root.Root());
  ProcessOwner owner = OfPod("uid-1", "");
  names.Fill(owner);
  EXPECT_EQ(owner.pod->name, "");
  root.MakeDirectory("var/log/pods/ml_train-0_uid-1/main");
  names.Fill(owner);
  EXPECT_EQ(owner.pod->name, "train-0");
}

TEST(NodeNames, DockerAndPodmanNameTheirContainers) {
  const TestRoot root;
  root.Write("var/lib/docker/containers/aa/config.v2.json", R"({"ID": "aa", "Name": "/web"})");
  root.Write("var/lib/containers/storage/overlay-containers/containers.json",
             R"([{"id": "bb", "names": ["tune"]}])");
  NodeNames names(root.Root());
  ProcessOwner docker;
  docker.container = {"aa", "", "docker"};
  names.Fill(docker);
  EXPECT_EQ(docker.container->name, "web");
  ProcessOwner podman;
  podman.container = {"bb", "", "podman"};
  names.Fill(podman);
  EXPECT_EQ(podman.container->name, "tune");
  ProcessOwner outside;
  outside.container = {"../../../etc", "", "docker"};  // an id that leads elsewhere is no id
  names.Fill(outside);
  EXPECT_EQ(outside.container->name, "");
}

}  // namespace
}  // namespace gpuassay
