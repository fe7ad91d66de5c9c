#pragma once

// The arena of a lane: shared memory that the lane fills with results and the slot reads.
//
// It is a sparse anonymous file that both sides map as a whole. A page gets memory when it is first
// touched and keeps it for the next case: first touches run at 1 GB/s, reused pages at 10 GB/s. A
// header shows what the lane is doing, so that the slot can time and blame it without a message.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/fd.h"
#include "base/result.h"
#include "wire/messages_generated.h"

namespace assay::wire {

inline constexpr std::uint32_t kIdle = 0xffff'ffff;
// In ArenaHeader::end: the lane ends because its device reported a fault.
inline constexpr std::uint32_t kEndOfDevice = 0x656e64ed;
// How far ahead of now the start of a job lies at most, while its lane compiles.
inline constexpr std::int64_t kMostCompileNs = 240'000'000'000;
inline constexpr std::size_t kStagesOfLane = static_cast<std::size_t>(Stage::MAX) + 1;
inline constexpr std::uint64_t kArenaBytes = std::uint64_t{1}
                                             << 38;  // of address space, not memory
inline constexpr std::uint64_t kArenaAlignment = 64;

struct ArenaHeader {
  std::atomic<std::uint32_t> running;    // index of the running job in its batch, or kIdle
  std::atomic<std::uint32_t> end;        // kEndOfDevice, set before the lane ends
  std::atomic<std::int64_t> started_ns;  // start of that job, by the monotonic clock
  std::atomic<std::uint64_t> address;    // of this header in the lane's memory; 0: not yet mapped
  std::atomic<std::uint32_t> stage;      // Stage of that job
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

class Arena {
 public:
  // A new arena. The slot makes it and passes its fd() to the lane.
  static Result<Arena> create();
  // The lane's view of an arena.
  static Result<Arena> map(Fd file);

  int fd() const { return file_.get(); }
  ArenaHeader& header() const { return *reinterpret_cast<ArenaHeader*>(mapping_.data()); }
  std::byte* data() const { return mapping_.data(); }
  // Whether [offset, offset + bytes) lies in the arena. Checks offsets from messages.
  bool holds(std::uint64_t offset, std::uint64_t bytes) const;

  // Reserves bytes and returns their offset. An error if the arena is full.
  Result<std::uint64_t> reserve(std::uint64_t bytes);
  // Drops all reservations.
  void clear();
  // Returns the memory after the first `keep` bytes to the system.
  void trim(std::uint64_t keep);

 private:
  Fd file_;
  Mapping mapping_;
  std::uint64_t used_ = kFirst;
  static constexpr std::uint64_t kFirst = 4096;
};

}  // namespace assay::wire
