#include "report/speed_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "base/statistics.h"
#include "case/canonical.h"

namespace assay {
namespace {

void print_parts(const std::vector<SpeedChange>& parts, Speed speed, std::string& table) {
  std::size_t shown = 0;
  for (const SpeedChange& part : parts) {
    if (part.speed != speed || ++shown > kShownOfEach) continue;
    table +=
        fmt::format("    {} {}: {}, was {}: {}  {}\n", format_case_id(part.id), part.what,
                    time_text(part.now), time_text(part.before), ratio_text(part.ratio), part.text);
  }
  if (shown > kShownOfEach) {
    table += fmt::format("    … and {} more (--json has all)\n", shown - kShownOfEach);
  }
}

}  // namespace

nlohmann::json interval_json(const Ratio& ratio) {
  constexpr double kEnd = 1e9;
  return {ratio.low, ratio.middle, std::min(ratio.high, kEnd)};
}

void SpeedComparison::take(std::uint64_t id, std::string_view text,
                           const std::vector<TimedPart>& now,
                           const std::vector<TimedPart>& before) {
  for (const TimedPart& part : now) {
    const auto then = std::ranges::find(before, part.what, &TimedPart::what);
    if (then == before.end() || part.alone.empty() || then->alone.empty()) continue;
    SpeedChange& change = parts_.emplace_back();
    change.id = id;
    change.text = text;
    change.what = part.what;
    change.now = median_of(part.alone);
    change.before = median_of(then->alone);
    change.ratio = same_reference_
                       ? ratio_of_sets(part.beside_reference, then->beside_reference, kDoubt)
                       : ratio_of_sets(part.alone, then->alone, kDoubt);
  }
}

void SpeedComparison::finish() {
  if (!same_reference_ && parts_.size() >= kEnoughForPace) {
    std::vector<double> middles;
    middles.reserve(parts_.size());
    for (const SpeedChange& part : parts_) middles.push_back(part.ratio.middle);
    pace_ = median_of(middles);
  }
  for (SpeedChange& part : parts_) {
    part.ratio = {part.ratio.low / pace_, part.ratio.middle / pace_, part.ratio.high / pace_};
    part.speed = speed_of_part(part.what, 1, part.before, part.ratio, margin_of(part));
  }
  std::stable_sort(parts_.begin(), parts_.end(), [](const SpeedChange& a, const SpeedChange& b) {
    return a.ratio.middle > b.ratio.middle;
  });
}

double SpeedComparison::margin_of(const SpeedChange& part) const {
  return same_reference_ || is_of_device(part.what) ? margin_ : std::max(margin_, kMarginOfRuns);
}

std::uint64_t SpeedComparison::count(Speed speed) const {
  return static_cast<std::uint64_t>(std::ranges::count(parts_, speed, &SpeedChange::speed));
}

std::string SpeedComparison::table() const {
  if (parts_.empty()) return {};
  std::string table = "  parts of cases that were timed in both runs";
  if (same_reference_) {
    table += ", relative to the reference lane:\n";
  } else if (parts_.size() < kEnoughForPace) {
    table +=
        fmt::format(" (fewer than {}: includes changes of the machine's speed):\n", kEnoughForPace);
  } else {
    table += fmt::format(", relative to the pace of all cases ({:.3f} times as long as before):\n",
                         pace_);
  }
  if (std::ranges::any_of(parts_, [&](const auto& part) { return margin_of(part) > margin_; })) {
    table += fmt::format(
        "    on the host's clock without a reference lane, only differences above {:.0f}% count: "
        "two runs of one build differ by less\n",
        100 * kMarginOfRuns);
  }
  constexpr std::array<Speed, 4> kOrder{Speed::slow, Speed::fast, Speed::same, Speed::unsure};
  for (const Speed speed : kOrder) {
    table += fmt::format("  {:>8}  {}\n", count(speed), name(speed));
    if (speed == Speed::slow || speed == Speed::fast) print_parts(parts_, speed, table);
  }
  return table;
}

nlohmann::json SpeedComparison::json() const {
  nlohmann::json parts = nlohmann::json::array();
  for (const SpeedChange& part : parts_) {
    nlohmann::json entry = {{"id", format_case_id(part.id)},
                            {"case", part.text},
                            {"what", part.what},
                            {"nanoseconds", part.now},
                            {"nanoseconds_before", part.before},
                            {"ratio", part.ratio.middle},
                            {"low", part.ratio.low},
                            {"speed", name(part.speed)}};
    if (part.ratio.high < std::numeric_limits<double>::infinity()) entry["high"] = part.ratio.high;
    parts.push_back(std::move(entry));
  }
  return {{"beside_reference", same_reference_}, {"pace", pace_}, {"parts", parts}};
}

nlohmann::json SpeedComparison::rows() const {
  nlohmann::json rows = nlohmann::json::array();
  for (const SpeedChange& part : std::span(parts_).first(std::min(kTimesOfPage, parts_.size()))) {
    rows.push_back({{"case", part.text},
                    {"what", part.what},
                    {"now", time_text(part.now)},
                    {"then", time_text(part.before)},
                    {"ratio", interval_json(part.ratio)},
                    {"told", ratio_text(part.ratio)},
                    {"speed", name(part.speed)}});
  }
  return rows;
}

}  // namespace assay
