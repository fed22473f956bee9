// What a job tells of its own memory: one datagram of JSON to a Unix socket of the agent, as often
// as it likes. Only the process knows how much of its pool holds data (M25).
//
//   {"v": 1, "memory": [{"device": "GPU-...", "reserved": 4294967296, "allocated": 2512555868}]}
//
// `device`: UUID, or the CUDA ordinal within CUDA_VISIBLE_DEVICES as a number; may be left out by a
// process with one GPU. Bytes. The sender's PID comes from the kernel (SCM_CREDENTIALS), in the
// agent's PID namespace, so nobody can report for others and containers need not know their PID.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace gpuassay {

struct MemoryReport {
  std::string device;  // "GPU-...", "MIG-...", "0"; empty: its only one
  std::uint64_t reserved_bytes = 0;
  std::uint64_t allocated_bytes = 0;
  bool operator==(const MemoryReport&) const = default;
};

// kMalformed with what is wrong and what is expected. Keys it does not know are left alone: later
// versions send more. allocated > reserved is malformed.
Result<std::vector<MemoryReport>> ParseMemoryReports(std::string_view datagram);

// The newest reports by PID; older than kFreshFor they count as not reported. Thread-safe.
class MemoryReports {
 public:
  static constexpr std::size_t kProcessesMax = 4096;
  static constexpr std::size_t kPerProcessMax = 64;
  static constexpr Duration kFreshFor = std::chrono::minutes(2);

  void Set(std::uint32_t pid, std::vector<MemoryReport> reports, SteadyTime now);
  // Empty when none is fresh.
  std::vector<MemoryReport> Find(std::uint32_t pid, SteadyTime now) const;
  void DropOld(SteadyTime now);

 private:
  struct Entry {
    std::vector<MemoryReport> reports;
    SteadyTime time;
  };
  mutable std::mutex mutex_;  // guards entries_
  std::map<std::uint32_t, Entry> entries_;
};

// Receives datagrams in a thread of its own.
class ReportSocket {
 public:
  static constexpr std::size_t kDatagramBytesMax = 64 * 1024;

  // Replaces a socket file that nobody listens on. Mode 0666: any job may report. kPermission, kIo.
  static Result<std::unique_ptr<ReportSocket>> Listen(const std::string& path,
                                                      MemoryReports& reports, const Clock& clock);
  ~ReportSocket();
  // Datagrams that could not be read, or whose sender the kernel does not tell. The first is
  // logged.
  std::uint64_t malformed() const;

 private:
  struct Impl;
  explicit ReportSocket(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuassay
