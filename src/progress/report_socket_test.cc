// The socket of progress/memory_report.h, with real senders.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "base/check.h"
#include "progress/memory_report.h"

namespace gpuassay {
namespace {

constexpr std::string_view kReport =
    R"({"v": 1, "memory": [{"device": "GPU-1", "reserved": 8, "allocated": 4}]})";
const std::vector<MemoryReport> kReported = {{"GPU-1", 8, 4}};
constexpr unsigned kSecondsMax = 60;

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  Check(path.size() < sizeof address.sun_path, "the path fits");
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// 0, else the number of the error. Who claims no PID sends with its own.
int Send(const std::string& path, std::string_view text, pid_t claimed = 0) {
  const sockaddr_un address = AddressOf(path);
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  std::string bytes(text);
  iovec part = {bytes.data(), bytes.size()};
  sockaddr_un to = address;
  msghdr message = {};
  message.msg_name = &to;
  message.msg_namelen = sizeof to;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control = {};
  if (claimed != 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_CREDENTIALS;
    header->cmsg_len = CMSG_LEN(sizeof(ucred));
    const ucred sender = {claimed, getuid(), getgid()};
    std::memcpy(CMSG_DATA(header), &sender, sizeof sender);
  }
  const int error = sendmsg(fd, &message, 0) < 0 ? errno : 0;
  close(fd);
  return error;
}

class ReportSocketTest : public testing::Test {
 protected:
  ReportSocketTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "gpuassayXXXXXX").string();
    Check(mkdtemp(pattern.data()) != nullptr, "a temporary directory can be made");
    directory_ = pattern;
    Check(chmod(directory_.c_str(), 0755) == 0, "others can be let in");
    path_ = directory_ + "/report.sock";
  }
  ~ReportSocketTest() override {
    socket_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Listen() {
    Result<std::unique_ptr<ReportSocket>> socket = ReportSocket::Listen(path_, reports_, clock_);
    Check(socket.has_value(), "a socket can be made");
    socket_ = std::move(*socket);
  }

  // Waits for the thread of the socket.
  static bool Wait(const std::function<bool()>& condition) {
    const SystemClock clock;
    const SteadyTime end = clock.Steady() + std::chrono::seconds(kSecondsMax);
    while (!condition()) {
      if (clock.Steady() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  bool WaitForReport(pid_t pid) const {
    return Wait([&] { return Reported(pid) == kReported; });
  }
  std::vector<MemoryReport> Reported(pid_t pid) const {
    return reports_.Find(static_cast<std::uint32_t>(pid), clock_.Steady());
  }

  // The PID and how `body` has ended.
  static std::pair<pid_t, int> InChild(const std::function<int()>& body) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kSecondsMax);
      _exit(body());
    }
    int status = -1;
    waitpid(child, &status, 0);
    return {child, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
  }
  // Root may do all that is to be refused.
  static void LeavePrivileges() {
    constexpr uid_t kNobody = 65534;
    if (geteuid() == 0) Check(setresuid(kNobody, kNobody, kNobody) == 0, "privileges can be left");
  }

  VirtualClock clock_{WallTime(std::chrono::hours(1))};
  MemoryReports reports_;
  std::string directory_;
  std::string path_;
  std::unique_ptr<ReportSocket> socket_;
};

TEST_F(ReportSocketTest, WhatAProcessSendsIsItsReportByThePidTheKernelTells) {
  Listen();
  ASSERT_EQ(Send(path_, kReport), 0);
  EXPECT_TRUE(WaitForReport(getpid()));
  const auto [child, error] = InChild([this] { return Send(path_, kReport); });
  ASSERT_EQ(error, 0);
  EXPECT_TRUE(WaitForReport(child));
  EXPECT_EQ(socket_->malformed(), 0U);
}

TEST_F(ReportSocketTest, AnyUserMayReport) {
  Listen();
  const auto [child, error] = InChild([this] {
    LeavePrivileges();
    return Send(path_, kReport);
  });
  ASSERT_EQ(error, 0);
  EXPECT_TRUE(WaitForReport(child));
}

TEST_F(ReportSocketTest, NobodyReportsForAnotherProcess) {
  Listen();
  const pid_t other = getpid();
  const auto [child, error] = InChild([this, other] {
    LeavePrivileges();
    if (Send(path_, kReport, other) != EPERM) return 1;  // the kernel refuses
    // What the text claims is left alone.
    const std::string claim =
        R"({"v": 1, "pid": )" + std::to_string(other) +
        R"(, "memory": [{"device": "GPU-1", "reserved": 8, "allocated": 4}]})";
    return Send(path_, claim) == 0 ? 0 : 2;
  });
  ASSERT_EQ(error, 0);
  EXPECT_TRUE(WaitForReport(child));
  EXPECT_TRUE(Reported(other).empty());
}

TEST_F(ReportSocketTest, GarbageIsCountedAndSaidOnceAndTheOthersAreStillHeard) {
  Listen();
  testing::internal::CaptureStderr();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Send(path_, "garbage\nwith lines"), 0);
  ASSERT_EQ(Send(path_, ""), 0);
  ASSERT_EQ(Send(path_, std::string(ReportSocket::kDatagramBytesMax + 1, ' ')), 0);
  ASSERT_EQ(Send(path_, kReport), 0);
  EXPECT_TRUE(WaitForReport(getpid()));
  EXPECT_EQ(socket_->malformed(), 102U);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(log, '\n'), 1) << log;
  const std::string line =
      "warning: process " + std::to_string(getpid()) + ": memory report: no JSON object\n";
  EXPECT_TRUE(log.ends_with(line)) << log;
}

