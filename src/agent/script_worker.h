// For tests: a worker that is a shell script, so that each thing a worker can do to us is one line.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "agent/frame.h"
#include "model/snapshot.h"
#include "model/snapshot_codec.h"

namespace gpuassay {

class ScriptWorker {
 public:
  ScriptWorker() {
    std::string pattern = testing::TempDir() + "workerXXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  ~ScriptWorker() { std::filesystem::remove_all(directory_); }

  // The program; it writes to file descriptor 3.
  std::string Program(const std::string& body) {
    const std::string path = directory_ + "/worker";
    std::ofstream(path) << "#!/bin/sh\ncd " << directory_ << "\n" << body << "\n";
    chmod(path.c_str(), 0755);
    return path;
  }
  // A file `name` beside the script with one snapshot frame of one GPU drawing `watts`.
  void SnapshotFile(const std::string& name, double watts, const std::string& error = "") {
    Snapshot snapshot;
    snapshot.time = WallTime(std::chrono::seconds(2'000'000'000));
    SourceStatus& source = snapshot.sources.emplace_back();
    source.name = "nvml";
    source.error = error;
    if (error.empty()) {
      source.last_success = snapshot.time;
      Gpu& gpu = snapshot.gpus.emplace_back();
      gpu.identity.uuid = "GPU-1";
      gpu.readings.up = 1;
      gpu.readings.power_watts = watts;
    }
    std::string frame(kFrameHeaderBytes, '\0');
    EncodeSnapshot(snapshot, frame);
    FinishFrame(FrameKind::kSnapshot, frame);
    std::ofstream(directory_ + "/" + name, std::ios::binary) << frame;
  }
  const std::string& directory() const { return directory_; }

 private:
  std::string directory_;
};

}  // namespace gpuassay
