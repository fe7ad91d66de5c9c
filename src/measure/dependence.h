#pragma once

// Tests whether draws are independent. A generator that repeats its numbers for neighbours, or for
// the next block of threads, has the right distribution and is still broken.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay {

// The first draws, which are compared as neighbours at every lag up to kNear: this finds rows and
// blocks of any length.
inline constexpr std::size_t kNeighbours = 4096;
inline constexpr std::size_t kNear = kNeighbours / 2;
// With fewer pairs nothing is judged.
inline constexpr std::size_t kFewestPairs = 32;

// The lag with the largest correlation, among neighbours and between the two halves of all draws.
struct DependenceFound {
  double correlation = 0;  // in units of √V (draw_distribution.h)
  std::uint64_t lag = 0;
  std::uint64_t pairs = 0;
};

// Draws in order, each minus its mean.
class Dependence {
 public:
  // `reach` is the largest distance of a draw from its mean, and `deviation` its sub-Gaussian
  // standard deviation: 1/2 and √(1/12) for a uniform draw; for a draw of two values at most 1/2.
  Dependence(double reach, double deviation) : most_(reach * deviation) {}
  void add(double centred) { draws_.push_back(centred); }

  // `rows`: more lags to test.
  DependenceFound run(std::span<const std::size_t> rows = {}) const;

 private:
  double most_;
  std::vector<double> draws_;
};

// The same for draws of two values, one byte each: 1 with probability `share`, else 0.
class ChoiceDependence {
 public:
  explicit ChoiceDependence(double share);
  void add(bool one) { draws_.push_back(one ? 1 : 0); }
  // Space for up to `more` draws; keep() then appends `count` of them.
  std::span<std::uint8_t> room(std::size_t more);
  void keep(std::size_t count) { draws_.resize(kept_ += count); }
  DependenceFound run() const;

 private:
  double share_;
  double most_;
  std::size_t kept_ = 0;  // draws before the last room()
  std::vector<std::uint8_t> draws_;
};

// The largest number of lags that are tested.
inline constexpr std::size_t kMostRows = 7;  // lengths of rows, planes and so on
inline constexpr std::size_t kMostLags = kNear + 1 + kMostRows;

}  // namespace assay
