#pragma once

// Compares the timings of a run with those of a past run.
//
// The machine may be faster or slower than in the past run. If both runs had the same build of the
// reference framework, times relative to the reference lane are compared. Otherwise the times are
// divided by the pace: the median ratio of all cases. The report states the pace, and no case is
// blamed for it. On the host's clock the pace is inaccurate, because each case is timed at another
// moment; there only large differences are called slow or fast.

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "report/past.h"

namespace assay {

// A comparison on a terminal shows this many slower and faster parts; its JSON has all.
constexpr std::size_t kShownOfEach = 20;

// The page has at most this many rows of times.
constexpr std::size_t kTimesOfPage = 5'000;

// [low, middle, high] for the page. A large number replaces infinity, which JSON does not have.
nlohmann::json interval_json(const Ratio& ratio);

// One part of a case, now and then.
struct SpeedChange {
  std::uint64_t id = 0;
  std::string text;
  std::string what;  // "forward host warm"
  double now = 0;    // nanoseconds per call
  double before = 0;
  Ratio ratio;  // now divided by before, relative to the reference lane if there is one
  Speed speed = Speed::unsure;
};

class SpeedComparison {
 public:
  // The pace needs at least this many parts.
  static constexpr std::size_t kEnoughForPace = 20;
  // Margin for the host's clock. Of 430 parts of two runs of one build, 30 differed by more than
  // 2.5%, 5 by more than 10%, and 1 by more than this (lab/gpu.md).
  static constexpr double kMarginOfRuns = 0.15;

  SpeedComparison() = default;
  SpeedComparison(bool same_reference, double margin)
      : same_reference_(same_reference), margin_(margin) {}

  // Adds a case with its timings in both runs.
  void take(std::uint64_t id, std::string_view text, const std::vector<TimedPart>& now,
            const std::vector<TimedPart>& before);
  // Computes the pace and the speeds. Call it after the last take().
  void finish();

  bool empty() const { return parts_.empty(); }
  // The number of parts with this speed.
  std::uint64_t count(Speed speed) const;
  const std::vector<SpeedChange>& parts() const { return parts_; }

  // The comparison as text for a terminal.
  std::string table() const;
  nlohmann::json json() const;
  // Rows for the page, as in performance_json() but with "now" and "then" instead of the lanes.
  nlohmann::json rows() const;

 private:
  double margin_of(const SpeedChange& part) const;

  bool same_reference_ = false;
  double margin_ = 0;
  double pace_ = 1;
  std::vector<SpeedChange> parts_;
};

}  // namespace assay
