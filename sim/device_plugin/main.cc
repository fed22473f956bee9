// The device plugin of a scenario's node as a program: tests/kubernetes runs it against a kubelet.
#include <pthread.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <thread>

#include "base/log.h"
#include "sim/device_plugin/device_plugin.h"

namespace {

int Complain(const gpuassay::Error& error) {
  gpuassay::LogError(error.what);
  return error.code == gpuassay::ErrorCode::kMalformed ? 2 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Tells a kubelet the GPUs of a scenario.", "gpuassay-device-plugin");
  std::string scenario_path;
  std::string directory;
  app.add_option("--scenario", scenario_path, "The scenario, with kubernetes: {resources: ...}")
      ->required();
  app.add_option("--directory", directory, "The kubelet's device-plugins directory")->required();
  CLI11_PARSE(app, argc, argv);

  const auto scenario = gpuassay::sim::LoadScenario(scenario_path);
  if (!scenario) return Complain(scenario.error());

  // Before any thread begins: only sigwait takes them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  int status = 0;
  std::jthread worker([&](std::stop_token stop) {
    gpuassay::sim::DevicePlugin plugin(*scenario, directory);
    const auto ended = plugin.Run(stop, [] { gpuassay::LogInfo("registered with the kubelet"); });
    if (!ended) {
      status = Complain(ended.error());
      kill(getpid(), SIGTERM);
    }
  });
  int signal = 0;
  sigwait(&signals, &signal);
  worker.request_stop();
  worker.join();
  return status;
}
