#pragma once

// The golden record of a model: what its runs on one device measured, build by build, and its file
// format.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chain/history/judge.h"

namespace assay::chain::history {

enum class Kind { loss, speed, time, memory, prediction };
std::string_view name(Kind kind);
Rule rule_of(Kind kind);

struct Metric {
  Kind kind = Kind::loss;
  std::vector<double> values;  // losses by step; predictions in the order of the log; else one
};

struct Run {
  std::string time;   // UTC, ISO 8601
  std::string build;  // framework and version
  Purpose purpose = Purpose::nightly;
  bool accept = false;
  std::map<std::string, Metric> metrics;  // by "STAGE: loss", "STAGE: ips", …
};

struct Golden {
  static constexpr int kVersion = 1;

  std::string model;
  std::string mode;
  std::string device;     // GPU model, or "CPU"
  std::vector<Run> runs;  // by time; the first is nightly
};

// Parses a golden file. `path` is for messages.
Result<Golden> read_golden(std::string_view text, const std::string& path);
std::string write_golden(const Golden& golden);

// The name of its file: model, mode and device.
std::string file_name_of(const Golden& golden);

// The judgement of one metric, or of one aspect of it ("train: loss, its end").
struct MetricJudgement {
  std::string metric;
  bool missing = false;  // the night before had it, the last night does not
  Judgement judgement;
};

// Judges the last night. A series of losses is judged by its mean, by the mean of its last tenth,
// and by the mean distance of its steps from those of the other first nights; predictions by their
// largest distance from the median of the first nights.
std::vector<MetricJudgement> judge_golden(const Golden& golden);

// Since when, and what to do; "" for a good one.
std::string advice_on(const Judgement& judgement, const Golden& golden);

// One line: state, metric, value, golden value, tolerance and what it was learnt from, and what to
// do.
std::string line_of(const MetricJudgement& one, const Golden& golden);

}  // namespace assay::chain::history
