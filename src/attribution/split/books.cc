#include "attribution/split/books.h"

#include "attribution/split/owner_key.h"

namespace gpuassay::books {

Account& DeviceBooks::AccountOf(const std::string& key, const ProcessOwner& owner,
                                std::uint64_t cycle, std::size_t accounts_max) {
  auto found = accounts_.find(key);
  if (found == accounts_.end() && accounts_.size() >= accounts_max && !MakeRoom(cycle)) {
    has_other_ = true;
    other_.kind = OwnerKind::kOther;
    other_.Begin(cycle);
    return other_;
  }
  if (found == accounts_.end()) {
    found = accounts_.emplace(key, std::make_unique<Account>()).first;
    found->second->kind = KindOfOwner(owner);
    found->second->owner = OwnerAsOne(owner);
  }
  found->second->Begin(cycle);
  return *found->second;
}

bool DeviceBooks::MakeRoom(std::uint64_t cycle) {
  auto oldest = accounts_.end();
  for (auto it = accounts_.begin(); it != accounts_.end(); ++it) {
    const bool gone = it->second->cycle + 1 < cycle;  // here neither now nor in the last cycle
    if (!gone) continue;
    const bool older =
        oldest == accounts_.end() || it->second->last_present < oldest->second->last_present;
    if (older) oldest = it;
  }
  if (oldest == accounts_.end()) return false;
  MoveToOther(*oldest->second);
  accounts_.erase(oldest);
  return true;
}

void DeviceBooks::Forget(SteadyTime since) {
  std::erase_if(accounts_, [&](const auto& item) {
    if (item.second->last_present >= since) return false;
    MoveToOther(*item.second);
    return true;
  });
}

void DeviceBooks::MoveToOther(const Account& account) {
  has_other_ = true;
  other_.kind = OwnerKind::kOther;
  for (std::size_t i = 0; i < kCounters; ++i) other_.totals[i].Merge(account.totals[i]);
  other_.held.Merge(account.held);
  other_.held_idle.Merge(account.held_idle);
}

}  // namespace gpuassay::books
