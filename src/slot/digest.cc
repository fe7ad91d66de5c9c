#include "slot/digest.h"

#include <algorithm>
#include <cmath>

#include "fill/checksum.h"
#include "fill/fill.h"
#include "slot/arbiter.h"

namespace assay {
namespace {

constexpr double kDeviations = 6;
constexpr std::uint64_t kWidenedAtOnce = 1 << 14;  // elements

std::uint64_t mixed(std::uint64_t key, std::uint64_t value) {
  return xxh3::avalanche(chunk_term(key, value));
}

double finite(double value) { return std::isfinite(value) ? value : 0; }

}  // namespace

DigestPlan::DigestPlan(DType dtype, std::uint64_t count, wire::Equality equality,
                       std::uint64_t seed, std::string_view path,
                       std::vector<std::uint64_t> landmarks)
    : dtype_(dtype), count_(count), equality_(equality), landmarks_(std::move(landmarks)) {
  const DTypeClass kind = info(dtype).kind;
  exact_ = equality == wire::Equality::bits || kind == DTypeClass::boolean ||
           kind == DTypeClass::integer;
  key_ = mixed(checksum(std::as_bytes(std::span(path))) ^ seed, count);
}

// Sorted results have no positions, and a shape has no values.
bool DigestPlan::is_for(const wire::Leaf& leaf) {
  return leaf.kind() == wire::LeafKind::tensor && leaf.dtype() < kDTypes.size() &&
         leaf.equality() != wire::Equality::sorted && leaf.equality() != wire::Equality::shape &&
         leaf.bytes() / size_of(static_cast<DType>(leaf.dtype())) >
             2 * (kDigestSamples + kDigestBlocks);
}

// A landmark, or one element at random in each of equal parts.
std::uint64_t DigestPlan::position(std::uint64_t sample) const {
  if (sample < landmarks_.size()) return landmarks_[sample];
  const std::uint64_t from = count_ * sample / kDigestSamples;
  const std::uint64_t to = count_ * (sample + 1) / kDigestSamples;
  return from + mixed(key_, sample) % (to - from);
}

std::vector<std::byte> DigestPlan::samples(std::span<const std::byte> tensor) const {
  const std::size_t size = size_of(dtype_);
  std::vector<std::byte> found;
  for (std::uint64_t sample = 0; sample < kDigestSamples; ++sample) {
    const auto element = tensor.subspan(position(sample) * size, size);
    found.insert(found.end(), element.begin(), element.end());
  }
  return found;
}

std::vector<double> DigestPlan::sums(std::span<const std::byte> tensor) const {
  const std::size_t size = size_of(dtype_);
  std::vector<double> found(kDigestBlocks);
  for (std::uint64_t from = 0; from < count_; from += kWidenedAtOnce) {
    const std::uint64_t some = std::min(kWidenedAtOnce, count_ - from);
    ComplexValues values = complex_values({dtype_, tensor.subspan(from * size, some * size)});
    put_in_form(values, equality_);
    for (std::uint64_t i = 0; i < some; ++i) {
      const std::uint64_t signs = mixed(~key_, from + i);
      const double real = finite(values[i].real());
      const double imaginary = finite(values[i].imag());
      found[block_of(from + i)] +=
          ((signs & 1) != 0 ? real : -real) + ((signs & 2) != 0 ? imaginary : -imaginary);
    }
  }
  return found;
}

std::vector<double> DigestPlan::tolerances(std::span<const double> errors) const {
  std::vector<double> found(kDigestBlocks);
  for (std::uint64_t i = 0; i < errors.size(); ++i) found[block_of(i)] += errors[i] * errors[i];
  for (double& squares : found) squares = kDeviations * std::sqrt(squares);
  return found;
}

}  // namespace assay
