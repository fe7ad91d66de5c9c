#pragma once

// Compares two analyses: figures of a mean step of a mean rank, so other numbers of steps or ranks
// change nothing, with the significance of the step time.

#include <optional>
#include <string>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/insights.h"
#include "timeline/model.h"

namespace assay::timeline {

struct ComparedRow {
  std::string name;
  std::optional<double> before, after;  // none: only in the other run
};

struct ComparedSection {
  std::string title, unit;
  std::vector<ComparedRow> rows;  // of measurements, the largest change first
};

// Mean step times. The bounds are of the 95% confidence interval of the change, from the spread
// over the steps (Welch); steps far from the others, such as the first, do not count.
struct StepChange {
  double before = 0, after = 0;  // ms
  double percent = 0;
  std::optional<double> low, high;  // percent; none with fewer than two steps in a run
  std::string verdict() const;      // "slower", "faster", "no significant change", …
};

struct Comparison {
  StepChange step;
  std::vector<std::string> changes;  // new culprits, and those that are gone; one line each
  std::string before_schedule, after_schedule;
  std::vector<ComparedSection> sections;

  // Whether a step takes at least `percent` longer, and not by chance. Without spread, the means
  // alone decide.
  bool slower(double percent) const;
};

struct ComparedRun {
  const Trace& trace;
  const Analysis& analysis;
  const Insights& insights;
};

Comparison compare(const ComparedRun& before, const ComparedRun& after);

// `format` is table, json or markdown. For a page: comparison_html().
std::string comparison_text(const Comparison& comparison, const std::string& format);

}  // namespace assay::timeline
