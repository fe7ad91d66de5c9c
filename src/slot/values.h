#pragma once

// Tensors in an arena: as bytes, or widened to numbers for comparisons that do not work in the
// tensor's own dtype.

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

// Copies bytes at `address` of a lane's own memory.
using ReadLent = std::function<Status(std::uint64_t address, std::span<std::byte> to)>;

// The memory that holds a lane's results.
struct LaneMemory {
  const wire::Arena* arena = nullptr;
  ReadLent read_lent;
  SharedCache* shared = nullptr;  // opens results lent on a GPU
};

// A tensor of a lane's results. If it is lent or on a device, its bytes are copied on request.
class Tensor {
 public:
  // Fails if the leaf points outside the arena, or if its shape and size disagree: the lane is
  // broken.
  static Result<Tensor> of(const wire::Leaf& leaf, const LaneMemory& memory);

  DType dtype() const { return dtype_; }
  std::uint64_t size() const { return size_; }  // in bytes
  bool lent() const { return read_lent_ != nullptr || cache_ != nullptr; }
  // The device that holds it; nullptr: it is on the host.
  Device* device() const { return cache_ != nullptr ? cache_->device() : nullptr; }
  const std::byte* device_memory() const { return on_device_; }
  // Copies other tensors to that device; nullptr if nothing can.
  Staging* staging() const { return cache_ != nullptr ? cache_->staging() : nullptr; }
  // Bytes [from, from + size), valid until the next call.
  Result<TensorBytes> bytes(std::uint64_t from, std::uint64_t size);
  Result<TensorBytes> bytes() { return bytes(0, size_); }
  // Copies its bytes from `from` on. Not for a tensor on a device.
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

// Elements of a pair that are compared at once in their own dtype. Blocks of lent tensors stay in
// the cache; blocks on a device are large enough for a launch.
std::uint64_t block_of(const Tensor& left, const Tensor& right);

// Elements of a pair that are widened at once. The block stays in the cache; on a device it is
// large enough for a copy.
std::uint64_t widened_at_once(const Tensor& left, const Tensor& right);

// Whether all elements are zero, of either sign.
bool all_zero(const TensorBytes& tensor);

void take_magnitudes(ComplexValues& values);
// Sorts by real, then imaginary part; NaN last.
void sort_values(ComplexValues& values);

// A number, text or dtype for people to read; empty for a tensor.
std::string scalar_text(const wire::Leaf& leaf);

}  // namespace assay
