#pragma once

// How often a claimer visits its database, depending on how long visits take.
//
// All claimers of a run share one server and react to slow visits at about the same time. To keep
// them from oscillating between an idle and an overloaded server, each claimer reduces its rate of
// visits at once when they become slow, and raises it step by step. The interval is also
// randomized, so that claimers that start together do not stay in step.

#include <chrono>
#include <random>

namespace assay {

class VisitPace {
 public:
  using Milliseconds = std::chrono::duration<double, std::milli>;

  // The interval is at least `usual` and at most `rarest`. Claimers need different seeds.
  VisitPace(std::chrono::milliseconds usual, std::chrono::milliseconds rarest, unsigned seed)
      : usual_(usual), rarest_(rarest), random_(seed) {}

  // Reports how long a visit took.
  void took(Milliseconds visit);
  // How long to wait before the next visit. Visits then take about a hundredth of a claimer's time.
  std::chrono::milliseconds between_visits() const;

 private:
  std::chrono::milliseconds usual_;
  std::chrono::milliseconds rarest_;
  Milliseconds visit_{0};  // smoothed duration of a visit
  double part_ = 1;        // random factor of the interval
  std::minstd_rand random_;
};

}  // namespace assay
