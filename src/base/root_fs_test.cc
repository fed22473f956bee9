#include "base/root_fs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

namespace gpuassay {
namespace {

class RootFsTest : public testing::Test {
 protected:
  RootFsTest() {
    std::string pattern = testing::TempDir() + "rootXXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~RootFsTest() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& content) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << content;
  }
  std::string root_;
};

TEST_F(RootFsTest, ReadsAFileBelowTheRoot) {
  Write("/proc/driver/nvidia/version", "NVRM version: 570.86.15\n");
  const Result<RootFs> fs = RootFs::Open(root_ + "/");
  ASSERT_TRUE(fs.has_value());
  EXPECT_EQ(*fs->Read("/proc/driver/nvidia/version"), "NVRM version: 570.86.15\n");
}

TEST_F(RootFsTest, SaysWhichFileIsMissing) {
  const Result<RootFs> fs = RootFs::Open(root_);
  ASSERT_TRUE(fs.has_value());
  const Result<std::string> content = fs->Read("/absent");
  ASSERT_FALSE(content.has_value());
  EXPECT_EQ(content.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(content.error().what, "read " + root_ + "/absent: No such file or directory");
}

TEST_F(RootFsTest, ReadsIntoMemoryThatIsUsedAgain) {
  Write("/long", "a long text");
  Write("/short", "short");
  const Result<RootFs> fs = RootFs::Open(root_);
  ASSERT_TRUE(fs.has_value());
  std::string content;
  ASSERT_TRUE(fs->Read("/long", content).has_value());
  ASSERT_TRUE(fs->Read("/short", content).has_value());
  EXPECT_EQ(content, "short");
  EXPECT_FALSE(fs->Read("/absent", content).has_value());
  EXPECT_EQ(content, "");
}

TEST_F(RootFsTest, ListsNamesWithoutTheDots) {
  Write("/proc/2/stat", "");
  Write("/proc/10/stat", "");
  const Result<RootFs> fs = RootFs::Open(root_);
  ASSERT_TRUE(fs.has_value());
  Result<std::vector<std::string>> names = fs->List("/proc");
  ASSERT_TRUE(names.has_value());
  std::sort(names->begin(), names->end());
  EXPECT_EQ(*names, (std::vector<std::string>{"10", "2"}));
  EXPECT_EQ(fs->List("/absent").error().code, ErrorCode::kNotFound);
}

TEST_F(RootFsTest, ReadsALinkWithoutFollowingIt) {
  std::filesystem::create_symlink("/dev/nvidia0", root_ + "/link");
  const Result<RootFs> fs = RootFs::Open(root_);
  ASSERT_TRUE(fs.has_value());
  EXPECT_EQ(*fs->ReadLink("/link"), "/dev/nvidia0");
  EXPECT_TRUE(fs->Exists("/link"));
  EXPECT_FALSE(fs->Exists("/absent"));
  EXPECT_EQ(fs->ReadLink("/absent").error().code, ErrorCode::kNotFound);
}

TEST_F(RootFsTest, ReadsTheStartOfAFileIntoMemoryOfTheCaller) {
  Write("/long", "0123456789");
  const Result<RootFs> fs = RootFs::Open(root_);
  ASSERT_TRUE(fs.has_value());
  std::array<char, 4> some = {};
  EXPECT_EQ(fs->ReadStart("/long", some), 4u);
  EXPECT_EQ(std::string_view(some.data(), some.size()), "0123");
  std::array<char, 16> all = {};
  EXPECT_EQ(fs->ReadStart("/long", all), 10u);
  EXPECT_EQ(fs->ReadStart("/absent", all), std::nullopt);
  EXPECT_EQ(fs->ReadStart("/" + std::string(5000, 'a'), all), std::nullopt);
}

TEST_F(RootFsTest, KeepsOfManyLinksWhatIsAskedFor) {
  std::filesystem::create_directory(root_ + "/fd");
  for (const auto& [name, target] : {std::pair{"0", "/dev/null"},
                                     {"3", "/dev/nvidia1"},
                                     {"4", "/dev/nvidia0"},
                                     {"5", "/dev/nvidia1"},
                                     {"6", "socket:[7]"}}) {
    std::filesystem::create_symlink(target, root_ + "/fd/" + name);
  }
  Write("/fd/plain", "no link");
  const Result<RootFs> fs = RootFs::Open(root_);
  ASSERT_TRUE(fs.has_value());
  const Result<LinkTargets> targets = fs->ReadLinks("/fd", "/dev/nvidia");
  ASSERT_TRUE(targets.has_value());
  EXPECT_EQ(targets->matching, (std::vector<std::string>{"/dev/nvidia0", "/dev/nvidia1"}));
  EXPECT_EQ(targets->links, 5u);
  EXPECT_EQ(fs->ReadLinks("/absent", "").error().code, ErrorCode::kNotFound);
}

TEST_F(RootFsTest, KeepsABoundedNumberOfTargets) {
  std::filesystem::create_directory(root_ + "/fd");
  for (int i = 0; i < 1030; ++i) {
    std::filesystem::create_symlink("/dev/nvidia" + std::to_string(i),
                                    root_ + "/fd/" + std::to_string(i));
  }
  EXPECT_EQ(RootFs::Open(root_)->ReadLinks("/fd", "/dev/")->matching.size(), RootFs::kTargetsMax);
}

TEST_F(RootFsTest, AStampChangesWithTheFile) {
  Write("/file", "a");
  const Result<RootFs> fs = RootFs::Open(root_);
  ASSERT_TRUE(fs.has_value());
  const std::optional<FileStamp> first = fs->Stamp("/file");
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(fs->Stamp("/file"), first);
  Write("/file", "ab");
  EXPECT_NE(fs->Stamp("/file"), first);
  EXPECT_EQ(fs->Stamp("/absent"), std::nullopt);
}

TEST_F(RootFsTest, RefusesARootThatIsNoDirectory) {
  Write("/file", "");
  EXPECT_EQ(RootFs::Open(root_ + "/file").error().what, "root " + root_ + "/file: not a directory");
  EXPECT_EQ(RootFs::Open(root_ + "/absent").error().code, ErrorCode::kNotFound);
}

TEST_F(RootFsTest, RefusesAFileOverTheLimit) {
  Write("/large", std::string(RootFs::kFileBytesMax + 1, 'x'));
  EXPECT_EQ(RootFs::Open(root_)->Read("/large").error().code, ErrorCode::kIo);
  Write("/largest", std::string(RootFs::kFileBytesMax, 'x'));
  EXPECT_TRUE(RootFs::Open(root_)->Read("/largest").has_value());
}

TEST_F(RootFsTest, TheRealRootIsSlash) {
  const Result<RootFs> fs = RootFs::Open("/");
  ASSERT_TRUE(fs.has_value());
  EXPECT_EQ(fs->Resolve("/etc"), "/etc");
}

}  // namespace
}  // namespace gpuassay
