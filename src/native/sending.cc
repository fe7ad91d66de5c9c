#include "native/sending.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace assay::native {
namespace {

// Interval at which a lane checks its device. Waiting results are compared only then: a longer
// interval leaves the slot and then the lanes idle. A shorter one sends more messages; 2 ms cost 8%
// of a lane's time.
constexpr std::int64_t kMarkAfterNs = 8'000'000;

// Waits until the device has finished all queued work, then sends the replies.
Status settle(ModuleState& state) {
  if (const Status done = state.device->synchronize(); !done) end_of_device(state, done.error());
  Status sent = state.kept.send(*state.channel);
  state.checksums.clear();
  return sent;
}

// Sends the replies of the work that the device has finished by now.
Status go_along(ModuleState& state) {
  if (!state.kept.any_marked()) {
    if (monotonic_ns() - state.marked_ns < kMarkAfterNs) return {};
    if (const Status marked = state.device->mark(); !marked) end_of_device(state, marked.error());
    state.kept.mark();
    state.marked_ns = monotonic_ns();
    return {};
  }
  const Result<bool> reached = state.device->reached();
  if (!reached) end_of_device(state, reached.error());
  return *reached ? state.kept.send_marked(*state.channel) : Status();
}

}  // namespace

void end_of_device(ModuleState& state, const Error& error) {
  fmt::print(stderr, "assay lane: {}\n", error.message);
  (void)std::fflush(stderr);
  if (state.kept.count() > 1) {
    state.channel->arena().header().running.store(wire::kIdle, std::memory_order_release);
  }
  state.channel->end_of_device();
  ::_exit(kDeviceFaultExit);
}

Status send_reply(ModuleState& state) {
  const std::span<const std::uint8_t> message = wire::bytes_of(state.builder);
  if (state.device->is_host()) {
    Status sent = state.channel->reply(message);
    state.checksums.clear();
    return sent;
  }
  std::vector<const std::uint64_t*> sums;
  sums.reserve(state.fillings.size());
  for (const Filling& filling : state.fillings) sums.push_back(filling.checksum);
  state.kept.keep(message, std::move(sums));
  const bool wait = state.channel->batch().careful() || state.channel->at_last_job();
  return wait ? settle(state) : go_along(state);
}

}  // namespace assay::native
