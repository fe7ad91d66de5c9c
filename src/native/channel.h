#pragma once

// A lane's end of its channel to the slot: batches come in over a socket, replies go back over it,
// results go into the arena, which both map.

#include <cstdint>
#include <span>

#include "base/fd.h"
#include "base/result.h"
#include "case/dtype.h"
#include "wire/arena.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

namespace assay::native {

class Channel {
 public:
  static Result<Channel> open(Fd socket, Fd arena);

  enum class Received {
    job,     // see job()
    let_go,  // no job: what was lent is no longer needed, which the next call of next() answers
    closed,  // by the slot
  };
  // Blocks for the next job. At the start of every batch the arena is empty again.
  Result<Received> next();

  // The job at hand, its position in its batch, and the batch: valid until the next call of next().
  const wire::Job& job() const { return *job_; }
  std::uint32_t index() const { return next_index_ - 1; }
  const wire::Batch& batch() const { return *batch_; }
  // Whether no other lane of the slot runs the job at hand meanwhile; false without a job.
  bool runs_alone() const;

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
  const wire::Job* job_ = nullptr;
  std::uint32_t next_index_ = 0;
  wire::Bytes pending_;  // framed replies
  std::int64_t last_flush_ns_ = 0;
  bool letting_go_ = false;  // the slot waits for the answer to a batch without jobs
};

}  // namespace assay::native
