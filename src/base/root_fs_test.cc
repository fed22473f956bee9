#include "base/root_fs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
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
