#include "sim/scenario/scenario.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "sim/scenario/sections.h"

namespace gpuassay::sim {
namespace {

constexpr std::array<std::string_view, 17> kKeys = {
    "name",   "description", "seed",     "noise",     "start", "length",
    "driver", "hostname",    "profiles", "gpus",      "node",  "kubernetes",
    "pods",   "containers",  "jobs",     "processes", "faults"};
// 2026-01-05T00:00:00Z, a Monday: where virtual time starts when the scenario says nothing.
constexpr WallTime kDefaultStart{std::chrono::seconds(1'767'571'200)};
constexpr std::size_t kHostnameMax = 63;

// "2026-01-05T09:00:00Z".
WallTime ReadStart(Reader& reader, const YamlNode& node) {
  int year = 0;
  unsigned month = 0, day = 0, hour = 0, minute = 0, second = 0;
  int used = 0;
  const int fields = std::sscanf(node.text.c_str(), "%4d-%2u-%2uT%2u:%2u:%2uZ%n", &year, &month,
                                 &day, &hour, &minute, &second, &used);
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (fields != 6 || static_cast<std::size_t>(used) != node.text.size() || !date.ok() ||
      year < 1970 || hour > 23 || minute > 59 || second > 59) {
    reader.Reject(node, "`start` must look like 2026-01-05T09:00:00Z");
    return kDefaultStart;
  }
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
         std::chrono::minutes(minute) + std::chrono::seconds(second);
}

std::string ReadHostname(Reader& reader, const YamlNode& node) {
  std::string text = reader.Text(node, "hostname", kHostnameMax);
  for (const char c : text) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '.';
    if (!good) {
      reader.Reject(node, "`hostname` can have letters, digits, - and .");
    }
  }
  return text;
}

void ReadHead(Reader& reader, const MapReader& map, Scenario& scenario) {
  if (const YamlNode* name = map.Find("name")) {
    scenario.name = reader.Text(*name, "name");
  }
  if (const YamlNode* description = map.Find("description")) {
    scenario.description = reader.Text(*description, "description", 4000);
  }
  if (const YamlNode* seed = map.Find("seed")) {
    scenario.seed = reader.Integer(*seed, "seed", 0, UINT64_MAX);
  }
  if (const YamlNode* noise = map.Find("noise")) {
    scenario.noise = reader.Ratio(*noise, "noise");
  }
  if (const YamlNode* start = map.Find("start")) {
    scenario.start = ReadStart(reader, *start);
  }
  if (const YamlNode* length = map.Find("length")) {
    scenario.length = reader.Time(*length, "length", false);
  }
  if (const YamlNode* hostname = map.Find("hostname")) {
    scenario.hostname = ReadHostname(reader, *hostname);
  }
  if (const YamlNode* driver = map.Find("driver")) {
    scenario.driver = ReadDriver(reader, *driver);
  }
}

// "sim/scenarios/demo.yaml" is "demo".
std::string NameOfFile(std::string_view file) {
  file = file.substr(file.rfind('/') + 1);  // npos + 1 is 0
  return std::string(file.substr(0, file.rfind('.')));
}

}  // namespace

Result<Scenario> ParseScenario(std::string_view yaml, std::string_view file) {
  const Result<YamlNode> tree = ParseYamlTree(yaml, file);
  if (!tree) {
    return std::unexpected(tree.error());
  }
  Reader reader(file);
  Scenario scenario;
  scenario.name = NameOfFile(file);
  scenario.start = kDefaultStart;
  scenario.hostname = "sim-node";
  MapReader map(reader, *tree, "a scenario", kKeys);
  ReadHead(reader, map, scenario);
  const YamlNode* gpus = reader.failed() ? nullptr : map.Require("gpus");
  if (gpus != nullptr) {
    scenario.gpus = ReadGpus(reader, *gpus, scenario.driver);
  }
  Profiles profiles;
  if (const YamlNode* node = map.Find("profiles"); node != nullptr && !reader.failed()) {
    profiles = ReadProfiles(reader, *node);
  }
  if (!reader.failed()) {
    scenario.world = ReadWorld(reader, map, scenario);
  }
  if (const YamlNode* node = map.Find("faults"); node != nullptr && !reader.failed()) {
    scenario.faults = ReadFaults(reader, *node, scenario);
  }
  if (const YamlNode* node = map.Find("processes"); node != nullptr && !reader.failed()) {
    ReadProcesses(reader, *node, profiles, scenario);
  }
  if (reader.failed()) {
    return std::unexpected(reader.error());
  }
  return scenario;
}

Result<Scenario> LoadScenario(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (!file) {
    const ErrorCode code = errno == ENOENT   ? ErrorCode::kNotFound
                           : errno == EACCES ? ErrorCode::kPermission
                                             : ErrorCode::kIo;
    return Fail(code, fmt::format("{}: {}", path, std::strerror(errno)));
  }
  std::string text(kYamlBytesMax + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) {
    return Fail(ErrorCode::kIo, fmt::format("{}: cannot be read as a file", path));
  }
  return ParseScenario(text, path);
}

}  // namespace gpuassay::sim
