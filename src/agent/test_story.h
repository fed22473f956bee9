// For tests: a scenario file with one GPU, a pod and its process.
#pragma once

#include <string>
#include <string_view>

#include "base/temporary_directory.h"

namespace gpuassay {

class TestStory {
 public:
  static constexpr std::string_view kPod = R"(
start: 2026-01-05T00:00:00Z
gpus: [{model: t4, count: 1}]
node: {cgroup: v2, users: {alice: 1001}}
pods:
  - {name: train, namespace: ml, start: 5s, end: 60s, devices: [{gpu: 0}]}
processes:
  - {pid: 4711, name: python3 train.py, gpus: 0, start: 10s, end: 50s, memory: 4GiB,
     owner: {pod: ml/train}, pool: {reserved: 3GiB, allocated: 2GiB}}
)";
  static constexpr std::string_view kGpusOnly = "gpus: [{model: t4, count: 1}]\n";

  explicit TestStory(std::string_view yaml = kPod) { directory_.Write("story.yaml", yaml); }
  std::string path() const { return directory_.path() + "/story.yaml"; }

 private:
  TemporaryDirectory directory_;
};

}  // namespace gpuassay
