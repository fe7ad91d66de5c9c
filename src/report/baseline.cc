#include "report/baseline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/toml.h"
#include "base/values.h"
#include "store/known_deviations.h"

namespace assay {
namespace {

constexpr std::int64_t kBaselineVersion = 2;
constexpr double kMostCases = 1e15;
constexpr std::string_view kFault = "[[fault]]";
constexpr const char* kHead =
    "# Known faults: `assay report RUN --against THIS_FILE` fails on any other fault.\n"
    "# Written by `assay report RUN --write-baseline THIS_FILE`, which keeps comments above "
    "faults.\n";

struct Baseline {
  PastRun past;
  bool is_list = false;                      // of faults without a number of cases
  std::string head = kHead;                  // comments before everything else
  std::map<FaultKey, std::string> comments;  // above each fault
};

// ---- reading ----

bool is_date(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00";
  return std::ranges::equal(text, kForm, [](char c, char form) {
    return form == '0' ? c >= '0' && c <= '9' : c == form;
  });
}

Status read_fault(TomlTable& table, Baseline& baseline, FaultKey& key) {
  KnownFault known;
  std::string outcome = "mismatch";
  std::vector<std::string> values;
  std::vector<std::string> dtypes;
  double cases = 0;
  double of = 0;
  double error = 0;
  ASSAY_CHECK(table.read("api", key.api, "outcome", outcome, "where", key.where, "how", key.how));
  if (key.how == "not finite") key.how = "NaN or infinity wrong";  // of older baselines
  ASSAY_CHECK(table.read("values", values, "dtypes", dtypes, "cases", cases, "of", of, "error",
                         error, "reason", known.reason, "owner", known.owner, "upstream",
                         known.upstream, "until", known.until));
  if (!known.until.empty() && !is_date(known.until)) {
    return usage_error(fmt::format("a fault of {}: until = {} is no date such as \"2027-01-31\"",
                                   key.api, toml_text(known.until)));
  }
  if (key.api.empty()) return usage_error("a [[fault]] has no api");
  if (!(cases >= 0 && cases < kMostCases) || !(of >= 0 && of < kMostCases) || error < 0) {
    return usage_error(
        fmt::format("a fault of {}: cases, of and error must not be negative", key.api));
  }
  const auto found = find_outcome(outcome);
  if (!found) return usage_error(fmt::format("a fault of {} has no outcome {}", key.api, outcome));
  key.outcome = *found;
  known.sums.cases = std::llround(cases);
  known.judged = std::llround(of);
  known.sums.extent = {
      {values.begin(), values.end()}, {dtypes.begin(), dtypes.end()}, error_step_of(error)};
  baseline.past.faults[key] = std::move(known);
  return {};
}

bool read_count(std::string_view text, std::int64_t& count) {
  return read_number(text, count) && count >= 0;
}

// "paddle.add float16" = "12 of 40": counts of one API and dtype.
bool read_coverage(const std::string& name, const std::string& value, std::int64_t Coverage::*count,
                   PastRun& past) {
  const std::size_t space = name.find(' ');
  Coverage& coverage = past.coverage[{name.substr(0, space),
                                      space == std::string::npos ? "" : name.substr(space + 1)}];
  constexpr std::string_view kOf = " of ";
  const std::size_t of = std::min(value.find(kOf), value.size());
  return read_count(value.substr(0, of), coverage.*count) && of < value.size() &&
         read_count(value.substr(of + kOf.size()), coverage.cases);
}

Status read_coverages(TomlTable& table, const char* key, std::int64_t Coverage::*count,
                      const std::string& file, PastRun& past) {
  std::string bad;
  ASSAY_CHECK(table.read_texts(key, [&](const std::string& name, const std::string& value) {
    if (!read_coverage(name, value, count, past)) bad = name;
  }));
  if (bad.empty()) return {};
  return usage_error(fmt::format("{}: {}.\"{}\" wants \"CASES of CASES\"", file, key, bad));
}

// The comment lines directly above each [[fault]], in the order of the faults, and those at the
// top.
std::vector<std::string> comments_of(std::string_view text, std::string& head) {
  std::vector<std::string> comments;
  std::string above;
  bool at_top = true;
  for (const std::string& each : split_at(text, '\n')) {
    const std::string_view line = trimmed(each);
    if (line.starts_with('#')) {
      above += fmt::format("{}\n", line);
      continue;
    }
    if (at_top && !above.empty()) head = above;
    if (line == kFault) comments.push_back(at_top ? "" : above);
    at_top = at_top && line.empty() && above.empty();
    above.clear();
  }
  return comments;
}

Result<Baseline> parse(std::string_view text, const std::string& file) {
  Baseline baseline;
  baseline.past.is_baseline = true;
  const std::vector<std::string> comments = comments_of(text, baseline.head);
  ASSAY_TRY(TomlTable table, TomlTable::parse(text, file, kBaselineVersion));
  ASSAY_CHECK(table.read_texts("settings", [&](const std::string& name, const std::string& value) {
    baseline.past.properties[name] = value;
  }));
  std::size_t number = 0;
  ASSAY_CHECK(table.read_array("fault", [&](const std::string&, TomlTable& fault) -> Status {
    FaultKey key;
    if (Status read = read_fault(fault, baseline, key); !read) return read;
    if (number < comments.size()) baseline.comments[key] = comments[number];
    ++number;
    return {};
  }));
  ASSAY_CHECK(read_coverages(table, "not_judged", &Coverage::not_judged, file, baseline.past));
  ASSAY_CHECK(read_coverages(table, "rejected", &Coverage::rejected, file, baseline.past));
  ASSAY_CHECK(table.refuse_others());
  const auto& faults = baseline.past.faults;
  baseline.is_list = !faults.empty() && std::all_of(faults.begin(), faults.end(), [](auto& each) {
    return each.second.sums.cases == 0;
  });
  baseline.past.coverage_is_complete = !baseline.is_list;
  return baseline;
}

Result<Baseline> load_baseline(const std::filesystem::path& file) {
  auto text = read_file(file);
  if (!text) return usage_error(text.error().message);
  auto baseline = parse(*text, file.string());
  if (baseline) return baseline;
  return usage_error(fmt::format(
      "{}; {} is neither the folder of a run nor a baseline file (write one with assay report DIR "
      "--write-baseline FILE)",
      baseline.error().message, file.string()));
}

// ---- writing ----

std::string toml_list(const std::set<std::string>& texts) {
  std::vector<std::string> all;
  all.reserve(texts.size());
  for (const std::string& text : texts) all.push_back(toml_text(text));
  return fmt::format("[{}]", fmt::join(all, ", "));
}

std::string fault_block(const FaultKey& key, const KnownFault& known, const std::string& comment) {
  std::string block = fmt::format("\n{}{}\napi = {}\noutcome = {}\nwhere = {}\nhow = {}\n", comment,
                                  kFault, toml_text(key.api), toml_text(name(key.outcome)),
                                  toml_text(key.where), toml_text(key.how));
  const FaultExtent& extent = known.sums.extent;
  if (!extent.values.empty()) block += fmt::format("values = {}\n", toml_list(extent.values));
  if (!extent.dtypes.empty()) block += fmt::format("dtypes = {}\n", toml_list(extent.dtypes));
  if (known.sums.cases > 0) {
    block += fmt::format("cases = {}\nof = {}\n", known.sums.cases, known.judged);
  }
  if (extent.error_step > 0) {
    // In the middle of its step, so that reading finds the same step.
    const double error = error_of_step(extent.error_step) * 1.05;
    block += fmt::format("error = {:.4}\n", error);
  }
  block += fmt::format("reason = {}\n", toml_text(known.reason));
  if (known.sums.cases > 0 || !known.owner.empty()) {
    block += fmt::format("owner = {}\n", toml_text(known.owner));
  }
  block += fmt::format("upstream = {}\n", toml_text(known.upstream));
  return known.until.empty() ? block : block + fmt::format("until = {}\n", toml_text(known.until));
}

std::string settings_block(const std::map<std::string, std::string>& properties) {
  std::string block = "\n[settings]\n";
  for (const auto& [key, value] : properties) {
    // Flags for reruns (interpreters, time limits) belong to a machine.
    if (key == kKnownDeviations || key.starts_with(kRerunFlag)) continue;
    block += fmt::format("{} = {}\n", toml_text(key), toml_text(value));
  }
  return block;
}

using Coverages = std::map<std::pair<std::string, std::string>, Coverage>;

std::string coverage_block(const Coverages& coverages, const char* title,
                           std::int64_t Coverage::*count) {
  std::string block;
  for (const auto& [key, coverage] : coverages) {
    if (coverage.*count == 0) continue;
    const std::string name =
        key.second.empty() ? key.first : fmt::format("{} {}", key.first, key.second);
    block += fmt::format("{} = \"{} of {}\"\n", toml_text(name), coverage.*count, coverage.cases);
  }
  return block.empty() ? block : fmt::format("\n[{}]\n{}", title, block);
}

// The faults of the run with the notes of the old file, and old faults of APIs that the run did not
// judge.
std::map<FaultKey, KnownFault> merged(RunFaults& run, const Baseline& old,
                                      std::vector<FaultKey>& gone) {
  std::map<FaultKey, KnownFault> faults;
  for (const auto& [key, sums] : run.faults) {
    const auto found = old.past.faults.find(key);
    KnownFault& known = faults[key];
    if (found != old.past.faults.end()) known = found->second;
    known.sums = sums;
    known.judged = run.judged[key.api];
  }
  for (const auto& [key, known] : old.past.faults) {
    if (faults.contains(key)) continue;
    if (run.covers(key.api)) {
      gone.push_back(key);
    } else {
      faults[key] = known;
    }
  }
  return faults;
}

// The list with the faults and value regimes of the run that it lacks.
std::map<FaultKey, KnownFault> extended(const RunFaults& run, const Baseline& list) {
  std::map<FaultKey, KnownFault> faults = list.past.faults;
  for (const auto& [key, sums] : run.faults) {
    if (!info(key.outcome).failed || key.outcome == Outcome::invalid) continue;
    const auto [found, added] = faults.try_emplace(key);
    std::set<std::string>& values = found->second.sums.extent.values;
    if (added || !values.empty()) {
      values.insert(sums.extent.values.begin(), sums.extent.values.end());
    }
  }
  return faults;
}

}  // namespace

Result<PastRun> read_baseline(const std::filesystem::path& file) {
  ASSAY_TRY(Baseline baseline, load_baseline(file));
  return std::move(baseline.past);
}

Result<WrittenBaseline> write_baseline(RunReader& run, const std::filesystem::path& file) {
  Baseline old;
  std::error_code error;
  if (std::filesystem::exists(file, error)) {
    ASSAY_TRY(old, load_baseline(file));
  }
  ASSAY_TRY(RunFaults found, faults_of_run(run));
  ASSAY_TRY(const auto properties, run.properties());
  WrittenBaseline written;
  const auto faults = old.is_list ? extended(found, old) : merged(found, old, written.gone);
  const Coverages& coverages = old.is_list ? old.past.coverage : found.coverage;
  written.faults = faults.size();
  std::string text = fmt::format("{}version = {}\n{}", old.head, kBaselineVersion,
                                 settings_block(old.is_list ? old.past.properties : properties));
  for (const auto& [key, known] : faults) {
    text += fault_block(key, known, value_at(old.comments, key));
  }
  text += coverage_block(coverages, "not_judged", &Coverage::not_judged);
  text += coverage_block(coverages, "rejected", &Coverage::rejected);
  ASSAY_CHECK(write_file(file, text));
  return written;
}

}  // namespace assay
