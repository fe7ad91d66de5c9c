#include "chain/results/speed_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <vector>

#include "base/text.h"
#include "base/values.h"
#include "chain/stage/train_log.h"

namespace assay::chain::results {
namespace {

constexpr int kAcrossCards = -1;  // the default of --model_mode
constexpr int kAsItStands = 5;
constexpr std::size_t kFewest = 10;     // least number of speeds after the skipped ones
constexpr std::size_t kLeftOut = 5;     // cut at each end, or for a long log:
constexpr double kLeftOutShare = 0.05;  // this fraction

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// Parses a whole word as Python's float() does.
std::optional<double> number_of(std::string_view word) {
  if (word.starts_with('+')) word.remove_prefix(1);
  double value = 0;
  return read_number(word, value) ? std::optional(value) : std::nullopt;
}

std::vector<double> speeds_of(const std::vector<std::string>& lines, const std::string& keyword) {
  std::vector<double> speeds;
  for (const std::string& line : lines) {
    if (const auto speed = number_of(stage::word_behind(line, keyword))) speeds.push_back(*speed);
  }
  return speeds;
}

// The last loss as written, without commas.
std::string last_loss(const std::vector<std::string>& lines, const std::string& key) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    std::string word(stage::word_behind(*line, key));
    if (word.empty()) continue;
    std::erase(word, ',');
    return word;
  }
  return {};
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The speeds that count; empty if there are too few.
std::vector<double> counted(std::vector<double> speeds, const SpeedQuestion& question) {
  const auto skipped = static_cast<std::size_t>(std::max(0, question.skip_steps));
  const std::size_t fewest =
      question.is_large_model || question.model_mode == kAsItStands ? skipped : skipped + kFewest;
  if (question.base_batch_size <= 0 || speeds.size() <= fewest) return {};
  speeds.erase(speeds.begin(), speeds.begin() + static_cast<std::ptrdiff_t>(skipped));
  if (question.is_large_model || question.model_mode == kAsItStands) return speeds;
  std::sort(speeds.begin(), speeds.end());
  const auto share = static_cast<std::size_t>(static_cast<double>(speeds.size()) * kLeftOutShare);
  const auto left_out = static_cast<std::ptrdiff_t>(std::max(share, kLeftOut));
  return {speeds.begin() + left_out, speeds.end() - left_out};
}

double to_thousandths(double value) {
  return std::strtod(fmt::format("{:.3f}", value).c_str(), nullptr);
}

// The record's name for the mode of the run.
std::string mode_of(const std::string& run_mode) {
  const auto has = [&](std::size_t at, std::string_view part) {
    return run_mode.size() > at + part.size() && run_mode.compare(at, part.size(), part) == 0;
  };
  const bool hybrid = has(0, "DP") && has(3, "-MP") && has(7, "-PP");  // DP8-MP4-PP2…
  const bool together = hybrid || run_mode.find("DP_MoE_C") != std::string::npos ||
                        run_mode.find("Sharding_MoE_C") != std::string::npos;
  return together ? "Collective" : run_mode;
}

// Writes an object as Python's json.dumps does: in order, with a blank after each comma and colon.
class PythonObject {
 public:
  void add(const char* name, const nlohmann::json& value) {
    text_ += fmt::format("{}\"{}\": {}", text_.empty() ? "" : ", ", name,
                         value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
  }
  void add(const char* name, const std::optional<std::string>& value) {
    add(name, value ? nlohmann::json(*value) : nlohmann::json());
  }
  std::string finish() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

}  // namespace

SpeedSurroundings surroundings_of_environment() {
  return {variable("model_branch"), variable("model_commit"), variable("model_run_time"),
          variable("frame_commit"), variable("frame_version")};
}

Result<SpeedRecord> speed_record(std::string_view log, const SpeedQuestion& question,
                                 const SpeedSurroundings& surroundings) {
  const std::size_t at = question.device_num.find('C');
  const auto cards =
      at == std::string::npos ? std::nullopt : number_of(question.device_num.substr(at + 1));
  if (!cards) {
    return usage_error(
        fmt::format("expected devices such as N1C8, found `{}`", question.device_num));
  }
  if (question.model_mode != kAcrossCards && question.model_mode != kAsItStands) {
    return usage_error(
        fmt::format("model_mode {} is not known: -1 and 5 are", question.model_mode));
  }
  const std::vector<std::string> lines = split_at(log, '\n');
  std::vector<double> speeds = speeds_of(lines, question.keyword);
  SpeedRecord record;
  record.seen = speeds.size();
  const std::vector<double> kept = counted(std::move(speeds), question);
  record.kept = kept.size();
  const bool across = question.model_mode == kAcrossCards && !question.is_large_model;
  if (!kept.empty()) record.ips = to_thousandths(mean_of(kept) * (across ? *cards : 1));
  const std::string loss =
      question.convergence_key.empty() ? "" : last_loss(lines, question.convergence_key);

  PythonObject object;
  object.add("model_branch", surroundings.model_branch);
  object.add("model_commit", surroundings.model_commit);
  object.add("model_name", nlohmann::json(question.model_name));
  object.add("batch_size", nlohmann::json(question.base_batch_size));
  object.add("fp_item", nlohmann::json(question.fp_item));
  object.add("run_mode", nlohmann::json(mode_of(question.run_mode)));
  object.add("convergence_value", loss.empty() ? nlohmann::json(0) : nlohmann::json(loss));
  object.add("convergence_key", nlohmann::json(question.convergence_key));
  object.add("ips", kept.empty() ? nlohmann::json(0) : nlohmann::json(record.ips));
  object.add("speed_unit", nlohmann::json(kept.empty() ? std::string() : question.speed_unit));
  object.add("device_num", nlohmann::json(question.device_num));
  object.add("model_run_time", surroundings.model_run_time);
  object.add("frame_commit", surroundings.frame_commit);
  object.add("frame_version", surroundings.frame_version);
  record.json = object.finish();
  return record;
}

}  // namespace assay::chain::results
