#pragma once

// Whether draws hang together: a generator that gives the same numbers again, to its neighbours or
// to the next block of threads, has the right distribution and is no generator.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay {

// So many draws from the first one on are looked at as neighbours, under every lag up to kNear:
// rows and blocks of any length…
inline constexpr std::size_t kNeighbours = 4096;
inline constexpr std::size_t kNear = kNeighbours / 2;
// … and with fewer pairs than this nothing is said.
inline constexpr std::size_t kFewestPairs = 32;

// The lag with the largest correlation: of neighbours, and of the two halves of all draws.
struct DependenceFound {
  double correlation = 0;  // in units of √V
  std::uint64_t lag = 0;
  std::uint64_t pairs = 0;
};

// Draws in their order, each as its distance from its mean, of which the law says how far it
// reaches.
class Dependence {
 public:
  // `reach` is the largest distance of a draw from its mean, `deviation` the sub-Gaussian standard
  // deviation of one: 1/2 and √(1/12) of a uniform draw, 1/2 at most of a draw from two values.
  Dependence(double reach, double deviation) : most_(reach * deviation) {}
  void add(double centred) { draws_.push_back(centred); }

  DependenceFound run() const;

 private:
  double most_;
  std::vector<double> draws_;
};

// The same of draws from two values, a byte for each: 1 for the one that has this `share`, 0 for
// the other.
class ChoiceDependence {
 public:
  explicit ChoiceDependence(double share);
  void add(bool one) { draws_.push_back(one ? 1 : 0); }
  // Room for so many more, of which keep() says how many have become draws.
  std::span<std::uint8_t> room(std::size_t more);
  void keep(std::size_t count) { draws_.resize(kept_ += count); }
  DependenceFound run() const;

 private:
  double share_;
  double most_;
  std::size_t kept_ = 0;  // when room() was asked for
  std::vector<std::uint8_t> draws_;
};

// How many lags are looked at, at most.
inline constexpr std::size_t kMostLags = kNear + 1;

}  // namespace assay
