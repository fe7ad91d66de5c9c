#pragma once

// How much work a claimer may hold, so that it does not end after all others. Near the end a slow
// one takes less: of what is left, the part that its own speed has in the speed of all.
//
// Work is in microseconds as the plan expects them, so the speed of all is seen by how fast what is
// left becomes less between two claims; nobody has to count the others.

#include <cstdint>
#include <limits>
#include <optional>

namespace assay {

class FairShare {
 public:
  static constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

  // At the time `at_us` (of any clock) this claimer has ended so much work since the last call.
  void worked(double at_us, std::int64_t work_us);
  // It claimed what had so much left, itself among it.
  void saw(double at_us, std::int64_t left_us);

  // What it may hold; kAny: nothing speaks against more.
  std::int64_t most_us() const;

 private:
  // Work a microsecond, of which the last seconds count most.
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
