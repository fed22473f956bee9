// Recorded roots of tests/roots for tests: a few processes of /proc in one text file. The format is
// in tests/owners/README.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/root_fs.h"
#include "base/temporary_directory.h"

namespace gpuassay {

class RecordedRoot {
 public:
  // What is to be found out about one process: `# expect PID: key=value ...`.
  struct Expectation {
    std::uint32_t pid = 0;
    std::map<std::string, std::string> values;
  };

  // Unpacks the file into `directory`, over what is there.
  RecordedRoot(const std::filesystem::path& file, const TemporaryDirectory& directory)
      : directory_(directory) {
    std::ifstream stream(file, std::ios::binary);
    Check(stream.good(), "a recorded root can be read");
    for (std::string line; std::getline(stream, line);) TakeLine(line);
    FinishFile();
  }

  const std::vector<Expectation>& expectations() const { return expectations_; }

 private:
  void TakeLine(const std::string& line) {
    if (line.starts_with("-- ") && line.ends_with(" --") && line.size() > 6) {
      FinishFile();
      TakeEntry(line.substr(3, line.size() - 6));
    } else if (!path_.empty()) {
      content_ += line + "\n";
    } else if (line.starts_with("# expect ")) {
      TakeExpectation(line);
    }
  }

  void TakeEntry(const std::string& entry) {
    const std::size_t arrow = entry.find(" -> ");
    if (arrow != std::string::npos) {
      directory_.Link(entry.substr(0, arrow), entry.substr(arrow + 4));
    } else if (entry.ends_with('/')) {
      directory_.MakeDirectory(entry);
    } else {
      path_ = entry;
    }
  }

  void TakeExpectation(const std::string& line) {
    std::istringstream words(line.substr(std::string_view("# expect ").size()));
    Expectation expectation;
    char colon = 0;
    words >> expectation.pid >> colon;
    Check(colon == ':', "an expectation starts with a PID");
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      Check(equals != std::string::npos, "an expectation is key=value");
      expectation.values[word.substr(0, equals)] = word.substr(equals + 1);
    }
    expectations_.push_back(std::move(expectation));
  }

  void FinishFile() {
    if (path_.empty()) return;
    std::string out;
    for (std::size_t i = 0; i < content_.size(); ++i) {
      if (content_[i] != '\\') {
        out += content_[i];
        continue;
      }
      ++i;
      if (content_[i] == 'c' && i + 2 == content_.size()) break;
      Check(content_[i] == '0' || content_[i] == '\\', "an escape is one of three");
      out += content_[i] == '0' ? '\0' : '\\';
    }
    directory_.Write(path_, out);
    path_.clear();
    content_.clear();
  }

  const TemporaryDirectory& directory_;
  std::vector<Expectation> expectations_;
  std::string path_;  // of the file whose lines come now
  std::string content_;
};

// All recorded roots, by name. The folder is never empty.
inline std::vector<std::filesystem::path> RecordedRootFiles(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".root") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  Check(!files.empty(), "there are recorded roots");
  return files;
}

}  // namespace gpuassay
