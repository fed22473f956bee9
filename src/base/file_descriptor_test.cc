#include "base/file_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace gpuassay {
namespace {

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0 || errno != EBADF; }

int AnyFile() { return open(".", O_RDONLY | O_CLOEXEC); }

TEST(FileDescriptor, ClosesWithItsOwner) {
  const int fd = AnyFile();
  {
    const FileDescriptor owner(fd);
    EXPECT_TRUE(owner.open());
    EXPECT_TRUE(IsOpen(fd));
  }
  EXPECT_FALSE(IsOpen(fd));
}

TEST(FileDescriptor, MovesAndClosesWhatItHad) {
  const int first = AnyFile(), second = AnyFile();
  FileDescriptor a(first), b(second);
  a = std::move(b);
  EXPECT_FALSE(IsOpen(first));
  EXPECT_EQ(a.get(), second);
  const FileDescriptor c(std::move(a));
  EXPECT_TRUE(IsOpen(second));
  EXPECT_EQ(c.get(), second);
}

TEST(FileDescriptor, NoneIsNotOpen) { EXPECT_FALSE(FileDescriptor().open()); }

}  // namespace
}  // namespace gpuassay
