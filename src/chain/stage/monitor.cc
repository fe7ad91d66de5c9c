#include "chain/stage/monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

namespace assay::chain::stage {
namespace {

constexpr std::size_t kWindow = 20;  // readings that are looked at together
constexpr std::size_t kStill = 50;   // equal losses in a row are no training
constexpr std::size_t kWarmUp = 5;   // the first steps are slow
constexpr double kJump = 10;         // times the usual loss
constexpr double kSlow = 0.5;        // of the speed it began with

constexpr std::array kAlarms{
    Alarm{"nan", "a loss is NaN or infinite"},
    Alarm{"still", "the last 50 losses are equal"},
    Alarm{"jump", "a loss is more than 10 times the middle one of the 20 before it"},
    Alarm{"slow", "the last 20 ips are on average less than half of the first 20"},
};

double middle_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

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

// The newest `count` values; none where there are fewer.
std::span<const double> newest(const std::vector<double>& values, std::size_t count) {
  if (values.size() < count) return {};
  return std::span(values).last(count);
}

}  // namespace

std::span<const Alarm> alarms() { return kAlarms; }

std::optional<Finding> Monitor::loss(double value) {
  ++losses_;
  if (!std::isfinite(value)) return Finding{"nan", fmt::format("loss {} is {}", losses_, value)};
  const std::span<const double> before = newest(last_losses_, kWindow);
  const double usual = before.empty() ? 0 : std::abs(middle_of({before.begin(), before.end()}));
  keep(last_losses_, value, kStill);
  if (usual > 0 && std::abs(value) > kJump * usual) {
    return Finding{"jump",
                   fmt::format("loss {} is {:g}, the usual one {:g}", losses_, value, usual)};
  }
  if (last_losses_.size() == kStill && are_equal(last_losses_)) {
    return Finding{"still", fmt::format("{} losses in a row are {:g}", kStill, value)};
  }
  return std::nullopt;
}

std::optional<Finding> Monitor::speed(double value) {
  if (++speeds_ <= kWarmUp) return std::nullopt;
  if (first_speeds_.size() < kWindow) {
    first_speeds_.push_back(value);
    return std::nullopt;
  }
  keep(last_speeds_, value, kWindow);
  const double began = mean_of(first_speeds_);
  const double now = mean_of(last_speeds_);
  if (last_speeds_.size() < kWindow || now >= kSlow * began) return std::nullopt;
  return Finding{"slow", fmt::format("ips fell from {:g} to {:g}", began, now)};
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
