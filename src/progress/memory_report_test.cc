#include "progress/memory_report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace gpuassay {
namespace {

constexpr SteadyTime kStart{std::chrono::hours(1)};

std::string Refused(std::string_view datagram) {
  const auto reports = ParseMemoryReports(datagram);
  if (reports) return "accepted";
  EXPECT_EQ(reports.error().code, ErrorCode::kMalformed);
  return reports.error().what;
}

std::string Entries(std::size_t count) {
  std::string text = R"({"v": 1, "memory": [)";
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) text += ", ";
    text += fmt::format(R"({{"device": {}, "reserved": 2, "allocated": 1}})", i);
  }
  return text + "]}";
}

TEST(MemoryReport, TellsReservedAndAllocatedBytesOfEachDevice) {
  const auto reports = ParseMemoryReports(
      R"({"v": 1, "memory": [{"device": "GPU-1", "reserved": 4294967296, "allocated": 2512555868},
          {"device": 3, "reserved": 18446744073709551615, "allocated": 0}]})");
  ASSERT_TRUE(reports.has_value());
  EXPECT_EQ(*reports, (std::vector<MemoryReport>{{"GPU-1", 4294967296, 2512555868},
                                                 {"3", 18446744073709551615U, 0}}));
}

TEST(MemoryReport, TheDeviceMayBeLeftOutAndOtherKeysAreLeftAlone) {
  const auto reports = ParseMemoryReports(
      R"({"v": 1, "step": 7, "pid": 1, "memory": [{"reserved": 5, "allocated": 5, "peak": [6]}]})");
  ASSERT_TRUE(reports.has_value());
  EXPECT_EQ(*reports, (std::vector<MemoryReport>{{"", 5, 5}}));
  EXPECT_EQ(ParseMemoryReports(R"({"v": 1, "memory": []})"), std::vector<MemoryReport>());
}

TEST(MemoryReport, SaysWhatIsWrong) {
  const auto with = [](std::string_view entry) {
    return Refused(fmt::format(R"({{"v": 1, "memory": [{}]}})", entry));
  };
  EXPECT_EQ(Refused(""), "memory report: no JSON object");
  EXPECT_EQ(Refused("[]"), "memory report: no JSON object");
  EXPECT_EQ(Refused(R"({"v": 1, "memory": [{"reserved": 1)"), "memory report: no JSON object");
  EXPECT_EQ(Refused("{\"v\": 1, \"memory\": [], \"x\": \"\xff\"}"),
            "memory report: no JSON object");
  EXPECT_EQ(Refused(R"({"memory": []})"), "memory report: 'v' must be 1");
  EXPECT_EQ(Refused(R"({"v": 2, "memory": []})"), "memory report: 'v' must be 1");
  EXPECT_EQ(Refused(R"({"v": "1", "memory": []})"), "memory report: 'v' must be 1");
  EXPECT_EQ(Refused(R"({"v": 1})"), "memory report: 'memory' must be a list");
  EXPECT_EQ(Refused(R"({"v": 1, "memory": {}})"), "memory report: 'memory' must be a list");
  EXPECT_EQ(with("5"), "memory report: an entry of 'memory' is no object");
  EXPECT_EQ(with(R"({"device": -1, "reserved": 1, "allocated": 1})"),
            "memory report: 'device' is neither a UUID nor a CUDA ordinal");
  EXPECT_EQ(with(R"({"reserved": 5, "allocated": 6})"),
            "memory report: 'allocated' 6 is more than 'reserved' 5: a part of it is meant");
}

TEST(MemoryReport, OnlyWholeNumbersOfBytesAreTaken) {
  for (const std::string_view bytes :
       {"-1", "1.5", "1e3", "\"5\"", "null", "true", "18446744073709551616"}) {
    EXPECT_EQ(Refused(fmt::format(R"({{"v": 1, "memory": [{{"reserved": {}, "allocated": 0}}]}})",
                                  bytes)),
              "memory report: 'reserved' and 'allocated' must be whole numbers of bytes")
        << bytes;
  }
  EXPECT_EQ(Refused(R"({"v": 1, "memory": [{"reserved": 5}]})"),
            "memory report: 'reserved' and 'allocated' must be whole numbers of bytes");
}

