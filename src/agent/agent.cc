#include "agent/agent.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <fstream>
#include <mutex>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/root_fs.h"

namespace gpuassay {
namespace {

sigset_t HandledSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP}) sigaddset(&signals, number);
  return signals;
}

// What the supervisor's thread tells the main thread: the source cannot be opened.
class BadInput {
 public:
  void Set(const Error& error) {
    {
      const std::lock_guard lock(mutex_);
      error_ = error;
    }
    kill(getpid(), SIGTERM);
  }
  std::optional<Error> Get() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  mutable std::mutex mutex_;  // guards error_
  std::optional<Error> error_;
};

// Returns when asked to end.
void ServeSignals(Supervisor& supervisor, const sigset_t& signals) {
  for (;;) {
    int number = 0;
    sigwait(&signals, &number);
    if (number == SIGTERM || number == SIGINT) return;
    if (number == SIGUSR1) supervisor.Release();
    if (number == SIGUSR2) supervisor.Resume();
  }
}

// Where a person or a script reaches the server: the host that was asked for, else this machine.
std::string Url(const std::string& address, std::uint16_t port) {
  const std::string host = address.substr(0, address.rfind(':'));
  const bool any = host.empty() || host == "0.0.0.0" || host == "[::]" || host == "*";
  return fmt::format("http://{}:{}", any ? "127.0.0.1" : host, port);
}

Result<void> WritePortFile(const std::string& path, std::uint16_t port) {
  if (path.empty()) return {};
  // Written under another name first: whoever waits for the file never reads half a number.
  const std::string draft = path + ".new";
  std::ofstream file(draft);
  file << port << '\n';
  file.close();
  if (!file || rename(draft.c_str(), path.c_str()) != 0) {
    return Fail(ErrorCode::kIo, fmt::format("port file {}: cannot be written", path));
  }
  return {};
}

}  // namespace

Result<void> RunAgent(AgentOptions options) {
  const Result<RootFs> root = RootFs::Open(options.node.root.empty() ? "/" : options.node.root);
  if (!root) return Fail(ErrorCode::kMalformed, root.error().what);
  const sigset_t signals = HandledSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const SystemClock clock;
  BadInput bad_input;
  options.supervisor.clock = &clock;
  options.supervisor.on_bad_input = [&bad_input](const Error& error) { bad_input.Set(error); };
  const WorkerOptions& worker = options.supervisor.worker;
  Result<std::unique_ptr<NodeJoin>> join = NodeJoin::Open(
      worker.source, options.node, NodeJoin::Pace::kLive, clock, worker.simulator_speed);
  if (!join) return std::unexpected(join.error());
  auto completion = std::make_unique<Completion>(worker.interval, std::move(*join));
  Supervisor supervisor(std::move(options.supervisor), std::move(completion));
  options.server.root = *root;
  const Result<std::unique_ptr<Server>> server = Server::Start(options.server, supervisor, clock);
  if (!server) return Fail(ErrorCode::kMalformed, server.error().what);
  supervisor.Start();
  const Result<void> port_file = WritePortFile(options.port_file, (*server)->port());
  if (!port_file) return port_file;
  const std::string url = Url(options.server.address, (*server)->port());
  LogInfo(fmt::format("listening on {}", url));
  if (!options.greeting.empty()) {
    fmt::print(fmt::runtime(options.greeting), fmt::arg("url", url));
    std::fflush(stdout);
  }
  ServeSignals(supervisor, signals);
  if (const std::optional<Error> error = bad_input.Get()) {
    return Fail(ErrorCode::kMalformed, error->what);
  }
  LogInfo("ending");
  return {};
}

}  // namespace gpuassay
