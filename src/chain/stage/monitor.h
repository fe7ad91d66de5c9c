#pragma once

// Watches a training's readings while it runs and names what goes wrong when it does.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chain/stage/train_log.h"

namespace assay::chain::stage {

// What --stop-on may name: a word, when it is told, and in words.
struct Alarm {
  std::string_view word;
  std::size_t window;  // readings that are looked at together
  double factor;       // of the usual loss, or of the speed at the beginning
  std::string_view shape;
};
std::span<const Alarm> alarms();
// "the last 50 losses are equal"
std::string meaning(const Alarm& alarm);

// One thing that was seen, told once a stage.
struct Finding {
  std::string_view word;
  std::string text;  // one line for people
};

class Monitor {
 public:
  // What this reading shows that none before it did.
  std::optional<Finding> take(const Reading& reading);

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
