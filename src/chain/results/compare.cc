#include "chain/results/compare.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"

namespace assay::chain::results {
namespace {

namespace fs = std::filesystem;

void flatten(const nlohmann::json& value, std::vector<double>& out) {
  if (value.is_number()) {
    out.push_back(value.get<double>());
  } else if (value.is_structured()) {
    for (const nlohmann::json& item : value) flatten(item, out);
  }
}

// For whole-word search: `1.jpg` must not match in `11.jpg`.
bool is_name_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

std::string_view precision_of(std::string_view name) {
  for (const std::string_view precision : {"fp32", "fp16", "bf16", "int8"}) {
    if (name.find(precision) != std::string_view::npos) return precision;
  }
  return {};
}

std::vector<fs::path> files_like(const std::string& pattern) {
  const fs::path whole(pattern);
  const fs::path folder = whole.has_parent_path() ? whole.parent_path() : fs::path(".");
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const bool matches =
        ::fnmatch(whole.filename().c_str(), entry->path().filename().c_str(), 0) == 0;
    if (matches && entry->is_regular_file()) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<double> values_of(const std::vector<StoredReading>& readings, std::string_view name) {
  std::vector<double> values;
  for (const StoredReading& reading : readings) {
    if (reading.name == name) values.push_back(reading.value);
  }
  return values;
}

// A value with the part of it that may be noise.
struct Measured {
  double value = 0;  // 0: not measured
  double noise = 0;
};

constexpr std::size_t kFewestReadings = 3;  // readings from which a spread is learnt
constexpr double kUnknownSpread = 0.08;     // of the value, for fewer readings: a third is noise
constexpr double kFloorMs = 1;
constexpr double kFloorMb = 64;

// The mean without the first value, which includes one-time costs, and its standard error.
Measured mean_after_first(std::vector<double> values) {
  if (values.size() > 1) values.erase(values.begin());
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() < kFewestReadings) return {mean, mean * kUnknownSpread};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / (count - 1) / count)};
}

// A peak that was sampled. The memory may have risen further until the next sample by what it rose
// since the one before.
Measured peak_of(double peak, const std::vector<double>& samples) {
  if (samples.size() < kFewestReadings) return {peak, peak};
  const auto top = std::max_element(samples.begin(), samples.end());
  const double before = top == samples.begin() ? 0 : *top - *(top - 1);
  return {peak, before};
}

// The longest time that is not slower by more than a fraction of the speed.
double slowest(double took, double fraction) {
  return fraction < 1 ? took / (1 - fraction) : HUGE_VAL;
}

Finding finding(bool good, std::string text) {
  return {good ? Finding::Grade::good : Finding::Grade::bad, std::move(text)};
}

}  // namespace

std::vector<double> numbers_of(std::string_view text) {
  std::vector<double> numbers;
  const nlohmann::json json = parse_json(trimmed(text));
  if (!json.is_discarded()) {
    flatten(json, numbers);
    return numbers;
  }
  for (std::size_t at = 0; at < text.size();) {
    // A digit in a word (`conv2d`, `fp32`) is not a number.
    const bool in_word = at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0 ||
                                    text[at - 1] == '_');
    double value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    const auto after = static_cast<std::size_t>(end - text.data());
    const bool starts_word = after < text.size() && is_letter(text[after]) &&
                             is_letter(text[after - 1]);  // `inf` of `info`
    if (in_word || error != std::errc() || starts_word) {
      ++at;
      continue;
    }
    numbers.push_back(value);
    at = after;
  }
  return numbers;
}

Result<Predictions> read_stored_results(std::string_view text) {
  Predictions predictions;
  int number = 0;
  for (const std::string& line : split_at(text, '\n')) {
    ++number;
    if (trimmed(line).empty()) continue;
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) {
      return usage_error(fmt::format("line {}: expected `image <TAB> prediction`", number));
    }
    predictions[std::string(trimmed(std::string_view(line).substr(0, tab)))] =
        numbers_of(std::string_view(line).substr(tab + 1));
  }
  if (predictions.empty()) return usage_error("no stored result in it");
  return predictions;
}

