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

// The mean without the first value, which includes one-time costs.
double mean_after_first(const std::vector<double>& values) {
  if (values.empty()) return 0;
  const std::size_t from = values.size() > 1 ? 1 : 0;
  double sum = 0;
  for (std::size_t i = from; i < values.size(); ++i) sum += values[i];
  return sum / static_cast<double>(values.size() - from);
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
    if (in_word || error != std::errc()) {
      ++at;
      continue;
    }
    numbers.push_back(value);
    at = static_cast<std::size_t>(end - text.data());
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
    double worst_abs = 0;
    double worst_rel = 0;
    bool close = true;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double difference = std::abs(got[i] - wanted[i]);
      // This form is false for NaN.
      close = close && difference <= tolerance.atol + tolerance.rtol * std::abs(wanted[i]);
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

void compare_losses(const std::string& stage, const std::vector<double>& base,
                    const std::vector<double>& current, double rtol, std::vector<Finding>& out) {
  if (base.empty() && current.empty()) return;
  if (base.size() != current.size()) {
    out.push_back(finding(
        false, fmt::format("{}: {} losses, {} before", stage, current.size(), base.size())));
    return;
  }
  for (std::size_t i = 0; i < base.size(); ++i) {
    if (std::abs(current[i] - base[i]) <= rtol * std::max(std::abs(base[i]), 1e-12)) continue;
    out.push_back(finding(
        false, fmt::format("{}: loss {} is {:.6g}, {:.6g} before", stage, i, current[i], base[i])));
    return;
  }
  out.push_back(finding(true, fmt::format("{}: {} losses reproduced", stage, base.size())));
}

Status compare_stage(ChainStore& base, const StoredStage& old, ChainStore& current,
                     const StoredStage& now, const RunThresholds& thresholds,
                     std::vector<Finding>& out) {
  ASSAY_TRY(const std::vector<StoredReading> old_readings, base.readings(old.id));
  ASSAY_TRY(const std::vector<StoredReading> new_readings, current.readings(now.id));
  for (const char* loss : {"loss", "eval_loss"}) {
    compare_losses(now.name, values_of(old_readings, loss), values_of(new_readings, loss),
                   thresholds.loss_rtol, out);
  }
  const double old_ips = mean_after_first(values_of(old_readings, "ips"));
  const double new_ips = mean_after_first(values_of(new_readings, "ips"));
  if (old_ips > 0) {
    out.push_back(
        finding(new_ips >= old_ips * (1 - thresholds.speed),
                fmt::format("{}: {:.3g} ips, {:.3g} before", now.name, new_ips, old_ips)));
  }
  const auto no_longer = [&](double now_takes, double took, std::string_view what) {
    if (took <= 0) return;
    out.push_back(
        finding(now_takes > 0 && now_takes * (1 - thresholds.speed) <= took,
                fmt::format("{}: {:.3g} {}, {:.3g} before", now.name, now_takes, what, took)));
  };
  if (old_ips <= 0) {
    no_longer(mean_after_first(values_of(new_readings, "batch_cost")),
              mean_after_first(values_of(old_readings, "batch_cost")), "s a batch");
  }
  ASSAY_TRY(const stage::AutoLog old_fields, base.autolog(old.id));
  ASSAY_TRY(const stage::AutoLog new_fields, current.autolog(now.id));
  no_longer(milliseconds_of(new_fields), milliseconds_of(old_fields), "ms an inference");
  if (old.peak_rss_mb > 0) {
    out.push_back(finding(
        now.peak_rss_mb <= old.peak_rss_mb * (1 + thresholds.memory),
        fmt::format("{}: {:.0f} MB, {:.0f} before", now.name, now.peak_rss_mb, old.peak_rss_mb)));
  }
  if (old.gpu_memory_mb > 0) {
    out.push_back(finding(now.gpu_memory_mb <= old.gpu_memory_mb * (1 + thresholds.memory),
                          fmt::format("{}: {:.0f} MB of GPU memory, {:.0f} before", now.name,
                                      now.gpu_memory_mb, old.gpu_memory_mb)));
  }
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
    const auto before =
        std::find_if(old_stages.begin(), old_stages.end(),
                     [&](const StoredStage& other) { return other.name == stage.name; });
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
    const bool there =
        std::any_of(new_stages.begin(), new_stages.end(),
                    [&](const StoredStage& stage) { return stage.name == before.name; });
    if (before.state == "passed" && !there) {
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
