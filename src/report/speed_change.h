#pragma once

// The timings of a run against those of a past one.
//
// Two runs are hours apart, and the machine is not the same: as a yardstick serves the reference
// lane, where both runs had the same build of it. Otherwise that is the pace of all cases together:
// their ratios' median. What all cases share is told as the pace, and no case is blamed for it. By
// a host's clock that is a poor yardstick, since a case is timed within a moment of its own: there
// only what differs a lot is called slow or fast.

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "report/past.h"

namespace assay {

// Of what changed in one way, a comparison on a terminal shows this many; its JSON has all.
constexpr std::size_t kShownOfEach = 20;

// The page has so many rows of times at most.
constexpr std::size_t kTimesOfPage = 5'000;

// [low, middle, high] for the page. JSON has no infinity, which a ratio of too few observations
// ends at: there it is a large number.
nlohmann::json interval_json(const Ratio& ratio);

// One part of a case, now and then.
struct SpeedChange {
  std::uint64_t id = 0;
  std::string text;
  std::string what;  // "forward host warm"
  double now = 0;    // nanoseconds of a call
  double before = 0;
  Ratio ratio;  // of now to before, beside the yardstick
  Speed speed = Speed::unsure;
};

class SpeedComparison {
 public:
  // Fewer parts than these have no pace of their own.
  static constexpr std::size_t kEnoughForPace = 20;
  // Of 430 parts of runs of one build 30 differed by more than 2.5%, 5 by more than 10% and 1 by
  // more than this (lab/benchmarks/2026-11-23-performance-modes.md).
  static constexpr double kMarginOfRuns = 0.15;

  SpeedComparison() = default;
  SpeedComparison(bool same_reference, double margin)
      : same_reference_(same_reference), margin_(margin) {}

  void take(std::uint64_t id, std::string_view text, const std::vector<TimedPart>& now,
            const std::vector<TimedPart>& before);
  // After the last take().
  void finish();

  bool empty() const { return parts_.empty(); }
  std::uint64_t count(Speed speed) const;
  const std::vector<SpeedChange>& parts() const { return parts_; }

  // For a terminal.
  std::string table() const;
  nlohmann::json json() const;
  // For the page: rows as performance_json() has them, with "now" and "then" for the lanes.
  nlohmann::json rows() const;

 private:
  double margin_of(const SpeedChange& part) const;

  bool same_reference_ = false;
  double margin_ = 0;
  double pace_ = 1;
  std::vector<SpeedChange> parts_;
};

}  // namespace assay
