// The values of a record's runs as one number for each metric, and their judgements as text.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "base/statistics.h"
#include "chain/history/golden.h"

namespace assay::chain::history {
namespace {

constexpr std::size_t kFirstNights = 8;  // whose median predictions are compared with
constexpr std::size_t kLongSeries = 10;  // losses from which on more than their mean is judged
constexpr Rule kStepByStep{0, 0, 0.075, Worse::higher};  // a fraction of the mean loss

double mean_of_values(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The median values of a metric in the nightly runs from the last accepted one on, at most
// kFirstNights, without those of `except`.
std::vector<double> first_values(const Golden& golden, const std::string& metric,
                                 const std::vector<double>* except = nullptr) {
  std::vector<const std::vector<double>*> nights;
  for (const Run& run : golden.runs) {
    const auto found = run.metrics.find(metric);
    if (run.accept) nights.clear();
    if (found == run.metrics.end() || run.purpose != Purpose::nightly) continue;
    if (&found->second.values == except) continue;
    if (!nights.empty() && nights.front()->size() != found->second.values.size()) continue;
    if (nights.size() < kFirstNights) nights.push_back(&found->second.values);
  }
  std::vector<double> medians(nights.empty() ? 0 : nights.front()->size());
  for (std::size_t i = 0; i < medians.size(); ++i) {
    std::vector<double> values;
    values.reserve(nights.size());
    for (const auto* night : nights) values.push_back((*night)[i]);
    medians[i] = upper_median(std::move(values));
  }
  return medians;
}

// The largest difference, as a fraction of the largest value. Another number of values is 1.
double distance_of(const std::vector<double>& values, const std::vector<double>& golden) {
  if (values.size() != golden.size()) return 1;
  double most = 0;
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    most = std::max(most, std::abs(values[i] - golden[i]));
    largest = std::max(largest, std::abs(golden[i]));
  }
  return most == 0 ? 0 : most / std::max(largest, most);
}

// The mean difference, as a fraction of the mean value. Another number of values says nothing.
double mean_distance(const std::vector<double>& values, const std::vector<double>& golden) {
  double apart = 0;
  double sum = 0;
  for (std::size_t i = 0; values.size() == golden.size() && i < values.size(); ++i) {
    apart += std::abs(values[i] - golden[i]);
    sum += std::abs(golden[i]);
  }
  return apart == 0 ? 0 : apart / std::max(sum, apart);
}

template <typename Value>
Judgement judge_metric(const Golden& golden, const std::string& metric, Kind kind, Value value,
                       const Rule& rule) {
  std::vector<Observation> history;
  std::vector<std::size_t> runs;  // by observation
  for (std::size_t i = 0; i < golden.runs.size(); ++i) {
    const Run& run = golden.runs[i];
    const auto found = run.metrics.find(metric);
    if (found == run.metrics.end() || found->second.kind != kind) continue;
    if (history.empty() && run.purpose != Purpose::nightly) continue;
    history.push_back({run.purpose, run.build, value(found->second.values), run.accept});
    runs.push_back(i);
  }
  Judgement judgement = judge(history, rule);
  if (judgement.since) judgement.since = runs[*judgement.since];
  return judgement;
}

void judge_into(std::vector<MetricJudgement>& all, const Golden& golden, const std::string& metric,
                const Metric& sample) {
  const auto add = [&](const std::string& text, auto value, const Rule& rule) {
    all.push_back({text, false, judge_metric(golden, metric, sample.kind, value, rule)});
  };
  const Rule usual = rule_of(sample.kind);
  if (sample.kind == Kind::prediction) {
    const std::vector<double> first = first_values(golden, metric);
    add(
        metric, [&](const std::vector<double>& values) { return distance_of(values, first); },
        usual);
    return;
  }
  add(
      metric, [](const std::vector<double>& values) { return mean_of_values(values); }, usual);
  if (sample.kind != Kind::loss || sample.values.size() < kLongSeries) return;
  add(
      metric + ", last tenth",
      [](const std::vector<double>& values) {
        return mean_of_values(std::span(values).last((values.size() + 9) / 10));
      },
      usual);
  // From the other nights, so that the first ones are as far as the later ones.
  add(
      metric + ", step by step",
      [&](const std::vector<double>& values) {
        return mean_distance(values, first_values(golden, metric, &values));
      },
      kStepByStep);
}

}  // namespace

std::vector<MetricJudgement> judge_golden(const Golden& golden) {
  const Run* last = nullptr;
  const Run* before = nullptr;
  for (const Run& run : golden.runs) {
    if (run.purpose == Purpose::nightly) before = std::exchange(last, &run);
  }
  std::vector<MetricJudgement> all;
  if (last == nullptr) return all;
  for (const auto& [metric, sample] : last->metrics) judge_into(all, golden, metric, sample);
  if (before == nullptr || last->accept) return all;
  for (const auto& [metric, sample] : before->metrics) {
    if (!last->metrics.contains(metric)) all.push_back({metric, true, {}});
  }
  return all;
}

std::string advice_on(const Judgement& judgement, const Golden& golden) {
  const std::string since = judgement.since
                                ? fmt::format("since {} ({}); ", golden.runs[*judgement.since].time,
                                              golden.runs[*judgement.since].build)
                                : "";
  switch (judgement.state) {
    case State::suspect:
      return fmt::format("record {} more of this build with --as rerun", judgement.wanted);
    case State::shifted:
      if (judgement.wanted == 0) return since + "wait for the next night";
      if (judgement.next == Purpose::rerun) {
        return fmt::format("{}record {} more of this build with --as rerun", since,
                           judgement.wanted);
      }
      return fmt::format("{}record {} of build {} with --as baseline", since, judgement.wanted,
                         judgement.baseline_build);
    case State::regression:
      return fmt::format("{}build {} does not have it", since, judgement.baseline_build);
    case State::improvement:
      return since + "it is the golden value from now on";
    case State::environment:
      return since + "not by the build; it is the golden value from now on";
    case State::good:
      break;
  }
  return "";
}

std::string line_of(const MetricJudgement& one, const Golden& golden) {
  if (one.missing) return fmt::format("missing      {}: the night before had it", one.metric);
  const Judgement& judgement = one.judgement;
  const std::string learnt =
      judgement.learning ? fmt::format("fixed: learnt from 8 nights, {} so far", judgement.learnt)
                         : fmt::format("learnt from {} nights", judgement.learnt);
  const std::string advice = advice_on(judgement, golden);
  return fmt::format("{:<12} {}: {:.6g}, golden {:.6g} +- {:.2g} ({}){}{}", name(judgement.state),
                     one.metric, judgement.value, judgement.golden, judgement.tolerance, learnt,
                     advice.empty() ? "" : "; ", advice);
}

}  // namespace assay::chain::history
