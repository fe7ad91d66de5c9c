#pragma once

// A digest stands for a large tensor in goldens: some of its elements, and sums of blocks.
//
// The elements are judged like any others. The sums, with random signs, show what the elements
// miss. If every element of the other side is within its error bar, the error of a block's sum
// exceeds six times the root of the summed squares of these bars with a probability below 4e-8
// (Hoeffding, "Probability Inequalities for Sums of Bounded Random Variables", JASA 58, 1963): the
// signs are independent of the errors. An element that is farther off than this tolerance, plus
// what all others add, always shows. docs/reference/goldens.md has the probabilities of a miss.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "slot/values.h"
#include "wire/messages_generated.h"

namespace assay {

inline constexpr std::uint64_t kDigestSamples = 32;
inline constexpr std::uint64_t kDigestBlocks = 32;

// Where a digest of a tensor looks. Equal for equal arguments.
class DigestPlan {
 public:
  // The first samples are the `landmarks`: elements from which the judge takes the scale of the
  // tensor and the errors of the reference. At most kDigestSamples, each below `count`.
  DigestPlan(DType dtype, std::uint64_t count, wire::Equality equality, std::uint64_t seed,
             std::string_view path, std::vector<std::uint64_t> landmarks = {});

  // Whether such a tensor is worth a digest. Others are kept whole.
  static bool is_for(const wire::Leaf& leaf);

  // Whole numbers and results that must have equal bits have a checksum in place of sums.
  bool exact() const { return exact_; }
  // The elements of a reduced tensor: samples, and one flag for each block or for the checksum.
  std::uint64_t reduced() const { return kDigestSamples + flags(); }
  std::uint64_t flags() const { return exact_ ? 1 : kDigestBlocks; }
  std::uint64_t position(std::uint64_t sample) const;
  std::vector<std::byte> samples(std::span<const std::byte> tensor) const;
  // Elements that are not finite count as 0.
  std::vector<double> sums(std::span<const std::byte> tensor) const;
  // The tolerance of each block, from the largest error that each element of a right result may
  // have.
  std::vector<double> tolerances(std::span<const double> errors) const;

 private:
  std::uint64_t block_of(std::uint64_t element) const { return element * kDigestBlocks / count_; }

  DType dtype_;
  std::uint64_t count_;
  wire::Equality equality_;
  std::vector<std::uint64_t> landmarks_;
  bool exact_;
  std::uint64_t key_;
};

}  // namespace assay
