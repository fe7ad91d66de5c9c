#include "verdict/timings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/statistics.h"
#include "verdict/messages.h"

namespace assay {
namespace {

constexpr std::string_view kWarm = " warm";
constexpr std::string_view kHost = " host ";
constexpr std::string_view kDevice = " device ";
constexpr double kDeviceGrainNs = 1000;  // of a sample
constexpr double kHostGrainNs = 50;      // of a call

const TimeSeries* find(std::span<const TimeSeries> all, std::string_view what) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [what](const TimeSeries& each) { return each.what == what; });
  return found == all.end() ? nullptr : &*found;
}

// Left divided by right for each turn; 0 if one of them has no samples.
std::vector<double> turn_ratios(const TimeSeries& left, const TimeSeries& right) {
  std::vector<double> ratios = turn_times(left);
  std::vector<double> times = turn_times(right);
  times.resize(ratios.size(), 0);
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    ratios[i] = times[i] > 0 ? ratios[i] / times[i] : 0;
  }
  return ratios;
}

// The median of the turns of each lane process that have samples.
std::vector<double> of_lanes(std::span<const double> turns, std::size_t turns_of_a_lane) {
  std::vector<double> middles;
  while (!turns.empty()) {
    std::vector<double> of_lane;
    for (const double time : turns.first(std::min(turns_of_a_lane, turns.size()))) {
      if (time > 0) of_lane.push_back(time);
    }
    if (!of_lane.empty()) middles.push_back(median_of(of_lane));
    turns = turns.subspan(std::min(turns_of_a_lane, turns.size()));
  }
  return middles;
}

// If both lanes have the device's clock, that decides: the host's clock only measures the launch.
bool decides(const std::string& what, std::span<const TimeSeries> left,
             std::span<const TimeSeries> right) {
  if (!what.ends_with(kWarm)) return false;
  const std::size_t host = what.find(kHost);
  if (host == std::string::npos) return true;
  std::string device = what;
  device.replace(host, kHost.size(), kDevice);
  return find(left, device) == nullptr || find(right, device) == nullptr;
}

struct LanePair {
  const wire::LaneRecord* test = nullptr;
  const wire::LaneRecord* reference = nullptr;
};

LanePair timed_lanes(const wire::Record& record) {
  if (record.trials() == nullptr || record.trials()->size() == 0) return {};
  const auto* lanes = record.trials()->Get(0)->lanes();
  if (lanes == nullptr || lanes->size() == 0 || lanes->Get(0)->timings() == nullptr) return {};
  return {lanes->Get(0), lanes->size() > 1 ? lanes->Get(1) : nullptr};
}

}  // namespace

std::vector<TimeSeries> series_of(const wire::LaneRecord& lane) {
  std::vector<TimeSeries> all;
  if (lane.timings() == nullptr) return all;
  for (const wire::Timing* timing : *lane.timings()) {
    TimeSeries& series = all.emplace_back();
    series.what = text(timing->what());
    series.calls = timing->calls();
    if (const auto* samples = timing->nanoseconds(); samples != nullptr) {
      series.nanoseconds.assign(samples->begin(), samples->end());
    }
    // On a GPU one lane takes all turns.
    series.turns_of_lane = is_of_device(series.what) ? 1 : std::max(1U, timing->turns_of_lane());
    if (const auto* turns = timing->turns(); turns != nullptr) {
      series.turns.assign(turns->begin(), turns->end());
    }
  }
  return all;
}

std::vector<double> turn_times(const TimeSeries& series) {
  std::vector<double> times;
  std::span<const double> left = series.nanoseconds;
  for (const std::uint32_t wanted : series.turns) {
    const std::span<const double> samples = left.first(std::min<std::size_t>(wanted, left.size()));
    left = left.subspan(samples.size());
    times.push_back(samples.empty() ? 0 : *std::min_element(samples.begin(), samples.end()));
  }
  return times;
}

bool is_of_device(std::string_view what) { return what.find(kDevice) != std::string_view::npos; }

Speed speed_of_part(std::string_view what, std::uint32_t calls, double right_ns, const Ratio& ratio,
                    double margin) {
  const Speed speed = speed_of(ratio, margin);
  const bool flagged = speed == Speed::slow || speed == Speed::fast;
  if (!flagged) return speed;
  const double apart = is_of_device(what) ? kDeviceGrainNs / std::max(1U, calls) : kHostGrainNs;
  const double grain = apart / std::max(1.0, right_ns);
  return speed_of(ratio, std::max(margin, grain)) == speed ? speed : Speed::unsure;
}

std::vector<SpeedRow> speed_rows(std::span<const TimeSeries> left,
                                 std::span<const TimeSeries> right, double margin) {
  std::vector<SpeedRow> rows;
  for (const TimeSeries& mine : left) {
    const TimeSeries* other = find(right, mine.what);
    if (other == nullptr || mine.nanoseconds.empty() || other->nanoseconds.empty()) continue;
    SpeedRow& row = rows.emplace_back();
    row.what = mine.what;
    row.left = mine;
    row.right = *other;
    row.ratio =
        ratio_of_pairs(of_lanes(turn_ratios(mine, *other), mine.turns_of_lane), kDoubtOfALook);
    row.speed =
        speed_of_part(row.what, mine.calls, median_of(other->nanoseconds), row.ratio, margin);
    row.decides = decides(mine.what, left, right);
  }
  return rows;
}

std::vector<SpeedRow> speed_rows(const wire::Record& record, double margin) {
  const LanePair lanes = timed_lanes(record);
  if (lanes.test == nullptr) return {};
  const std::vector<TimeSeries> left = series_of(*lanes.test);
  if (lanes.reference != nullptr) return speed_rows(left, series_of(*lanes.reference), margin);
  std::vector<SpeedRow> rows;
  for (const TimeSeries& mine : left) {
    if (!mine.nanoseconds.empty()) rows.push_back({mine.what, mine, {}, {}});
    if (!mine.nanoseconds.empty()) rows.back().decides = decides(mine.what, left, left);
  }
  return rows;
}

std::vector<TimedPart> timed_parts(const wire::Record& record) {
  std::vector<TimedPart> parts;
  for (const SpeedRow& row : speed_rows(record, 0)) {
    if (!row.decides) continue;
    TimedPart& part = parts.emplace_back();
    part.what = row.what;
    part.alone = of_lanes(turn_times(row.left), row.left.turns_of_lane);
    part.beside_reference = of_lanes(turn_ratios(row.left, row.right), row.left.turns_of_lane);
  }
  return parts;
}

Speed speed_of_case(std::span<const SpeedRow> rows) {
  constexpr std::array<Speed, 4> kFirst{Speed::slow, Speed::unsure, Speed::fast, Speed::same};
  for (const Speed speed : kFirst) {
    if (std::any_of(rows.begin(), rows.end(),
                    [speed](const SpeedRow& row) { return row.decides && row.speed == speed; })) {
      return speed;
    }
  }
  return Speed::unsure;
}

std::string time_text(double nanoseconds) {
  constexpr std::array<std::string_view, 4> kUnits{"ns", "µs", "ms", "s"};
  std::size_t unit = 0;
  while (nanoseconds >= 1000 && unit + 1 < kUnits.size()) {
    nanoseconds /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g} {}", nanoseconds, kUnits[unit]);
}

std::string ratio_text(const Ratio& ratio) {
  const std::string high = std::isinf(ratio.high) ? "anything" : fmt::format("{:.3f}", ratio.high);
  return fmt::format("{:.3f} times as long ({:.3f} to {})", ratio.middle, ratio.low, high);
}

}  // namespace assay
