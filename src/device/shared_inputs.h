#pragma once

// Large tensors on the host that the lanes of a slot have in common, inputs and what gradients
// begin with: made once, in one anonymous file, of which each lane sees a copy of its own (it is
// copied page by page where a lane writes).
//
// Lanes that want the same tensor at the same time make it together, a block at a time. A block is
// made in the lane's own memory and written to the file, so no lane ever has the file mapped where
// a stray write could reach it; and since a block has the same bytes from every lane, a lane
// that finds one missing at the end makes it itself, and waits for nobody.

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

// A lane's own view of a tensor in the file; ends with it.
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
  // checksum() of what it was filled with.
  std::uint64_t checksum() const { return checksum_; }

 private:
  std::span<std::byte> memory_;
  std::uint64_t checksum_ = 0;
};

class SharedInputs {
 public:
  // How many tensors of a case are looked after; others have each lane's own memory.
  static constexpr std::size_t kPlaces = 64;
  // Where the first tensor's room begins.
  static constexpr std::uint64_t kFirst = 4096;

  // Bytes of the file that a tensor of so many bytes takes; 0: it is too large.
  static std::uint64_t room_for(std::uint64_t bytes);

  // A file for a slot, and the same file in a lane.
  static Result<SharedInputs> create();
  static Result<SharedInputs> open(Fd file);

  int fd() const { return file_.get(); }

  // Forgets all tensors, not their memory, which the next ones are made in. To be called by the
  // slot, while no lane runs anything.
  void renew();
  // Bytes of memory that the file has.
  std::uint64_t held() const;
  // Gives memory behind the first `keep` bytes back to the system.
  void trim(std::uint64_t keep);

  // The tensor that `key` names, whose room begins at `offset`: `count` elements by the rule, more
  // than a checksum's chunk. Each tensor of a case has a place (less than kPlaces) and a room for
  // itself. Nothing where another is in its place since renew(), or where no memory is left.
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