Predictions find_in_log(std::string_view log, const Predictions& wanted) {
  Predictions found;
  const std::vector<std::string> lines = split_at(log, '\n');
  for (const auto& [name, ignored] : wanted) {
    for (const std::string& line : lines) {
      const std::size_t at = line.rfind(name);
      if (at == std::string::npos || (at > 0 && is_name_part(line[at - 1]))) continue;
      found[name] = numbers_of(std::string_view(line).substr(at + name.size()));
      break;
    }
  }
  return found;
}

std::string vacuous_because(const Predictions& predictions) {
  std::vector<double> all;
  for (const auto& [name, values] : predictions)
    all.insert(all.end(), values.begin(), values.end());
  if (all.empty()) return "there are no numbers";
  if (std::all_of(all.begin(), all.end(), [&](double value) { return value == all.front(); })) {
    return fmt::format("every value is {}", all.front());
  }
  const std::vector<double>& first = predictions.begin()->second;
  const bool same = predictions.size() > 1 &&
                    std::all_of(predictions.begin(), predictions.end(),
                                [&](const auto& entry) { return entry.second == first; });
  return same ? "every image gives the same values" : "";
}

std::vector<Finding> compare_outputs(const Predictions& expected, const Predictions& actual,
                                     const OutputTolerance& tolerance) {
  std::vector<Finding> findings;
  for (const auto& [name, wanted] : expected) {
    const auto found = actual.find(name);
    if (found == actual.end()) {
      findings.push_back(finding(false, fmt::format("{}: no prediction in the log", name)));
      continue;
    }
    const std::vector<double>& got = found->second;
    if (got.size() != wanted.size()) {
      findings.push_back(finding(
          false, fmt::format("{}: {} values, expected {}", name, got.size(), wanted.size())));
      continue;
    }
    const auto is_bad = [](double value) { return !std::isfinite(value); };
    const auto bad = std::ranges::find_if(got, is_bad);
    if (bad != got.end() || std::ranges::any_of(wanted, is_bad)) {
      findings.push_back(finding(
          false, bad == got.end()
                     ? fmt::format("{}: the expected values are not all finite", name)
                     : fmt::format("{}: value {} is {}", name, bad - got.begin() + 1, *bad)));
      continue;
    }
    const double atol = tolerance.atol.value_or(kUsualAtol);
    double worst_abs = 0;
    double worst_rel = 0;
    bool close = true;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double difference = std::abs(got[i] - wanted[i]);
      close = close && difference <= atol + tolerance.rtol * std::abs(wanted[i]);
      worst_abs = std::max(worst_abs, difference);
      if (wanted[i] != 0) worst_rel = std::max(worst_rel, difference / std::abs(wanted[i]));
    }
    findings.push_back(
        finding(close, fmt::format("{}: max difference {:.3g} absolute, {:.3g} relative", name,
                                   worst_abs, worst_rel)));
  }
  const std::string vacuous = vacuous_because(expected);
  if (!vacuous.empty()) {
    findings.push_back(
        {Finding::Grade::vacuous, "these results cannot tell models apart: " + vacuous});
  }
  return findings;
}

Result<std::vector<Finding>> compare_files(const std::string& stored, const std::string& logs,
                                           const OutputTolerance& tolerance) {
  const std::vector<fs::path> log_files = files_like(logs);
  std::map<std::string, Predictions> by_precision;
  for (const fs::path& file : files_like(stored)) {
    ASSAY_TRY(const std::string text, read_file(file));
    auto predictions = read_stored_results(text);
    if (!predictions) return usage_error(file.string() + ": " + predictions.error().message);
    by_precision[std::string(precision_of(file.filename().string()))] = std::move(*predictions);
  }
  if (by_precision.empty()) return usage_error("no file matches " + stored);
  std::vector<Finding> findings;
  std::size_t compared = 0;
  for (const fs::path& log : log_files) {
    const auto expected = by_precision.find(std::string(precision_of(log.filename().string())));
    if (expected == by_precision.end()) continue;
    ASSAY_TRY(const std::string text, read_file(log));
    ++compared;
    for (Finding& one :
         compare_outputs(expected->second, find_in_log(text, expected->second), tolerance)) {
      one.text = log.filename().string() + ": " + one.text;
      findings.push_back(std::move(one));
    }
  }
  if (compared == 0)
    return usage_error(
        fmt::format("no log matches {} with the precision of a stored result", logs));
  return findings;
}

