#pragma once

// Tensors in an arena, seen as bytes or widened to numbers for the comparisons that are not done
// element by element in their own dtype.

#include <complex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "case/dtype.h"
#include "wire/arena.h"
#include "wire/messages_generated.h"

namespace assay {

struct TensorBytes {
  DType dtype = DType::float32;
  std::span<const std::byte> bytes;
  std::size_t count() const { return bytes.size() / size_of(dtype); }
};

// Fails when the leaf points outside the arena or its shape and size disagree: a broken lane.
Result<TensorBytes> tensor_bytes(const wire::Leaf& leaf, const wire::Arena& arena);

inline bool is_complex(DType dtype) { return info(dtype).kind == DTypeClass::complex; }

using ComplexValues = std::vector<std::complex<double>>;
std::vector<double> real_values(const TensorBytes& tensor);
ComplexValues complex_values(const TensorBytes& tensor);

void take_magnitudes(ComplexValues& values);
// By real, then imaginary part; NaN last.
void sort_values(ComplexValues& values);

// A number, text or dtype as text for people; empty for tensors.
std::string scalar_text(const wire::Leaf& leaf);

}  // namespace assay
