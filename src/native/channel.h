#pragma once

// A lane's end of its channel to the slot. Batches come in and replies go out over a socket;
// results go into the arena, which both processes map.

#include <sys/types.h>

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
    let_go,  // lent results are no longer needed; the next call of next() confirms that
    closed,  // by the slot
  };
  // Blocks for the next job. The arena is empty again at the start of every batch.
  Result<Received> next();

  // The running job, its index in its batch, and the batch: valid until the next call of next().
  const wire::Job& job() const { return *job_; }
  std::uint32_t index() const { return next_index_ - 1; }
  const wire::Batch& batch() const { return *batch_; }
  // An error if a case has closed the channel's descriptor, or made it refer to another file.
  Status check_socket() const;
  // Whether no other lane of the slot runs the job at the same time; false without a job.
  bool runs_alone() const;

  // Reserves bytes in the arena, which grows as needed; returns their offset.
  Result<std::uint64_t> reserve(std::size_t bytes) { return arena_.reserve(bytes); }
  const wire::Arena& arena() const { return arena_; }
  // Whether the running job is the last of its batch.
  bool at_last_job() const { return batch_ == nullptr || next_index_ == batch_->jobs()->size(); }

  // The running job compiles from now on, or goes on. Its limit does not count that time, up to
  // kMostCompileNs. Returns the nanoseconds of the compilation that ends; 0 within another one.
  std::int64_t compiling(bool on);

  // Tells the slot at once that the lane ends because its device has failed.
  void end_of_device() const;

  // Takes a finished wire::Reply. Replies go out when their batch ends or a millisecond has passed
  // since the last sending; until then they are collected. With `others_follow` the reply always
  // waits.
  Status reply(std::span<const std::uint8_t> message, bool others_follow = false);

 private:
  Channel(Fd socket, wire::Arena arena)
      : socket_(std::move(socket)), inode_(inode_of(socket_)), arena_(std::move(arena)) {}
  static ino_t inode_of(const Fd& file);
  Status flush();
  void answer_that_lane_let_go();

  Fd socket_;
  ino_t inode_;  // of the socket; 0 if unknown
  wire::Arena arena_;
  wire::Bytes batch_bytes_;
  const wire::Batch* batch_ = nullptr;
  const wire::Job* job_ = nullptr;
  std::uint32_t next_index_ = 0;
  wire::Bytes pending_;  // framed replies
  std::int64_t last_flush_ns_ = 0;
  int compilations_ = 0;  // of the running job that have not ended
  std::int64_t compiles_from_ns_ = 0;
  bool letting_go_ = false;  // the slot waits for the answer to an empty batch
};

}  // namespace assay::native
