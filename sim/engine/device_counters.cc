// Faults, MIG layouts, counters and samples of a Device.
#include <algorithm>
#include <cmath>

#include "sim/engine/device.h"
#include "sim/engine/identifiers.h"

namespace gpuassay::sim {
namespace {

// NVML's event types and recovery actions.
constexpr std::uint64_t kSingleBitEvent = 0x1;
constexpr std::uint64_t kDoubleBitEvent = 0x2;
constexpr std::uint64_t kXidEvent = 0x8;
constexpr std::uint64_t kMigConfigEvent = 0x100;
constexpr std::uint32_t kRecoveryGpuReset = 1;
constexpr std::uint32_t kRecoveryNodeReboot = 2;
constexpr std::uint64_t kXidDoubleBit = 48;
constexpr std::uint32_t kRemappedRowsMax = 512;

std::uint32_t Percent(double ratio) {
  return static_cast<std::uint32_t>(std::lround(std::clamp(ratio, 0.0, 1.0) * 100));
}

void AddTotals(const Load& load, double seconds, ActivityTotals& totals) {
  totals.seconds += seconds;
  totals.busy += load[kBusy] * seconds;
  totals.graphics_engine += load[kBusy] * seconds;
  totals.sm_active += load[kSmActive] * seconds;
  totals.sm_occupancy += load[kSmOccupancy] * seconds;
  totals.tensor += load[kTensor] * seconds;
  totals.fp64 += load[kFp64] * seconds;
  totals.fp32 += load[kFp32] * seconds;
  totals.fp16 += load[kFp16] * seconds;
  totals.integer += load[kInteger] * seconds;
  totals.dram += load[kDram] * seconds;
  totals.pcie_transmit_bytes += load[kPcieTransmit] * seconds;
  totals.pcie_receive_bytes += load[kPcieReceive] * seconds;
  totals.nvlink_transmit_bytes += load[kNvlinkTransmit] * seconds;
  totals.nvlink_receive_bytes += load[kNvlinkReceive] * seconds;
}

}  // namespace

void Device::Emit(Duration at, std::uint64_t type, std::uint64_t data) {
  events_.push_back({at, type, data, std::nullopt});
  if (events_.size() > kEventsMax) {
    events_.pop_front();
  }
}

void Device::UpdateFaults(Duration begin, Duration end, DeviceState& state) {
  conditions_ = ConditionsAt(scenario_->gpus[index_], faults_, end);
  state.lost = conditions_.lost || shut_down_;
  state.reset_required = conditions_.reset_required;
  state.garbage = conditions_.garbage;
  state.fabric_ready = conditions_.fabric_ready;
  state.row_remap_failed = conditions_.row_remap_failed;
  UpdateLinkState(state);
  EmitMoments(begin, end, state);
  const bool pending = conditions_.row_remap_pending || state.remapped_uncorrectable > 0;
  state.row_remap_pending = model_->features.row_remapping && pending;
  state.recovery_action = state.lost                                        ? kRecoveryNodeReboot
                          : state.reset_required || state.row_remap_pending ? kRecoveryGpuReset
                                                                            : 0;
}

void Device::EmitMoments(Duration begin, Duration end, DeviceState& state) {
  for (const Fault* fault : faults_) {
    if (fault->kind == FaultKind::kXid) {
      // The occurrences within the tick, without walking over all the earlier ones.
      const Duration since = std::max(Duration::zero(), begin - fault->at);
      for (auto i = since / fault->every; i < fault->count; ++i) {
        const Duration at = fault->at + fault->every * i;
        if (at > end) {
          break;
        }
        if (at > begin) {
          Emit(at, kXidEvent, static_cast<std::uint64_t>(fault->value));
        }
      }
    }
    if (fault->kind == FaultKind::kEccUncorrected && fault->at > begin && fault->at <= end) {
      state.ecc_uncorrected += fault->value;
      state.ecc_uncorrected_lifetime += fault->value;
      Emit(fault->at, kDoubleBitEvent, 0);
      Emit(fault->at, kXidEvent, kXidDoubleBit);
      if (model_->features.row_remapping) {
        state.remapped_uncorrectable =
            std::min(kRemappedRowsMax,
                     state.remapped_uncorrectable + static_cast<std::uint32_t>(fault->value));
      }
    }
  }
}

void Device::UpdateMig(Duration at, DeviceState& state) {
  const bool first = shares_.empty();
  if (!first && conditions_.mig_layout == mig_layout_) {
    return;
  }
  mig_layout_ = conditions_.mig_layout;
  const std::vector<std::string>& names =
      mig_layout_ != nullptr ? mig_layout_->layout : scenario_->gpus[index_].mig;
  if (!first) {
    ++mig_generation_;
    // Of the change itself, not of the tick that sees it.
    mig_since_ = mig_layout_ != nullptr ? mig_layout_->at : at;
    Emit(at, kMigConfigEvent, 0);
  }
  std::vector<const MigProfile*> profiles;
  for (const std::string& name : names) {
    profiles.push_back(FindMigProfile(*model_, name));
  }
  const auto placed = PlaceMigInstances(*model_, profiles);
  state.mig.clear();
  shares_.clear();
  for (std::uint32_t i = 0; i < profiles.size(); ++i) {
    MigState instance;
    instance.index = i;
    instance.gpu_instance_id = placed ? (*placed)[i].gpu_instance_id : i;
    instance.generation = mig_generation_;
    instance.uuid = MigUuid(*scenario_, index_, i, mig_generation_);
    instance.profile = profiles[i];
    instance.memory_total_bytes = profiles[i]->memory_bytes;
    state.mig.push_back(instance);
    Share share;
    share.sm = static_cast<double>(profiles[i]->multiprocessors) /
               static_cast<double>(model_->multiprocessors);
    share.dram = static_cast<double>(profiles[i]->memory_slices) / 8;
    shares_.push_back(share);
  }
  if (shares_.empty()) {
    shares_.emplace_back();
  }
}

// Which links are up, and how much traffic they can carry.
void Device::UpdateLinkState(DeviceState& state) {
  for (LinkState& link : state.links) {
    link.active = true;
  }
  for (const Fault* fault : conditions_.links) {
    for (std::uint32_t i = 0; i < state.links.size(); ++i) {
      if (fault->kind == FaultKind::kNvlinkDown && fault->link.value_or(i) == i) {
        state.links[i].active = false;
      }
    }
  }
  const auto active = std::ranges::count(state.links, true, &LinkState::active);
  nvlink_room_ = static_cast<double>(active) * model_->nvlink_bytes_per_second_per_link;
  pcie_room_ = PcieBytesPerSecond(conditions_.pcie_generation, conditions_.pcie_width);
}

void Device::CountLinks(DeviceState& state) {
  state.pcie_replays += conditions_.pcie_replays_per_second * tick_seconds_;
  for (const Fault* fault : conditions_.links) {
    for (std::uint32_t i = 0; i < state.links.size(); ++i) {
      LinkState& link = state.links[i];
      if (fault->kind != FaultKind::kNvlinkErrors || fault->link.value_or(i) != i) {
        continue;
      }
      double& counter = fault->counter == "replay"     ? link.replay_errors
                        : fault->counter == "recovery" ? link.recovery_errors
                                                       : link.crc_errors;
      counter += fault->value * tick_seconds_;
    }
  }
  // Programs spread their traffic over the links that are up. The driver counts whole KiB.
  const auto active = std::ranges::count(state.links, true, &LinkState::active);
  for (std::size_t i = 0; i < state.links.size(); ++i) {
    if (!state.links[i].active) {
      continue;
    }
    const double seconds = tick_seconds_ / static_cast<double>(active);
    link_bytes_[i].transmit += load_[kNvlinkTransmit] * seconds;
    link_bytes_[i].receive += load_[kNvlinkReceive] * seconds;
    state.links[i].transmit_kib = static_cast<std::uint64_t>(link_bytes_[i].transmit / 1024);
    state.links[i].receive_kib = static_cast<std::uint64_t>(link_bytes_[i].receive / 1024);
  }
}

void Device::UpdateHealth(DeviceState& state) {
  if (conditions_.ecc_corrected_per_second <= 0) {
    return;
  }
  const double errors = conditions_.ecc_corrected_per_second * tick_seconds_;
  const double before = std::floor(state.ecc_corrected);
  state.ecc_corrected += errors;
  state.ecc_corrected_lifetime += errors;
  if (std::floor(state.ecc_corrected) > before) {
    Emit(TickTime(tick_), kSingleBitEvent, 0);
  }
}

void Device::UpdateTotals(DeviceState& state) {
  AddTotals(load_, tick_seconds_, state.totals);
  for (std::size_t i = 0; i < state.mig.size(); ++i) {
    AddTotals(shares_[i].done, tick_seconds_, state.mig[i].totals);
  }
}

void Device::UpdateSamples(Duration at, DeviceState& state) {
  window_resident_ += load_[kResident];
  window_dram_ += load_[kDram];
  for (std::size_t i = 0; i < programs_.size(); ++i) {
    if (programs_[i].alive) {
      AddScaled(window_programs_[i], programs_[i].load, shares_[ShareOf(programs_[i])].part);
    }
  }
  ++window_ticks_;
  const auto period = static_cast<std::uint64_t>(std::lround(model_->utilization_period_s * 6));
  if (tick_ % std::max<std::uint64_t>(1, period) != 0) {
    return;
  }
  const double ticks = window_ticks_;
  const double utilization =
      std::clamp(window_resident_ / ticks * (1 + Noise(NoiseChannel::kUtilization)), 0.0, 1.0);
  const double memory =
      std::clamp(window_dram_ / ticks * (1 + Noise(NoiseChannel::kMemoryUtilization)), 0.0, 1.0);
  state.utilization_percent = Percent(utilization);
  state.memory_utilization_percent = Percent(memory);
  state.encoder_percent = Percent(load_[kEncoder]);
  state.decoder_percent = Percent(load_[kDecoder]);
  SampleProcesses(at, utilization, state);
  if (state.garbage) {
    AddGarbage(at, state);
  }
  state.utilization_samples.push_back(
      {at, state.utilization_percent, state.memory_utilization_percent});
  if (state.utilization_samples.size() > kSampleHistory) {
    state.utilization_samples.pop_front();
  }
  while (state.process_samples.size() > kProcessSamplesMax ||
         (!state.process_samples.empty() &&
          state.process_samples.front().at < state.utilization_samples.front().at)) {
    state.process_samples.pop_front();
  }
  window_resident_ = 0;
  window_dram_ = 0;
  window_ticks_ = 0;
  std::ranges::fill(window_programs_, Load{});
}

// The sampled utilisation, divided by the programs' shares of busy time.
void Device::SampleProcesses(Duration at, double utilization, DeviceState& state) {
  double busy = 0;
  for (const Load& load : window_programs_) {
    busy += load[kBusy];
  }
  const double ticks = window_ticks_;
  for (std::size_t i = 0; i < programs_.size(); ++i) {
    const Load& load = window_programs_[i];
    ProcessUtilizationSample sample;
    sample.at = at;
    sample.pid = programs_[i].timeline.process().pid;
    sample.sm_percent = busy > 0 ? Percent(utilization * load[kBusy] / busy) : 0;
    sample.memory_percent = Percent(load[kDram] / ticks);
    sample.encoder_percent = Percent(load[kEncoder] / ticks);
    sample.decoder_percent = Percent(load[kDecoder] / ticks);
    if (sample.sm_percent + sample.memory_percent + sample.encoder_percent +
            sample.decoder_percent >
        0) {
      state.process_samples.push_back(sample);
    }
  }
}

// Seen in the field: utilisation above 100, samples of processes that are gone.
void Device::AddGarbage(Duration at, DeviceState& state) {
  const std::uint64_t hash = HashOf(scenario_->seed, index_, NoiseChannel::kGarbage, tick_);
  if (hash % 4 != 0) {
    return;
  }
  state.utilization_percent = 101 + static_cast<std::uint32_t>((hash >> 8U) % 900);
  ProcessUtilizationSample sample;
  sample.at = at;
  sample.pid = 4'000'000 + static_cast<std::uint32_t>((hash >> 24U) % 100'000);
  sample.sm_percent = 200 + static_cast<std::uint32_t>((hash >> 40U) % 10'000);
  sample.memory_percent = static_cast<std::uint32_t>((hash >> 56U) & 0xFFU);
  state.process_samples.push_back(sample);
}

}  // namespace gpuassay::sim
