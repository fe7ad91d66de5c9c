#pragma once

// A lane's end of its channel to the slot: batches come in over a socket, replies go back over it,
// results go into the arena, which both map.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "case/dtype.h"
#include "wire/arena.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

namespace assay::native {

// The job at hand, valid until the next call of next_job().
struct CurrentJob {
  std::uint32_t index = 0;  // in its batch
  std::uint64_t id = 0;
  std::string_view text;
  std::string_view values;  // the value regime
  std::uint32_t moves = 0;  // evaluations of the truth under moved inputs
  std::string_view mutant;  // the fault to plant
  bool may_lack_kernel = false;
  bool alone = false;  // no other lane of the slot runs it meanwhile
  const flatbuffers::Vector<std::uint32_t>* calls = nullptr;
  bool let_go = false;  // no job: what was lent is no longer needed
  const wire::Batch* batch = nullptr;
};

class Channel {
 public:
  static Result<Channel> open(Fd socket, Fd arena);

  // Blocks for the next job; nullopt when the slot has closed the channel. The arena is empty again
  // at the start of every batch. That the lane has let go of what it had lent is said by the next
  // call.
  Result<std::optional<CurrentJob>> next_job();

  // Room in the arena, which grows as needed: its offset there.
  Result<std::uint64_t> reserve(std::size_t bytes) { return arena_.reserve(bytes); }
  const wire::Arena& arena() const { return arena_; }
  // Whether the job at hand is the last of its batch.
  bool at_last_job() const { return batch_ == nullptr || next_index_ == batch_->jobs()->size(); }

  // Lets the slot know at once that the lane ends because its device has failed.
  void end_of_device() const;

  // Takes a finished wire::Reply. It is sent at once when its batch ends or when the last sending
  // is a millisecond ago, otherwise together with the next ones; so too if they follow at once.
  Status reply(std::span<const std::uint8_t> message, bool others_follow = false);

 private:
  Channel(Fd socket, wire::Arena arena) : socket_(std::move(socket)), arena_(std::move(arena)) {}
  Status flush();
  void answer_that_lane_let_go();

  Fd socket_;
  wire::Arena arena_;
  wire::Bytes batch_bytes_;
  const wire::Batch* batch_ = nullptr;
  std::uint32_t next_index_ = 0;
  wire::Bytes pending_;  // framed replies
  std::int64_t last_flush_ns_ = 0;
  bool letting_go_ = false;  // the slot waits for the answer to a batch without jobs
};

}  // namespace assay::native
