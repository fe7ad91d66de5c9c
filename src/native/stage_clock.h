#pragma once

// Measures the time of a job in each Stage.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "base/clock.h"
#include "wire/arena.h"

namespace assay::native {

class StageClock {
 public:
  using Times = std::array<std::int64_t, wire::kStagesOfLane>;  // nanoseconds

  // A job, or a further run of it, starts in the first stage.
  void begin() {
    spent_ = {};
    stage_ = 0;
    entered_ns_ = now_ns();
  }

  void enter(std::size_t stage) {
    const std::int64_t now = now_ns();
    spent_.at(stage_) += now - entered_ns_;
    stage_ = stage;
    entered_ns_ = now;
  }

  // Leaves these nanoseconds out of the current stage.
  void leave_out(std::int64_t nanoseconds) { entered_ns_ += nanoseconds; }

  // The times of the run that ends now; the next one starts.
  Times take() {
    enter(stage_);
    const Times times = spent_;
    begin();
    return times;
  }

 private:
  std::int64_t now_ns() const {
    if (!of_cpu_) return monotonic_ns();
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  }

  static bool asked_for_cpu() {
    const char* const asked = std::getenv("ASSAY_STAGE_CLOCK");
    return asked != nullptr && std::string_view(asked) == "cpu";
  }

  // Wall time by default, because reading CPU time takes 1 µs. Benchmarks ask for CPU time.
  bool of_cpu_ = asked_for_cpu();
  Times spent_{};
  std::size_t stage_ = 0;
  std::int64_t entered_ns_ = now_ns();
};

}  // namespace assay::native