TEST_F(ReportSocketTest, ADatagramOfTheLargestSizeIsTakenAndALargerOneSaysSo) {
  Listen();
  std::string report(kReport);
  report.resize(ReportSocket::kDatagramBytesMax, ' ');
  ASSERT_EQ(Send(path_, report), 0);
  EXPECT_TRUE(WaitForReport(getpid()));
  testing::internal::CaptureStderr();
  ASSERT_EQ(Send(path_, report + " "), 0);
  EXPECT_TRUE(Wait([this] { return socket_->malformed() == 1; }));
  socket_.reset();  // its thread has said what it says
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(log.ends_with(": memory report: longer than 65536 bytes\n")) << log;
}

TEST_F(ReportSocketTest, TimeIsThatOfTheAgent) {
  Listen();
  ASSERT_EQ(Send(path_, kReport), 0);
  ASSERT_TRUE(WaitForReport(getpid()));
  clock_.Advance(MemoryReports::kFreshFor);
  EXPECT_EQ(Reported(getpid()), kReported);
  clock_.Advance(Duration(1));
  EXPECT_TRUE(Reported(getpid()).empty());
}

TEST_F(ReportSocketTest, TheSocketGoesAwayWithIt) {
  Listen();
  EXPECT_TRUE(std::filesystem::is_socket(path_));
  socket_.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(Send(path_, kReport), ENOENT);
}

TEST_F(ReportSocketTest, ReplacesWhatAnAgentThatWasKilledLeftBehind) {
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = AddressOf(path_);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  close(fd);
  ASSERT_TRUE(std::filesystem::is_socket(path_));
  Listen();
  ASSERT_EQ(Send(path_, kReport), 0);
  EXPECT_TRUE(WaitForReport(getpid()));
}

TEST_F(ReportSocketTest, ASocketThatIsListenedOnIsLeftAlone) {
  Listen();
  const auto second = ReportSocket::Listen(path_, reports_, clock_);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kIo);
  EXPECT_EQ(second.error().what, "report socket " + path_ + ": Address already in use");
  ASSERT_EQ(Send(path_, kReport), 0);
  EXPECT_TRUE(WaitForReport(getpid()));
}

TEST_F(ReportSocketTest, AFileOfAnotherKindIsLeftAlone) {
  std::ofstream(path_) << "precious";
  EXPECT_EQ(ReportSocket::Listen(path_, reports_, clock_).error().code, ErrorCode::kIo);
  EXPECT_EQ(std::filesystem::file_size(path_), 8U);
}

TEST_F(ReportSocketTest, SaysWhyThereIsNone) {
  const auto nowhere = ReportSocket::Listen(directory_ + "/absent/s", reports_, clock_);
  EXPECT_EQ(nowhere.error().what,
            "report socket " + directory_ + "/absent/s: No such file or directory");
  const auto long_name =
      ReportSocket::Listen(directory_ + "/" + std::string(108, 's'), reports_, clock_);
  EXPECT_EQ(long_name.error().code, ErrorCode::kIo);
  EXPECT_TRUE(long_name.error().what.ends_with(": File name too long"));
  const auto [child, not_permitted] = InChild([this] {
    LeavePrivileges();
    Check(chmod(directory_.c_str(), 0500) == 0 || errno == EPERM, "it is ours or it is not");
    const auto denied = ReportSocket::Listen(path_, reports_, clock_);
    return !denied && denied.error().code == ErrorCode::kPermission ? 0 : 1;
  });
  EXPECT_EQ(not_permitted, 0);
  EXPECT_GT(child, 0);
  chmod(directory_.c_str(), 0755);
}

}  // namespace
}  // namespace gpuassay