TEST(MemoryReport, HasBounds) {
  EXPECT_EQ(ParseMemoryReports(Entries(64))->size(), 64U);
  EXPECT_EQ(Refused(Entries(65)), "memory report: 65 devices; at most 64 are taken");
  const auto device = [](std::size_t bytes) {
    return fmt::format(
        R"({{"v": 1, "memory": [{{"device": "{}", "reserved": 1, "allocated": 1}}]}})",
        std::string(bytes, 'G'));
  };
  EXPECT_EQ(Refused(device(96)), "accepted");
  EXPECT_EQ(Refused(device(97)), "memory report: 'device' is longer than any UUID");
  const auto nested = [](std::size_t depth) {
    return R"({"v": 1, "memory": [], "x": )" + std::string(depth, '[') + std::string(depth, ']') +
           "}";
  };
  EXPECT_EQ(Refused(nested(15)), "accepted");
  EXPECT_EQ(Refused(nested(16)), "memory report: nested too deeply");
  EXPECT_EQ(Refused(std::string(60000, '[')), "memory report: nested too deeply");
}

TEST(MemoryReports, TheNewestCountsAndEachProcessHasItsOwn) {
  MemoryReports reports;
  reports.Set(42, {{"0", 8, 4}}, kStart);
  reports.Set(43, {{"0", 6, 6}}, kStart);
  reports.Set(42, {{"0", 9, 5}, {"1", 1, 0}}, kStart);
  EXPECT_EQ(reports.Find(42, kStart), (std::vector<MemoryReport>{{"0", 9, 5}, {"1", 1, 0}}));
  EXPECT_EQ(reports.Find(43, kStart), (std::vector<MemoryReport>{{"0", 6, 6}}));
  EXPECT_TRUE(reports.Find(44, kStart).empty());
}

TEST(MemoryReports, OldOnesCountAsNotReported) {
  MemoryReports reports;
  reports.Set(42, {{"0", 8, 4}}, kStart);
  const SteadyTime last = kStart + std::chrono::minutes(2);
  reports.DropOld(last);
  EXPECT_EQ(reports.Find(42, last).size(), 1U);
  EXPECT_TRUE(reports.Find(42, last + Duration(1)).empty());
  reports.DropOld(last + Duration(1));
  EXPECT_TRUE(reports.Find(42, last).empty());  // gone for good
}

TEST(MemoryReports, WhoeverHasBeenSilentForLongestMakesRoom) {
  MemoryReports reports;
  for (std::uint32_t pid = 1; pid <= MemoryReports::kProcessesMax; ++pid) {
    reports.Set(pid, {{"", pid, 0}}, kStart + Duration(pid));
  }
  reports.Set(1, {{"", 7, 0}}, kStart + std::chrono::seconds(1));  // is known: needs no room
  EXPECT_EQ(reports.Find(2, kStart).size(), 1U);
  reports.Set(5000, {{"", 5000, 0}}, kStart + std::chrono::seconds(1));
  EXPECT_TRUE(reports.Find(2, kStart).empty());
  EXPECT_EQ(reports.Find(1, kStart).size(), 1U);
  EXPECT_EQ(reports.Find(3, kStart).size(), 1U);
  EXPECT_EQ(reports.Find(5000, kStart).size(), 1U);
}

TEST(MemoryReports, OneProcessHasNoMoreThanItsShare) {
  MemoryReports reports;
  reports.Set(42, std::vector<MemoryReport>(MemoryReports::kPerProcessMax + 1), kStart);
  EXPECT_EQ(reports.Find(42, kStart).size(), MemoryReports::kPerProcessMax);
}

}  // namespace
}  // namespace gpuassay
