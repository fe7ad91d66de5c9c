#pragma once

// Watches the readings of a running training for alarms.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chain/stage/train_log.h"

namespace assay::chain::stage {

// An alarm that --stop-on may name.
struct Alarm {
  std::string_view word;
  std::size_t window;  // number of readings that are examined together
  std::size_t needs;   // readings before it can be raised
  double factor;       // relative to the usual loss, or to the speed at the start
  std::string_view shape;
};
// All alarms.
std::span<const Alarm> alarms();
// "the last 50 losses are equal"
std::string meaning(const Alarm& alarm);

// An alarm that was raised; at most once per stage.
struct Finding {
  std::string_view word;
  std::string text;  // one line for people
};

class Monitor {
 public:
  // Takes a reading; returns an alarm that it raises.
  std::optional<Finding> take(const Reading& reading);
  // How many readings of the alarm's series were taken.
  std::size_t readings_of(const Alarm& alarm) const;

 private:
  std::optional<Finding> loss(double value);
  std::optional<Finding> speed(double value);

  std::size_t losses_ = 0;
  std::size_t speeds_ = 0;
  std::vector<double> last_losses_;
  std::vector<double> first_speeds_;
  std::vector<double> last_speeds_;
  std::vector<std::string_view> told_;
};

}  // namespace assay::chain::stage