namespace {

double milliseconds_of(const stage::AutoLog& fields) {
  const auto found = fields.find("inference_time(ms)");
  if (found == fields.end()) return 0;
  double value = 0;
  std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  return value;
}

// `series` is "STAGE: loss" or "STAGE: loss_ce".
Finding compare_losses(const std::string& series, const std::vector<double>& base,
                       const std::vector<double>& current, double rtol) {
  if (base.size() != current.size()) {
    return finding(false,
                   fmt::format("{}: {} values, {} before", series, current.size(), base.size()));
  }
  for (std::size_t i = 0; i < base.size(); ++i) {
    if (std::abs(current[i] - base[i]) <= rtol * std::max(std::abs(base[i]), 1e-12)) continue;
    return finding(false,
                   fmt::format("{} {} is {:.6g}, {:.6g} before", series, i, current[i], base[i]));
  }
  return finding(true, fmt::format("{}: {} values reproduced", series, base.size()));
}

// A prediction may change by a thousandth of itself. Next to zero, rounding is up to kFloor of the
// largest one.
void compare_predictions(const std::string& stage, const std::vector<double>& base,
                         const std::vector<double>& current, std::vector<Finding>& out) {
  constexpr double kShare = 1e-3;
  constexpr double kFloor = 1e-5;
  if (base.empty() && current.empty()) return;
  if (base.size() != current.size()) {
    return out.push_back(finding(false, fmt::format("{}: {} numbers predicted, {} before", stage,
                                                    current.size(), base.size())));
  }
  double largest = 0;
  for (const double value : base) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < base.size(); ++i) {
    if (std::abs(current[i] - base[i]) <= std::max(kShare * std::abs(base[i]), kFloor * largest)) {
      continue;
    }
    return out.push_back(finding(false, fmt::format("{}: prediction {} is {:.6g}, {:.6g} before",
                                                    stage, i, current[i], base[i])));
  }
  out.push_back(finding(true, fmt::format("{}: {} predictions reproduced", stage, base.size())));
}

// The losses that the old readings have, and totals that only the new ones have.
std::set<std::string> losses_of(const std::vector<StoredReading>& old_readings,
                                const std::vector<StoredReading>& new_readings) {
  std::set<std::string> names;
  for (const StoredReading& reading : old_readings) {
    if (stage::is_loss(reading.name)) names.insert(reading.name);
  }
  for (const StoredReading& reading : new_readings) {
    if (reading.name == "loss" || reading.name == "eval_loss") names.insert(reading.name);
  }
  return names;
}

// A change for the worse by `excess`. It is bad if it is above the threshold and is not noise.
Finding judged(std::string text, bool above, double excess, double noise) {
  const bool bad = above && !(excess <= noise);  // NaN is bad
  if (above && !bad) text += fmt::format(" (noise is up to {:.3g})", noise);
  return finding(!bad, std::move(text));
}

double noise_of(const Measured& one, const Measured& other, double floor) {
  constexpr double kErrors = 3;
  return std::max(floor, kErrors * std::hypot(one.noise, other.noise));
}

// Something that costs more if it is larger: time per batch, memory.
void compare_costs(std::string_view stage, std::string_view what, const Measured& before,
                   const Measured& now, double limit, double floor, std::vector<Finding>& out) {
  if (before.value <= 0) return;
  std::string text =
      fmt::format("{}: {:.4g} {}, {:.4g} before", stage, now.value, what, before.value);
  if (now.value <= 0) return out.push_back(finding(false, std::move(text)));
  out.push_back(judged(std::move(text), !(now.value <= limit), now.value - before.value,
                       noise_of(now, before, floor)));
}

void compare_speeds(const std::string& stage, const std::vector<StoredReading>& old_readings,
                    const std::vector<StoredReading>& new_readings, double fraction,
                    std::vector<Finding>& out) {
  const auto mean = [](const std::vector<StoredReading>& readings, std::string_view name) {
    return mean_after_first(values_of(readings, name));
  };
  const Measured before = mean(old_readings, "ips");
  const Measured now = mean(new_readings, "ips");
  if (before.value > 0) {
    std::string text = fmt::format("{}: {:.3g} ips, {:.3g} before", stage, now.value, before.value);
    const bool slower = !(now.value >= before.value * (1 - fraction));
    out.push_back(
        judged(std::move(text), slower, before.value - now.value, noise_of(now, before, 0)));
    return;
  }
  const Measured cost = mean(new_readings, "batch_cost");
  const Measured old_cost = mean(old_readings, "batch_cost");
  compare_costs(stage, "s a batch", old_cost, cost, slowest(old_cost.value, fraction),
                kFloorMs / 1e3, out);
}

