#include "chain/run/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "chain/fleet/fleet.h"
#include "chain/stage/log_line.h"

namespace assay::chain::run {
namespace {

constexpr std::size_t kLongestLine = 4096;     // for the user's pattern
constexpr std::size_t kMaxReadings = 200'000;  // per stage; a training log has hundreds

}  // namespace

void Job::read(std::string_view whole) {
  auto [line, readings_of_line] = nodes.take(whole);
  evidence.take(line);
  if (!stage->loss_pattern.empty()) {
    if (!loss_pattern) loss_pattern.emplace(stage->loss_pattern);
    std::cmatch match;
    if (line.size() < kLongestLine &&
        std::regex_search(line.data(), line.data() + line.size(), match, *loss_pattern)) {
      if (const auto loss = stage::number_at(match[1].str())) {
        readings_of_line.push_back({"loss", *loss});
      }
    }
  }
  for (const stage::Reading& reading : readings_of_line) {
    has_loss = has_loss || stage::is_loss(reading.name);
    if (stage::is_loss(reading.name) && !std::isfinite(reading.value) && bad_loss.empty()) {
      bad_loss = fmt::format("{} {} is {}", reading.name, counts[reading.name] + 1, reading.value);
    }
    latest[reading.name] = reading.value;
    keep(reading.name, reading.value);
    if (stage->kind != plan::StageKind::train) continue;
    if (auto found = monitor.take(reading)) findings.push_back(std::move(*found));
  }
  if (stage->kind == plan::StageKind::infer) stage::read_autolog_line(line, autolog);
  if (line.starts_with(fleet::kFleetWord)) fleet_word = line.substr(fleet::kFleetWord.size());
}

void Job::look() {
  if (run->looks() < 2 || run->looks() == looks) return;
  looks = run->looks();
  keep("rss_mb", run->last_usage().rss_mb);
  if (run->last_usage().gpu_seen) keep("gpu_used_mb", run->last_usage().gpu_memory_mb);
}

void Job::keep(const std::string& reading, double value) {
  const std::int64_t number = counts[reading]++;
  if (readings.size() < kMaxReadings) readings.push_back({number, reading, value});
}

std::string Job::progress() const {
  std::string text = fmt::format("{} {:.0f} s", stage->name, run->seconds());
  for (const char* reading : {"loss", "ips"}) {
    const auto found = latest.find(reading);
    if (found != latest.end()) text += fmt::format(" {} {:.4g}", reading, found->second);
  }
  return text;
}

}  // namespace assay::chain::run
