#pragma once

// Tensors in an arena, seen as bytes or widened to numbers for the comparisons that are not done
// element by element in their own dtype.

#include <complex>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "case/dtype.h"
#include "device/shared_cache.h"
#include "wire/arena.h"
#include "wire/messages_generated.h"

namespace assay {

struct TensorBytes {
  DType dtype = DType::float32;
  std::span<const std::byte> bytes;
  std::size_t count() const { return bytes.size() / size_of(dtype); }
};

// Copies what lies at `address` in a lane's own memory.
using ReadLent = std::function<Status(std::uint64_t address, std::span<std::byte> to)>;

// Where a lane's results lie.
struct LaneMemory {
  const wire::Arena* arena = nullptr;
  ReadLent read_lent;
  SharedCache* shared = nullptr;  // opens what it lends on a GPU
};

// A tensor of a lane's results. One that is lent, or on a device, is copied when its bytes are
// asked for.
class Tensor {
 public:
  // Fails when the leaf points outside the arena or its shape and size disagree: a broken lane.
  static Result<Tensor> of(const wire::Leaf& leaf, const LaneMemory& memory);

  DType dtype() const { return dtype_; }
  std::uint64_t size() const { return size_; }  // in bytes
  bool lent() const { return read_lent_ != nullptr || cache_ != nullptr; }
  // Where it lies on a device; nullptr: on the host.
  Device* device() const { return cache_ != nullptr ? cache_->device() : nullptr; }
  const std::byte* device_memory() const { return on_device_; }
  // What brings others' bytes there; nullptr where nothing can.
  Staging* staging() const { return cache_ != nullptr ? cache_->staging() : nullptr; }
  // Bytes [from, from + size) of it, valid until the next call.
  Result<TensorBytes> bytes(std::uint64_t from, std::uint64_t size);
  Result<TensorBytes> bytes() { return bytes(0, size_); }
  // Copies its bytes from there on; not of what lies on a device.
  Status read(std::uint64_t from, std::span<std::byte> to) const;

 private:
  Status open(const flatbuffers::Vector<std::uint8_t>& said, SharedCache& cache);

  DType dtype_ = DType::float32;
  std::uint64_t size_ = 0;
  std::uint64_t address_ = 0;
  const std::byte* in_arena_ = nullptr;
  const ReadLent* read_lent_ = nullptr;
  SharedCache* cache_ = nullptr;
  const std::byte* on_device_ = nullptr;
  std::vector<std::byte> copy_;
};

inline bool is_complex(DType dtype) { return info(dtype).kind == DTypeClass::complex; }

using ComplexValues = std::vector<std::complex<double>>;
std::vector<double> real_values(const TensorBytes& tensor);
ComplexValues complex_values(const TensorBytes& tensor);

// How many elements of a pair are looked at at once in their own dtype: of what is lent so many
// that they stay in the cache, of what is on a device so many that it is worth asking for them.
std::uint64_t block_of(const Tensor& left, const Tensor& right);

// How many elements of a pair are widened at once: so few that they stay in the cache, or on a
// device so many that it is worth asking for them.
std::uint64_t widened_at_once(const Tensor& left, const Tensor& right);

// Zeros of either sign.
bool all_zero(const TensorBytes& tensor);

void take_magnitudes(ComplexValues& values);
// By real, then imaginary part; NaN last.
void sort_values(ComplexValues& values);

// A number, text or dtype as text for people; empty for tensors.
std::string scalar_text(const wire::Leaf& leaf);

}  // namespace assay
