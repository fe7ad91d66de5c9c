#include "chain/stage/monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "base/statistics.h"

namespace assay::chain::stage {
namespace {

constexpr std::size_t kWarmUp = 5;  // the first steps are slow and do not count

// All alarms with their thresholds.
constexpr Alarm kNan{"nan", 1, 1, 0, "a loss is NaN or infinite"};
constexpr Alarm kStill{"still", 50, 50, 0, "the last {window} losses are equal"};
constexpr Alarm kJump{"jump", 20, 6, 10,
                      "a loss is more than {factor:g} times the middle one of the 5 to {window} "
                      "before it"};
constexpr Alarm kSlow{"slow", 20, kWarmUp + 2 * 20, 0.5,
                      "the last {window} ips are on average less than {factor:g} of the first "
                      "{window}"};
constexpr std::array kAlarms{kNan, kStill, kJump, kSlow};

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

bool are_equal(std::span<const double> values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

void keep(std::vector<double>& values, double value, std::size_t most) {
  values.push_back(value);
  if (values.size() > most) values.erase(values.begin());
}

// The newest `count` values; empty if there are fewer.
std::span<const double> newest(const std::vector<double>& values, std::size_t count) {
  if (values.size() < count) return {};
  return std::span(values).last(count);
}

}  // namespace

std::span<const Alarm> alarms() { return kAlarms; }

std::string meaning(const Alarm& alarm) {
  return fmt::format(fmt::runtime(alarm.shape), fmt::arg("window", alarm.window),
                     fmt::arg("factor", alarm.factor));
}

std::optional<Finding> Monitor::loss(double value) {
  ++losses_;
  if (!std::isfinite(value))
    return Finding{kNan.word, fmt::format("loss {} is {}", losses_, value)};
  const std::span<const double> before =
      newest(last_losses_, std::clamp(last_losses_.size(), kJump.needs - 1, kJump.window));
  const double usual = std::abs(upper_median(std::vector(before.begin(), before.end())));
  keep(last_losses_, value, kStill.window);
  if (usual > 0 && std::abs(value) > kJump.factor * usual) {
    return Finding{kJump.word,
                   fmt::format("loss {} is {:g}, the usual one {:g}", losses_, value, usual)};
  }
  if (last_losses_.size() == kStill.window && are_equal(last_losses_)) {
    return Finding{kStill.word, fmt::format("{} losses in a row are {:g}", kStill.window, value)};
  }
  return std::nullopt;
}

std::optional<Finding> Monitor::speed(double value) {
  if (++speeds_ <= kWarmUp) return std::nullopt;
  if (first_speeds_.size() < kSlow.window) {
    first_speeds_.push_back(value);
    return std::nullopt;
  }
  keep(last_speeds_, value, kSlow.window);
  const double began = mean_of(first_speeds_);
  const double now = mean_of(last_speeds_);
  if (last_speeds_.size() < kSlow.window || now >= kSlow.factor * began) return std::nullopt;
  return Finding{kSlow.word, fmt::format("ips fell from {:g} to {:g}", began, now)};
}

std::size_t Monitor::readings_of(const Alarm& alarm) const {
  return alarm.word == kSlow.word ? speeds_ : losses_;
}

std::optional<Finding> Monitor::take(const Reading& reading) {
  std::optional<Finding> found = reading.name == "loss"  ? loss(reading.value)
                                 : reading.name == "ips" ? speed(reading.value)
                                                         : std::nullopt;
  if (!found || std::find(told_.begin(), told_.end(), found->word) != told_.end()) {
    return std::nullopt;
  }
  told_.push_back(found->word);
  return found;
}

}  // namespace assay::chain::stage
