#pragma once

// Whether draws hang together: a generator that gives the same numbers again, to its neighbours or
// to the next block of threads, has the right distribution and is no generator.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay {

// So many draws from the first one on are looked at as neighbours, under every lag up to kNear:
// rows and blocks of any length…
inline constexpr std::size_t kNeighbours = 4096;
inline constexpr std::size_t kNear = kNeighbours / 2;
// … and with fewer pairs than this nothing is said.
inline constexpr std::size_t kFewestPairs = 32;

// Draws in their order, each as its distance from its mean, of which the law says how far it
// reaches.
class Dependence {
 public:
  // `reach` is the largest distance of a draw from its mean, `deviation` the sub-Gaussian standard
  // deviation of one: 1/2 and √(1/12) of a uniform draw, 1/2 at most of a draw from two values.
  Dependence(double reach, double deviation) : most_(reach * deviation) {}
  void add(double centred) { draws_.push_back(centred); }

  struct Found {
    double correlation = 0;  // in units of √V
    std::uint64_t lag = 0;
    std::uint64_t pairs = 0;
  };
  // The lag with the largest correlation: of neighbours, and of the two halves of all draws.
  Found run() const;

 private:
  double most_;
  std::vector<double> draws_;
};

// How many lags are looked at, at most.
inline constexpr std::size_t kMostLags = kNear + 1;

}  // namespace assay