Status compare_stage(ChainStore& base, const StoredStage& old, ChainStore& current,
                     const StoredStage& now, const RunThresholds& thresholds,
                     std::vector<Finding>& out) {
  ASSAY_TRY(const std::vector<StoredReading> old_readings, base.readings(old.id));
  ASSAY_TRY(const std::vector<StoredReading> new_readings, current.readings(now.id));
  std::string hint = fmt::format("; which operator? assay capture --judge -- {}", now.command);
  for (const std::string& loss : losses_of(old_readings, new_readings)) {
    out.push_back(compare_losses(now.name + ": " + loss, values_of(old_readings, loss),
                                 values_of(new_readings, loss), thresholds.loss_rtol));
    if (out.back().grade == Finding::Grade::bad) out.back().text += std::exchange(hint, {});
  }
  compare_predictions(now.name, values_of(old_readings, kPrediction),
                      values_of(new_readings, kPrediction), out);
  compare_speeds(now.name, old_readings, new_readings, thresholds.speed, out);
  ASSAY_TRY(const stage::AutoLog old_fields, base.autolog(old.id));
  ASSAY_TRY(const stage::AutoLog new_fields, current.autolog(now.id));
  const double took = milliseconds_of(old_fields);
  compare_costs(now.name, "ms an inference", {took, 0}, {milliseconds_of(new_fields), 0},
                slowest(took, thresholds.speed), kFloorMs, out);
  const auto compare_memory = [&](double before, double peak, const char* samples,
                                  std::string_view what) {
    compare_costs(now.name, what, peak_of(before, values_of(old_readings, samples)),
                  peak_of(peak, values_of(new_readings, samples)), before * (1 + thresholds.memory),
                  kFloorMb, out);
  };
  compare_memory(old.peak_rss_mb, now.peak_rss_mb, "rss_mb", "MB");
  compare_memory(old.gpu_memory_mb, now.gpu_memory_mb, "gpu_used_mb", "MB of GPU memory");
  return {};
}

}  // namespace

Result<std::vector<Finding>> compare_runs(ChainStore& base, ChainStore& current,
                                          const RunThresholds& thresholds) {
  ASSAY_TRY(const std::vector<StoredRun> new_runs, current.runs());
  ASSAY_TRY(const std::vector<StoredRun> old_runs, base.runs());
  if (new_runs.empty()) return usage_error("no run in the current store");
  const StoredRun& now = new_runs.back();
  const auto old = std::find_if(old_runs.rbegin(), old_runs.rend(), [&](const StoredRun& run) {
    return run.mode == now.mode && run.model == now.model;
  });
  if (old == old_runs.rend()) {
    return usage_error(fmt::format("no run of {} {} in the base store", now.model, now.mode));
  }
  ASSAY_TRY(const std::vector<StoredStage> old_stages, base.stages(old->id));
  ASSAY_TRY(const std::vector<StoredStage> new_stages, current.stages(now.id));
  std::vector<Finding> findings;
  std::size_t passed_in_both = 0;
  for (const StoredStage& stage : new_stages) {
    const auto before = std::ranges::find(old_stages, stage.name, &StoredStage::name);
    if (before == old_stages.end()) continue;
    if (stage.state != before->state) {
      findings.push_back(
          finding(stage.state == "passed",
                  fmt::format("{}: {}, {} before", stage.name, stage.state, before->state)));
    }
    if (stage.state != "passed" || before->state != "passed") continue;
    ++passed_in_both;
    ASSAY_CHECK(compare_stage(base, *before, current, stage, thresholds, findings));
  }
  for (const StoredStage& before : old_stages) {
    const auto after = std::ranges::find(new_stages, before.name, &StoredStage::name);
    if (before.state == "passed" && after == new_stages.end()) {
      findings.push_back(finding(false, before.name + ": not in this run, passed before"));
    }
  }
  if (passed_in_both == 0) {
    findings.push_back({Finding::Grade::vacuous, "no stage passed in both runs"});
  } else if (findings.empty()) {
    findings.push_back(finding(true, fmt::format("{} stages passed in both runs", passed_in_both)));
  }
  return findings;
}

}  // namespace assay::chain::results
