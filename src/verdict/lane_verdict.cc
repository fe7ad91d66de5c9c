#include "verdict/lane_verdict.h"

#include <fmt/format.h>

#include <csignal>
#include <optional>

#include "base/process.h"
#include "verdict/endings.h"
#include "verdict/messages.h"

namespace assay {
namespace {

bool sanitized(const wire::LaneRecord& lane) { return text(lane.phase()) == wire::kSanitizerPhase; }
// Whether both lanes rejected the call. If both raised only while copying the results, neither did.
bool both_refused(const wire::LaneRecord& test, const wire::LaneRecord& reference) {
  const bool both_called = text(test.phase()) == "copy" && text(reference.phase()) == "copy";
  return raised(test) && raised(reference) && !both_called;
}

Verdict of_lane(Outcome outcome, const wire::LaneRecord& lane, std::string message) {
  Verdict verdict;
  verdict.outcome = outcome;
  verdict.lane = text(lane.name());
  verdict.message = std::move(message);
  Fault& fault = verdict.faults.emplace_back();
  fault.outcome = outcome;
  fault.lane = wire::EnumNameRole(lane.role());
  fault.phase = text(lane.phase());
  fault.raised = error_kind(verdict.message);
  fault.message = verdict.message;
  return verdict;
}

// The stage that a lane did not come back from: the last one in which it spent time.
std::string last_stage(const wire::LaneRecord& lane) {
  const auto* times = lane.nanoseconds();
  for (std::uint32_t at = times == nullptr ? 0 : times->size(); at > 0; --at) {
    if (times->Get(at - 1) > 0) return wire::EnumNameStage(static_cast<wire::Stage>(at - 1));
  }
  return "";
}

Verdict dead(const wire::LaneRecord& lane) {
  const std::string who = text(lane.name());
  if (lane.status() == wire::Status::timed_out) {
    const std::string when = text(lane.error());
    return of_lane(
        Outcome::timeout, lane,
        fmt::format("the {} lane ran out of time{}{}", who, when.empty() ? "" : " ", when));
  }
  if (lane.exit_signal() == SIGKILL && lane.oom_killed()) {
    return of_lane(Outcome::oom, lane,
                   fmt::format("the kernel ran out of memory and killed the {} lane", who));
  }
  std::string how = lane.exit_signal() != 0 ? "died of " + signal_name(lane.exit_signal())
                                            : std::string("ended by itself");
  if (const std::string reason = text(lane.error()); !reason.empty()) how = "was ended: " + reason;
  return of_lane(Outcome::crash, lane, fmt::format("the {} lane {}", who, how));
}

// The verdict of a lane that ended without a result; nullopt for a lane with one.
std::optional<Verdict> of_status(const wire::LaneRecord& lane) {
  switch (lane.status()) {
    case wire::Status::refused:
      return of_lane(Outcome::invalid, lane, lane_message(lane));
    case wire::Status::unsupported:
      return of_lane(Outcome::unsupported, lane, lane_message(lane));
    case wire::Status::skipped:
      return of_lane(Outcome::skip, lane, lane_message(lane));
    case wire::Status::absent:
      return of_lane(Outcome::no_golden, lane, lane_message(lane));
    case wire::Status::no_kernel:
      return of_lane(Outcome::no_kernel, lane,
                     fmt::format("{}: {}", text(lane.name()), lane_message(lane)));
    case wire::Status::out_of_memory:
      return of_lane(Outcome::oom, lane, lane_message(lane));
    case wire::Status::timed_out:
    case wire::Status::crashed: {
      Verdict verdict = dead(lane);
      verdict.faults.front().phase = last_stage(lane);
      return verdict;
    }
    case wire::Status::raised:
      if (sanitized(lane)) return of_lane(Outcome::sanitizer, lane, text(lane.error()));
      return of_lane(
          lane.role() == wire::Role::test ? Outcome::test_error : Outcome::reference_error, lane,
          lane_message(lane));
    case wire::Status::ok:
      break;
  }
  return std::nullopt;
}

const wire::LaneRecord* first_ended(const wire::Trial& trial, wire::Role role) {
  for (const wire::LaneRecord* lane : *trial.lanes()) {
    if (lane->role() == role && lane->status() != wire::Status::ok) return lane;
  }
  return nullptr;
}

}  // namespace

bool raised(const wire::LaneRecord& lane) {
  return lane.status() == wire::Status::raised && !sanitized(lane);
}

bool decided_by_lanes(const wire::Trial& trial, Verdict& verdict) {
  const wire::LaneRecord* test = first_ended(trial, wire::Role::test);
  const wire::LaneRecord* reference = first_ended(trial, wire::Role::reference);
  if (test != nullptr && reference != nullptr && both_refused(*test, *reference)) {
    verdict.outcome = Outcome::rejected;
    verdict.message = fmt::format("{}: {} | {}: {}", text(test->name()), lane_message(*test),
                                  text(reference->name()), lane_message(*reference));
    return true;
  }
  const wire::LaneRecord* lane = test != nullptr ? test : reference;
  if (lane == nullptr) return false;
  verdict = *of_status(*lane);
  if (verdict.outcome == Outcome::timeout) verdict.message += others_of_overdue(trial, *lane);
  return true;
}

}  // namespace assay
