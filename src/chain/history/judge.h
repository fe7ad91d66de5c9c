#pragma once

// Decides from the history of one metric whether it changed, and whether the build is to blame.
//
// The golden value is the median of the last nights, and the tolerance a multiple of their median
// absolute deviation (Rousseeuw and Croux, "Alternatives to the Median Absolute Deviation", JASA
// 1993), widened by Student's t because few nights tell little. A change is a change-point: the
// last 1 to 5 nights against all before them, as Hunter does it (Fleming et al., "Hunter: Using
// Change Point Detection to Hunt for Performance Regressions", ICPE 2023), with medians in place of
// its means. A change is then reproduced (2 reruns), and compared with the build before it on the
// same machine: 2 runs of the baseline build, then 2 of the new build, because what disturbs a
// machine ends some time. Only these last four decide, because the earlier ones were selected by
// their values.
//
//   good -> suspect -> (reruns) -> shifted -> (baseline build, reruns) -> regression
//                                                                      -> improvement
//                                                                      -> environment

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay::chain::history {

enum class Purpose {
  nightly,   // the first run of a night
  rerun,     // the same build again
  baseline,  // an earlier build, on the machine as it is now
};

struct Observation {
  Purpose purpose = Purpose::nightly;
  std::string build;
  double value = 0;     // finite
  bool accept = false;  // the owner says: from this run on, this is the golden value
};

enum class Worse { higher, lower, either };

// What counts as a change of a metric. Fractions are of the golden value.
struct Rule {
  double first = 0;  // fraction that is tolerated until enough nights are known
  double least = 0;  // a smaller fraction is never a change
  double floor = 0;  // a smaller difference is never a change; in the metric's unit
  Worse worse = Worse::either;
};

enum class State {
  good,
  suspect,      // outside the tolerance: rerun
  shifted,      // reproduced: run the baseline build, then this one again
  regression,   // the baseline build does not have it
  improvement,  // the same, for the better; it is the new golden value
  environment,  // the baseline build has it too, or the build did not change; it is the new golden
                // value
};
std::string_view name(State state);

struct Judgement {
  State state = State::good;
  std::size_t learnt = 0;  // nights that the tolerance comes from
  bool learning = false;   // they are too few: the tolerance is Rule::first
  double golden = 0;
  double tolerance = 0;              // of one night, in the metric's unit
  double value = 0;                  // of the last night, or of the nights since the change
  std::optional<std::size_t> since;  // index of the observation that the change starts with
  std::string baseline_build;        // the build before the change, or of the last good night
  std::size_t wanted = 0;            // runs to add tonight,
  Purpose next = Purpose::rerun;     // of this purpose
};

// `history` is in the order of time and starts with a nightly run. The answer is for its last
// night. An empty history is good.
Judgement judge(std::span<const Observation> history, const Rule& rule);

}  // namespace assay::chain::history
