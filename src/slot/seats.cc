#include "slot/seats.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "slot/slot_memory.h"
#include "slot/timing.h"

namespace assay {
namespace {

// A reference lane of retries is replaced after this many runs.
constexpr std::uint64_t kMostRetriesOfLane = 64;
// An arena gives back memory beyond this after each batch.
constexpr std::uint64_t kArenaKeep = std::uint64_t{1} << 30;
constexpr std::uint64_t kRetryArenaKeep = std::uint64_t{1} << 25;
// A killed lane has ended by then.
constexpr std::chrono::seconds kEndLimit{10};

std::filesystem::path lane_log(const SlotConfig& config, const wire::LaneSpecT& spec) {
  return std::filesystem::path(config.log_dir) /
         fmt::format("slot{}-{}-{}.log", config.index, spec.label, wire::EnumNameRole(spec.role));
}

LaneSource lane_source(const SlotConfig& config, const wire::LaneSpecT& spec,
                       const std::shared_ptr<SharedInputs>& inputs, bool retry) {
  const bool own_server = retry && !spec.retry_address.empty();
  const std::vector<std::uint8_t>& address = own_server ? spec.retry_address : spec.address;
  return {std::string(address.begin(), address.end()), spec.device, lane_log(config, spec),
          on_cpu(spec) ? inputs : nullptr};
}

void end_lane(LaneSeat& seat) {
  if (seat.shared) seat.shared->close_all();
  seat.lane.reset();
}

}  // namespace

Seats::Seats(const SlotConfig& config, const std::shared_ptr<LazyDevice>& opened,
             const std::shared_ptr<SharedInputs>& inputs)
    : config_(config) {
  for (const wire::LaneSpecT& spec : config.lanes) {
    if (!spec.goldens.empty()) continue;  // recorded results need no lane
    const bool gpu = !on_cpu(spec);
    if (!device_ && gpu) {
      device_ = opened && opened->name() == spec.device ? opened
                                                        : std::make_shared<LazyDevice>(spec.device);
    }
    for (const bool retry : {false, true}) {
      auto shared = gpu ? std::make_unique<SharedCache>(device_) : nullptr;
      of(retry).push_back({spec, lane_source(config, spec, inputs, retry), std::nullopt, nullptr,
                           std::move(shared), retry});
    }
  }
}

// Whether a reference lane on a GPU serves the next retry too. The suspect is the test lane, which
// only retries of one shared process share. A new lane costs 0.4 s there, because the driver makes
// contexts serially, even across processes.
bool Seats::stays_for_next(const LaneSeat& seat) const {
  return seat.lane && seat.on_gpu() && seat.spec.role == wire::Role::reference &&
         !is_timed(config_.settings) && seat.lane->cases_run() < kMostRetriesOfLane;
}

bool Seats::are_fresh(bool retry) const {
  const std::vector<LaneSeat>& seats = retry ? for_retries_ : shared_;
  return std::none_of(seats.begin(), seats.end(), [&](const LaneSeat& seat) {
    return seat.lane && seat.lane->cases_run() > 0 && !(retry && stays_for_next(seat));
  });
}

void Seats::end_batch(bool retry, bool followed) {
  for (LaneSeat& seat : of(retry)) {
    const bool ends =
        retry ? !followed && !stays_for_next(seat) : seat.lane && seat.lane->outside_mps();
    if (ends) end_lane(seat);
    if (seat.arena) seat.arena->trim(retry ? kRetryArenaKeep : kArenaKeep);
  }
}

Status Seats::end_all() {
  for (const bool retry : {false, true}) {
    for (LaneSeat& seat : of(retry)) {
      if (seat.shared) seat.shared->close_all();
      if (seat.lane) {
        seat.lane->kill();
        ASSAY_CHECK(seat.source.wait_exit(*seat.lane, kEndLimit));
        seat.lane.reset();
      }
      if (seat.arena) seat.arena->trim(kRetryArenaKeep);
    }
  }
  return {};
}

}  // namespace assay
