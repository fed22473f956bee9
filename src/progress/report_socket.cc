#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "progress/memory_report.h"

namespace gpuassay {
namespace {

// Jobs of all users may report; what they say counts for themselves only.
constexpr mode_t kSocketMode = 0666;
// What one job sends without end costs a part of a core: after so many datagrams there is a pause,
// in which the kernel lets senders wait.
constexpr int kDatagramsAtOnce = 16;
constexpr int kPauseMs = 20;

Error SocketError(const std::string& path, int error) {
  const bool denied = error == EACCES || error == EPERM;
  return {denied ? ErrorCode::kPermission : ErrorCode::kIo,
          fmt::format("report socket {}: {}", path, std::strerror(error))};
}

// True when a socket file is there and nobody listens on it. To connect to a file of another kind
// is refused, too.
bool IsLeftBehind(const sockaddr_un& address) {
  struct stat status = {};
  if (lstat(address.sun_path, &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool refused =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno == ECONNREFUSED;
  close(fd);
  return refused;
}

Result<int> BindTo(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return std::unexpected(SocketError(path, ENAMETOOLONG));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return std::unexpected(SocketError(path, errno));
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes);
  if (IsLeftBehind(address)) unlink(path.c_str());
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      chmod(path.c_str(), kSocketMode) != 0) {
    const Error error = SocketError(path, errno);
    close(fd);
    return std::unexpected(error);
  }
  return fd;
}

struct Datagram {
  std::string_view text;
  std::uint32_t pid = 0;  // 0: the kernel did not tell, or it is not of our PID namespace
  bool cut = false;
};

// False when there is none now.
bool Receive(int fd, std::string& buffer, Datagram& datagram) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control = {};
  iovec part = {buffer.data(), buffer.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return false;
  datagram = {std::string_view(buffer).substr(0, static_cast<std::size_t>(size)), 0,
              (message.msg_flags & MSG_TRUNC) != 0};
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender = {};
    std::memcpy(&sender, CMSG_DATA(header), sizeof sender);
    if (sender.pid > 0) datagram.pid = static_cast<std::uint32_t>(sender.pid);
  }
  return true;
}

}  // namespace

struct ReportSocket::Impl {
  Impl(std::string socket_path, int socket_fd, MemoryReports& into, const Clock& its_clock)
      : path(std::move(socket_path)),
        fd(socket_fd),
        wake_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        reports(into),
        clock(its_clock) {}
  ~Impl() {
    thread.request_stop();
    eventfd_write(wake_fd, 1);
    if (thread.joinable()) thread.join();
    close(fd);
    close(wake_fd);
    unlink(path.c_str());
  }
  void Run(const std::stop_token& stop);
  void Take(const Datagram& datagram);
  void Refuse(const std::string& what);

  std::string path;
  int fd;
  int wake_fd;
  MemoryReports& reports;
  const Clock& clock;
  std::atomic<std::uint64_t> malformed = 0;
  std::jthread thread;  // the only one that counts `malformed` up
};

// Said once: a job that reports nonsense does so every few seconds. The rest is counted.
void ReportSocket::Impl::Refuse(const std::string& what) {
  if (malformed++ == 0) LogWarning(what);
}

void ReportSocket::Impl::Take(const Datagram& datagram) {
  if (datagram.pid == 0) {
    return Refuse("memory report: its process is not in the PID namespace of the agent");
  }
  if (datagram.cut) {
    return Refuse(fmt::format("process {}: memory report: longer than {} bytes", datagram.pid,
                              kDatagramBytesMax));
  }
  Result<std::vector<MemoryReport>> parsed = ParseMemoryReports(datagram.text);
  if (!parsed) return Refuse(fmt::format("process {}: {}", datagram.pid, parsed.error().what));
  reports.Set(datagram.pid, std::move(*parsed), clock.Steady());
}

void ReportSocket::Impl::Run(const std::stop_token& stop) {
  std::string buffer(kDatagramBytesMax, '\0');
  Datagram datagram;
  while (!stop.stop_requested()) {
    std::array<pollfd, 2> fds = {pollfd{wake_fd, POLLIN, 0}, pollfd{fd, POLLIN, 0}};
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    int taken = 0;
    while (taken < kDatagramsAtOnce && !stop.stop_requested() && Receive(fd, buffer, datagram)) {
      Take(datagram);
      ++taken;
    }
    if (taken == kDatagramsAtOnce) poll(fds.data(), 1, kPauseMs);  // ends at once with the socket
  }
}

ReportSocket::ReportSocket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ReportSocket::~ReportSocket() = default;

Result<std::unique_ptr<ReportSocket>> ReportSocket::Listen(const std::string& path,
                                                           MemoryReports& reports,
                                                           const Clock& clock) {
  const Result<int> fd = BindTo(path);
  if (!fd) return std::unexpected(fd.error());
  auto impl = std::make_unique<Impl>(path, *fd, reports, clock);
  if (impl->wake_fd < 0) return std::unexpected(SocketError(path, errno));
  impl->thread = std::jthread([raw = impl.get()](const std::stop_token& stop) { raw->Run(stop); });
  return std::unique_ptr<ReportSocket>(new ReportSocket(std::move(impl)));
}

std::uint64_t ReportSocket::malformed() const { return impl_->malformed; }

}  // namespace gpuassay
