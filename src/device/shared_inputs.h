#pragma once

// Large host tensors that the lanes of a slot share: inputs and upstream gradients. They are made
// once, in one anonymous file. Each lane maps the file copy-on-write.
//
// Lanes that need the same tensor at the same time make it together, a block at a time. A lane
// makes a block in its own memory and writes it to the file, so a stray write of a case cannot
// reach the file. Every lane computes the same bytes for a block: a lane that finds a block missing
// at the end makes that block itself instead of waiting.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/fd.h"
#include "base/result.h"
#include "case/dtype.h"
#include "fill/rule.h"

namespace assay {

// A lane's copy-on-write view of a tensor. The destructor unmaps it.
class SharedTensor {
 public:
  SharedTensor(std::span<std::byte> memory, std::uint64_t checksum)
      : memory_(memory), checksum_(checksum) {}
  SharedTensor(SharedTensor&& other) noexcept
      : memory_(std::exchange(other.memory_, {})), checksum_(other.checksum_) {}
  SharedTensor& operator=(SharedTensor&&) = delete;
  SharedTensor(const SharedTensor&) = delete;
  SharedTensor& operator=(const SharedTensor&) = delete;
  ~SharedTensor();

  std::span<std::byte> memory() const { return memory_; }
  // The checksum() of the bytes that it was filled with.
  std::uint64_t checksum() const { return checksum_; }

 private:
  std::span<std::byte> memory_;
  std::uint64_t checksum_ = 0;
};

class SharedInputs {
 public:
  // Tensors of a case that can be shared. Every lane makes the others in its own memory.
  static constexpr std::size_t kPlaces = 64;
  // Offset of the first tensor in the file.
  static constexpr std::uint64_t kFirst = 4096;

  // Bytes of the file that a tensor of this size takes; 0 if the tensor is too large.
  static std::uint64_t room_for(std::uint64_t bytes);

  // create() makes the file, in a slot; open() takes the same file in a lane.
  static Result<SharedInputs> create();
  static Result<SharedInputs> open(Fd file);

  int fd() const { return file_.get(); }

  // Forgets all tensors and keeps their memory for the next ones. Only the slot calls it, while its
  // lanes are idle.
  void renew();
  // Bytes of memory that the file occupies.
  std::uint64_t held() const;
  // Returns memory behind the first `keep` bytes to the system.
  void trim(std::uint64_t keep);

  // The tensor for `key`, filled by the rule: `count` elements (more than a checksum's chunk) at
  // `offset` in the file. Every tensor of a case has its own `place` (below kPlaces) and its own
  // range of the file. nullopt when the place was given to another tensor since renew(), or no
  // memory is left.
  std::optional<SharedTensor> make(const FillRule& rule, const FillKey& key, DType dtype,
                                   std::uint64_t count, std::uint64_t offset, std::size_t place);

 private:
  struct Header;
  SharedInputs(Fd file, Mapping header) : file_(std::move(file)), header_(std::move(header)) {}
  Header& header() const { return *reinterpret_cast<Header*>(header_.data()); }

  Fd file_;
  Mapping header_;
};

}  // namespace assay
