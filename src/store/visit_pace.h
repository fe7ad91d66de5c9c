#pragma once

// How often a claimer had better visit its database, by how long visits take.
//
// All claimers of a run wait for the same server, so what one of them does about slow visits all
// others do as well, at about the same time. Each therefore comes less often at once when visits
// become slow, and more often again only step by step: else all hurry when the server has nothing
// to do, and all stay away when it is busy, in turns. And who comes seldom does so at irregular
// times: claimers that began together do not stay together.

#include <chrono>
#include <random>

namespace assay {

class VisitPace {
 public:
  using Milliseconds = std::chrono::duration<double, std::milli>;

  // Never more often than `usual`, never less often than `rarest`. Claimers have different seeds.
  VisitPace(std::chrono::milliseconds usual, std::chrono::milliseconds rarest, unsigned seed)
      : usual_(usual), rarest_(rarest), random_(seed) {}

  void took(Milliseconds visit);
  // So that visits take about a hundredth of a claimer's time.
  std::chrono::milliseconds between_visits() const;

 private:
  std::chrono::milliseconds usual_;
  std::chrono::milliseconds rarest_;
  Milliseconds visit_{0};  // about how long one takes
  double part_ = 1;        // of the time that it might stay away
  std::minstd_rand random_;
};

}  // namespace assay
