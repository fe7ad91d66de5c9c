#include "chain/history/golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json.h"

namespace assay::chain::history {
namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "assay-chain-golden";

struct KindRule {
  Kind kind;
  std::string_view name;
  Rule rule;
};

// `first` is what `assay chain compare` tolerates, and 5% of a loss. 64 MB is what samples of a
// short process differ by.
constexpr std::array kKinds{
    KindRule{Kind::loss, "loss", {0.05, 0.005, 0, Worse::either}},
    KindRule{Kind::speed, "speed", {0.10, 0.015, 0, Worse::lower}},
    KindRule{Kind::time, "time", {0.10, 0.015, 0, Worse::higher}},
    KindRule{Kind::memory, "memory", {0.10, 0.03, 64, Worse::higher}},
    KindRule{Kind::prediction, "prediction", {0, 0, 1e-3, Worse::higher}},
};
constexpr std::array<std::string_view, 3> kPurposes{"nightly", "rerun", "baseline"};

std::optional<Purpose> purpose_of(const std::string& text) {
  const auto found = std::ranges::find(kPurposes, text);
  if (found == kPurposes.end()) return std::nullopt;
  return Purpose(found - kPurposes.begin());
}

std::optional<Metric> metric_of(const json& object) {
  if (!object.is_object()) return std::nullopt;
  const auto kind = std::ranges::find(kKinds, text_of(object, "kind"), &KindRule::name);
  const auto values = object.find("values");
  if (kind == kKinds.end() || values == object.end() || !values->is_array() || values->empty()) {
    return std::nullopt;
  }
  Metric metric{kind->kind, {}};
  for (const json& value : *values) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) return std::nullopt;
    metric.values.push_back(value.get<double>());
  }
  return metric;
}

// What is wrong with a run is an error without its position.
Result<Run> run_of(const json& object) {
  if (!object.is_object()) return usage_error("is not an object");
  Run run;
  run.time = text_of(object, "time");
  run.build = text_of(object, "build");
  if (run.build.empty()) return usage_error("has no build");
  const std::optional<Purpose> purpose = purpose_of(text_of(object, "purpose"));
  if (!purpose) return usage_error("needs a purpose: nightly, rerun or baseline");
  run.purpose = *purpose;
  if (const auto accept = object.find("accept"); accept != object.end()) {
    if (!accept->is_boolean()) return usage_error("has an accept that is neither true nor false");
    run.accept = accept->get<bool>();
  }
  const auto metrics = object.find("metrics");
  if (metrics == object.end() || !metrics->is_object()) return usage_error("has no metrics");
  for (const auto& [name, value] : metrics->items()) {
    std::optional<Metric> metric = metric_of(value);
    if (!metric) {
      return usage_error(
          fmt::format("has no kind, or no finite values, for the metric `{}`", name));
    }
    run.metrics.emplace(name, std::move(*metric));
  }
  return run;
}

json json_of(const Run& run) {
  json metrics = json::object();
  for (const auto& [name, metric] : run.metrics) {
    metrics[name] = {{"kind", history::name(metric.kind)}, {"values", metric.values}};
  }
  json object{{"time", run.time},
              {"build", run.build},
              {"purpose", kPurposes[std::size_t(run.purpose)]},
              {"metrics", std::move(metrics)}};
  if (run.accept) object["accept"] = true;
  return object;
}

}  // namespace

std::string_view name(Kind kind) { return kKinds[std::size_t(kind)].name; }

Rule rule_of(Kind kind) { return kKinds[std::size_t(kind)].rule; }

Result<Golden> read_golden(std::string_view text, const std::string& path) {
  const json file = parse_json(text);
  if (!file.is_object() || text_of(file, "format") != kFormat) {
    return usage_error(
        fmt::format("{} is not a golden file: `assay chain record` writes them", path));
  }
  const auto version = file.find("version");
  if (version == file.end() || *version != Golden::kVersion) {
    return usage_error(fmt::format("{} has version {}, this assay reads {}", path,
                                   version == file.end() ? "none" : version->dump(),
                                   Golden::kVersion));
  }
  Golden golden{text_of(file, "model"), text_of(file, "mode"), text_of(file, "device"), {}};
  const auto runs = file.find("runs");
  if (runs == file.end() || !runs->is_array()) {
    return usage_error(fmt::format("{} has no list of runs", path));
  }
  for (const json& one : *runs) {
    Result<Run> run = run_of(one);
    if (!run) {
      return usage_error(
          fmt::format("{}: run {} {}", path, golden.runs.size() + 1, run.error().message));
    }
    golden.runs.push_back(std::move(*run));
  }
  if (!golden.runs.empty() && golden.runs.front().purpose != Purpose::nightly) {
    return usage_error(fmt::format("{}: run 1 is not nightly", path));
  }
  return golden;
}

std::string write_golden(const Golden& golden) {
  json runs = json::array();
  for (const Run& run : golden.runs) runs.push_back(json_of(run));
  // A line for each run, so that a file in git has a diff that can be read.
  std::string text = fmt::format(
      "{{\"format\":\"{}\",\"version\":{},\"model\":{},\"mode\":{},\"device\":{},\"runs\":[",
      kFormat, Golden::kVersion, dumped(json(golden.model)), dumped(json(golden.mode)),
      dumped(json(golden.device)));
  for (std::size_t i = 0; i < runs.size(); ++i) text += (i == 0 ? "\n" : ",\n") + dumped(runs[i]);
  return text + "\n]}\n";
}

std::string file_name_of(const Golden& golden) {
  std::string name = fmt::format("{}.{}.{}.json", golden.model, golden.mode, golden.device);
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
    if (!plain) c = '_';
  }
  if (name.starts_with('.')) name.front() = '_';
  return name;
}

}  // namespace assay::chain::history
