#include "verdict/speed_verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/statistics.h"
#include "verdict/timings.h"

namespace assay {
namespace {

Outcome outcome_of(Speed speed) {
  switch (speed) {
    case Speed::slow:
      return Outcome::slow;
    case Speed::fast:
      return Outcome::fast;
    case Speed::same:
      return Outcome::same;
    case Speed::unsure:
      break;
  }
  return Outcome::unsure;
}

}  // namespace

void judge_speed(const wire::LaneRecord& test, const wire::LaneRecord& reference, double margin,
                 Verdict& verdict) {
  const std::vector<SpeedRow> rows = speed_rows(series_of(test), series_of(reference), margin);
  const Speed speed = speed_of_case(rows);
  verdict.outcome = outcome_of(speed);
  const auto told = std::find_if(rows.begin(), rows.end(), [speed](const SpeedRow& row) {
    return row.decides && row.speed == speed;
  });
  if (told == rows.end()) return;
  verdict.message =
      fmt::format("{}: {} against {}, {}", told->what, time_text(median_of(told->left.nanoseconds)),
                  time_text(median_of(told->right.nanoseconds)), ratio_text(told->ratio));
  if (!info(verdict.outcome).failed) return;
  Fault& fault = verdict.faults.emplace_back();
  fault.outcome = verdict.outcome;
  fault.lane = wire::EnumNameRole(test.role());
  fault.raised = told->what;
  fault.message = verdict.message;
}

}  // namespace assay
