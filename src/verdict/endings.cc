#include "verdict/endings.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <numeric>

#include "verdict/messages.h"

namespace assay {
namespace {

bool overdue(const wire::LaneRecord* lane) { return lane->status() == wire::Status::timed_out; }

std::uint64_t took_us(const wire::LaneRecord& lane) {
  if (lane.nanoseconds() == nullptr) return 0;
  return std::accumulate(lane.nanoseconds()->begin(), lane.nanoseconds()->end(), std::uint64_t{0}) /
         1000;
}

// Two digits, with commas between thousands: "37,000".
std::string rounded_down(std::uint64_t number) {
  std::string digits = std::to_string(number);
  if (digits.size() > 2) std::fill(digits.begin() + 2, digits.end(), '0');
  for (std::size_t from_end = 3; from_end < digits.size(); from_end += 4) {
    digits.insert(digits.size() - from_end, 1, ',');
  }
  return digits;
}

bool killed(const wire::LaneRecord* lane) {
  return lane != nullptr && lane->status() == wire::Status::crashed &&
         lane->exit_signal() == SIGKILL && !lane->oom_killed();
}

}  // namespace

bool is_mutant(const wire::Trial& trial) { return !text(trial.mutant()).empty(); }

bool is_whole(const wire::Record& record) {
  if (record.trials() == nullptr || record.trials()->size() == 0) return false;
  return std::all_of(record.trials()->begin(), record.trials()->end(),
                     [](const wire::Trial* trial) {
                       if (is_skipped(*trial)) return true;
                       if (trial->lanes() == nullptr || trial->lanes()->size() == 0) return false;
                       if (trial->pairs() == nullptr) return true;
                       return std::all_of(trial->pairs()->begin(), trial->pairs()->end(),
                                          [&](const wire::Pair* pair) {
                                            return pair->left() < trial->lanes()->size() &&
                                                   pair->right() < trial->lanes()->size();
                                          });
                     });
}

bool is_skipped(const wire::Trial& trial) { return !text(trial.skipped()).empty(); }

std::string others_of_overdue(const wire::Trial& trial, const wire::LaneRecord& overdue) {
  std::string others;
  for (const wire::LaneRecord* lane : *trial.lanes()) {
    if (lane == &overdue) continue;
    if (lane->status() == wire::Status::timed_out) {
      others += fmt::format("; the {} lane as well", text(lane->name()));
    }
    if (lane->status() != wire::Status::ok) continue;
    const std::uint64_t took = std::max<std::uint64_t>(took_us(*lane), 1);
    const std::uint64_t times = took_us(overdue) / took;
    others += fmt::format("; the {} lane took {:.3g} s", text(lane->name()),
                          static_cast<double>(took) / 1e6);
    if (times >= 10) others += fmt::format(", this one over {} times as long", rounded_down(times));
  }
  return others;
}

bool killed_from_outside(const wire::Record& record) {
  if (!is_whole(record)) return false;
  return std::any_of(record.trials()->begin(), record.trials()->end(),
                     [](const wire::Trial* trial) {
                       if (is_skipped(*trial)) return false;
                       return std::any_of(trial->lanes()->begin(), trial->lanes()->end(), killed);
                     });
}

std::optional<std::uint64_t> took_beside_overdue_us(const wire::Record& record) {
  if (!is_whole(record)) return std::nullopt;
  std::optional<std::uint64_t> longest;
  for (const wire::Trial* trial : *record.trials()) {
    if (is_skipped(*trial)) continue;
    if (std::none_of(trial->lanes()->begin(), trial->lanes()->end(), overdue)) continue;
    for (const wire::LaneRecord* lane : *trial->lanes()) {
      if (lane->status() != wire::Status::ok) continue;
      longest = std::max(longest.value_or(0), took_us(*lane));
    }
  }
  return longest;
}

}  // namespace assay
