#include "slot/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "fill/numbers.h"

namespace assay {
namespace {

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// One element of any dtype as a complex double.
template <typename T>
std::complex<double> widened(const std::byte* from) {
  const T value = load<T>(from);
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else if constexpr (std::is_same_v<T, Boolean>) {
    return value.code != 0 ? 1.0 : 0.0;
  } else if constexpr (requires { value.imaginary; }) {
    return {static_cast<double>(value.real), static_cast<double>(value.imaginary)};
  } else {
    return static_cast<double>(widen(value));
  }
}

}  // namespace

Result<Tensor> Tensor::of(const wire::Leaf& leaf, const LaneMemory& memory) {
  if (leaf.dtype() >= kDTypes.size() || leaf.shape() == nullptr) {
    return fail("a lane sent a tensor without dtype or shape");
  }
  Tensor tensor;
  tensor.dtype_ = static_cast<DType>(leaf.dtype());
  std::uint64_t bytes = size_of(tensor.dtype_);
  bool sound = true;
  const bool none = std::ranges::find(*leaf.shape(), 0) != leaf.shape()->end();
  if (none) bytes = 0;  // however large the others are
  for (const std::int64_t extent : *leaf.shape()) {
    sound = sound && extent >= 0 &&
            (none || !__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes));
  }
  const bool shared = leaf.shared() != nullptr && memory.shared != nullptr;
  const bool lent = shared || (leaf.lent() && memory.read_lent);
  if (!sound || bytes != leaf.bytes() || (!lent && !memory.arena->holds(leaf.offset(), bytes))) {
    return fail("a lane sent a tensor that lies outside its arena");
  }
  tensor.size_ = bytes;
  if (shared) {
    ASSAY_CHECK(tensor.open(*leaf.shared(), *memory.shared));
  } else if (lent) {
    tensor.address_ = leaf.offset();
    tensor.read_lent_ = &memory.read_lent;
  } else {
    tensor.in_arena_ = memory.arena->data() + leaf.offset();
  }
  return tensor;
}

Status Tensor::open(const flatbuffers::Vector<std::uint8_t>& said, SharedCache& cache) {
  SharedMemory shared;
  if (said.size() != sizeof shared) return fail("a lane sent a shared tensor of another version");
  std::memcpy(&shared, said.data(), sizeof shared);
  ASSAY_TRY(on_device_, cache.at(shared, size_));
  cache_ = &cache;
  return {};
}

Status Tensor::read(std::uint64_t from, std::span<std::byte> to) const {
  if (read_lent_ != nullptr) return (*read_lent_)(address_ + from, to);
  if (!to.empty()) std::memcpy(to.data(), in_arena_ + from, to.size());
  return {};
}

Result<TensorBytes> Tensor::bytes(std::uint64_t from, std::uint64_t size) {
  if (!lent()) return TensorBytes{dtype_, {in_arena_ + from, size}};
  copy_.resize(size);
  if (Device* const there = device(); there != nullptr) {
    ASSAY_CHECK(there->copy(copy_.data(), on_device_ + from, size));
    ASSAY_CHECK(there->synchronize());
  } else {
    ASSAY_CHECK((*read_lent_)(address_ + from, copy_));
  }
  return TensorBytes{dtype_, copy_};
}

ComplexValues complex_values(const TensorBytes& tensor) {
  ComplexValues values(tensor.count());
  const std::size_t size = size_of(tensor.dtype);
  visit(tensor.dtype, [&](auto type) {
    using T = decltype(type)::type;
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = widened<T>(tensor.bytes.data() + i * size);
    }
  });
  return values;
}

std::vector<double> real_values(const TensorBytes& tensor) {
  std::vector<double> values(tensor.count());
  const std::size_t size = size_of(tensor.dtype);
  visit(tensor.dtype, [&](auto type) {
    using T = decltype(type)::type;
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = widened<T>(tensor.bytes.data() + i * size).real();
    }
  });
  return values;
}

std::uint64_t block_of(const Tensor& left, const Tensor& right) {
  constexpr std::uint64_t kLent = 1 << 18;
  const std::uint64_t element = size_of(left.dtype());
  if (left.device() != nullptr || right.device() != nullptr) return Staging::kBlock / element;
  return (left.lent() || right.lent() ? kLent : left.size()) / element;
}

std::uint64_t widened_at_once(const Tensor& left, const Tensor& right) {
  constexpr std::uint64_t kWidened = 1 << 12;
  const bool on_device = left.device() != nullptr || right.device() != nullptr;
  return on_device ? Staging::kBlock / size_of(left.dtype()) : kWidened;
}

bool all_zero(const TensorBytes& tensor) {
  const std::span<const std::byte> bytes = tensor.bytes;
  // The first byte is zero, and each byte equals the one before it.
  if (bytes.empty() || (bytes.front() == std::byte{0} &&
                        std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0)) {
    return true;
  }
  const ComplexValues values = complex_values(tensor);
  return std::all_of(values.begin(), values.end(),
                     [](const std::complex<double>& value) { return value == 0.0; });
}

void take_magnitudes(ComplexValues& values) {
  for (std::complex<double>& value : values) value = std::abs(value);
}

void sort_values(ComplexValues& values) {
  const auto key = [](double part) { return std::isnan(part) ? INFINITY : part; };
  std::sort(values.begin(), values.end(), [&](const auto& a, const auto& b) {
    if (key(a.real()) != key(b.real())) return key(a.real()) < key(b.real());
    return key(a.imag()) < key(b.imag());
  });
}

std::string scalar_text(const wire::Leaf& leaf) {
  switch (leaf.kind()) {
    case wire::LeafKind::tensor:
      return {};
    case wire::LeafKind::floating:
      return fmt::format("{}", leaf.number());
    case wire::LeafKind::complex:
      return fmt::format("{}{:+}j", leaf.number(), leaf.imaginary());
    case wire::LeafKind::boolean:
      return leaf.integer() != 0 ? "True" : "False";
    default:
      return leaf.text() == nullptr ? std::string() : leaf.text()->str();
  }
}

}  // namespace assay
