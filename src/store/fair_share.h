#pragma once

// How much work a claimer may hold, so that it does not end after all other claimers. Near the end
// a slow claimer takes less: its part of the remaining work is its own speed divided by the speed
// of all claimers together.
//
// Work is measured in microseconds that the plan expects. The speed of all claimers is how fast the
// remaining work shrinks between two claims, so claimers need not know of each other.

#include <cstdint>
#include <limits>
#include <optional>

namespace assay {

class FairShare {
 public:
  static constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

  // Reports that this claimer has finished `work_us` since the last call. `at_us`: the time now, by
  // any clock that all calls share.
  void worked(double at_us, std::int64_t work_us);
  // Reports the work that was left when this claimer claimed, with what it claimed.
  void saw(double at_us, std::int64_t left_us);

  // The expected work in µs that this claimer may hold; kAny: no limit.
  std::int64_t most_us() const;

 private:
  // Work per microsecond, averaged with exponential decay.
  struct Speed {
    double work = 0;
    double time = 0;
    void add(double passed_us, double done_us);
  };

  Speed own_;
  Speed all_;
  std::optional<double> worked_at_;
  std::optional<double> saw_at_;
  std::int64_t left_us_ = 0;
};

}  // namespace assay
