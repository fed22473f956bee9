#include "attribution/join/process_reader.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <utility>

#include "attribution/join/node_names.h"

namespace gpuassay {
namespace {

ProcessReader::Answer ReadOne(const Proc& proc, NodeNames& names, std::uint32_t pid,
                              ReadDepth depth) {
  ProcessReader::Answer answer{.pid = pid, .learned = LearnProcess(proc, pid, depth)};
  if (answer.learned) names.Fill(answer.learned->facts.owner);
  return answer;
}

}  // namespace

struct ProcessReader::State {
  std::mutex mutex;  // guards all that follows
  std::condition_variable_any changed;
  std::deque<std::uint32_t> queue;
  std::vector<Answer> answers;
  std::optional<std::uint32_t> under_way;
  SteadyTime since;  // of `under_way`
};

ProcessReader::ProcessReader(RootFs root, Duration give_up_after)
    : root_(std::move(root)), give_up_after_(give_up_after), state_(std::make_shared<State>()) {}

ProcessReader::~ProcessReader() {
  if (thread_) {
    const std::lock_guard lock(state_->mutex);
    state_->queue.clear();
  }
}

void ProcessReader::StartThread() {
  const auto work = [state = state_, root = root_](const std::stop_token& stop) {
    const SystemClock clock;
    const Proc proc(root);
    NodeNames names(root);
    std::unique_lock lock(state->mutex);
    while (state->changed.wait(lock, stop, [&state] { return !state->queue.empty(); })) {
      if (stop.stop_requested()) return;
      const std::uint32_t pid = state->queue.front();
      state->queue.pop_front();
      state->under_way = pid;
      state->since = clock.Steady();
      state->changed.notify_all();  // whoever waits can now tell until when
      lock.unlock();
      Answer answer = ReadOne(proc, names, pid, ReadDepth::kAll);
      lock.lock();
      if (stop.stop_requested()) return;
      state->answers.push_back(std::move(answer));
      state->under_way.reset();
      state->changed.notify_all();
    }
  };
  thread_ = std::make_unique<LeavableThread>(work);
}

void ProcessReader::Ask(const std::vector<std::uint32_t>& pids) {
  if (pids.empty()) return;
  std::erase_if(left_, [](const auto& thread) { return thread->ended(); });
  if (left_.size() >= kLeftMax) {
    const Proc proc(root_);
    NodeNames names(root_);
    const std::lock_guard lock(state_->mutex);
    for (const std::uint32_t pid : pids) {
      state_->answers.push_back(ReadOne(proc, names, pid, ReadDepth::kWhatCannotBlock));
      state_->answers.back().hangs = true;
    }
    return;
  }
  {
    const std::lock_guard lock(state_->mutex);
    std::ranges::copy(pids, std::back_inserter(state_->queue));
    state_->changed.notify_all();
  }
  if (!thread_) StartThread();
}

void ProcessReader::GiveUp() {
  const std::uint32_t pid = *state_->under_way;
  // A state of its own for whoever follows: the one that hangs may still come back.
  auto next = std::make_shared<State>();
  next->queue = std::exchange(state_->queue, {});
  next->answers = std::exchange(state_->answers, {});
  thread_->Leave();
  left_.push_back(std::move(thread_));
  state_ = std::move(next);
  const Proc proc(root_);
  NodeNames names(root_);
  state_->answers.push_back(ReadOne(proc, names, pid, ReadDepth::kWhatCannotBlock));
  state_->answers.back().hangs = true;
  if (state_->queue.empty()) return;
  if (left_.size() < kLeftMax) return StartThread();
  const std::vector<std::uint32_t> rest(state_->queue.begin(), state_->queue.end());
  state_->queue.clear();
  Ask(rest);
}

std::vector<ProcessReader::Answer> ProcessReader::Take(Duration wait) {
  const SteadyTime end = clock_.Steady() + wait;
  for (;;) {
    const std::shared_ptr<State> state = state_;
    std::unique_lock lock(state->mutex);
    const auto idle = [&state] { return state->queue.empty() && !state->under_way; };
    const SteadyTime now = clock_.Steady();
    if (state->under_way && now - state->since >= give_up_after_) {
      GiveUp();
      continue;
    }
    if (idle() || now >= end) return std::exchange(state->answers, {});
    Duration until = end - now;
    if (state->under_way) until = std::min(until, state->since + give_up_after_ - now);
    state->changed.wait_for(lock, until);
  }
}

}  // namespace gpuassay
