#pragma once

// How goldens are packed: tensors as planes of bytes, the truth by its distance from the results.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "slot/digest.h"
#include "slot/values.h"
#include "wire/messages_generated.h"

namespace assay {

// Planes of bytes: all first bytes of the elements, then all second ones, and so on.
void to_planes(std::span<const std::byte> from, std::size_t width, std::uint8_t* to);
void from_planes(const std::uint8_t* from, std::size_t width, std::span<std::byte> to);
// A byte `head`, then the planes of the numbers.
std::vector<std::uint8_t> planes_of(const std::vector<std::uint64_t>& numbers, std::uint8_t head);
// The numbers after the head. `planes` has 1 + 8 * count bytes.
std::vector<std::uint64_t> numbers_in(const flatbuffers::Vector<std::uint8_t>& planes);

// A tensor of a reply, or an array of a distribution's parameter.
struct Segment {
  wire::Leaf* leaf = nullptr;
  wire::Parameter* parameter = nullptr;  // null: the leaf itself

  std::uint64_t offset() const { return parameter ? parameter->offset() : leaf->offset(); }
  std::uint64_t bytes() const { return parameter ? parameter->bytes() : leaf->bytes(); }
  std::uint8_t dtype() const { return parameter ? parameter->dtype() : leaf->dtype(); }
  void move_to(std::uint64_t offset) const {
    if (parameter != nullptr) {
      parameter->mutate_offset(offset);
    } else {
      leaf->mutate_offset(offset);
      leaf->mutate_lent(false);
    }
  }
};

// All tensors and arrays of a reply. An error if their sizes are impossible or above 1 GiB.
Result<std::vector<Segment>> segments_of(wire::Reply& reply);

using GoldenLeaves = flatbuffers::Vector<flatbuffers::Offset<wire::Leaf>>;
bool is_among(const GoldenLeaves* leaves, const wire::Leaf* leaf);
// The tensor at this path; null if there is none.
const wire::Leaf* leaf_at(const GoldenLeaves* leaves, std::string_view path);
// Whether the error bar decides about the leaf.
bool needs_truth(const wire::Leaf& leaf);
DigestPlan plan_of(const wire::Leaf& leaf, std::uint64_t seed,
                   std::vector<std::uint64_t> landmarks = {});

// Results of a leaf, in the form that its equality compares.
ComplexValues results_of(const wire::Leaf& leaf, std::span<const std::byte> bytes);
// The real numbers of the values: two of each complex one.
std::vector<double> parts_of(const ComplexValues& values, bool complex);
// The bits of a number; of any NaN the same.
std::uint64_t bits_of(double value);

// How the truth lies to a result: the distance of their bits in steps of 2^drop, as a number
// without sign (zigzag). A truth that is not the result never becomes it.
std::uint64_t step_to(double truth, double result, int drop);
double step_from(double result, std::uint64_t zigzag, int drop);

// A distance from the truth with 8 bits of its mantissa, and a value that is so far from it. An
// infinite distance means a value of another kind.
std::uint64_t short_distance(double moved);
double at_distance(double truth, std::uint64_t moved);

}  // namespace assay
