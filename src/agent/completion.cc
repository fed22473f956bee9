#include "agent/completion.h"

#include <utility>

namespace gpuassay {

Completion::Completion(Duration interval, std::unique_ptr<NodeJoin> join)
    : join_(std::move(join)), integrator_(interval) {}

void Completion::SourceStarts() {
  if (join_) join_->SourceStarts();
}

void Completion::Apply(Snapshot& snapshot) {
  Join(snapshot);
  integrator_.Apply(snapshot);
  ledger_.Apply(snapshot);
}

void Completion::Join(Snapshot& snapshot) {
  if (join_) join_->Apply(snapshot);
}

}  // namespace gpuassay
