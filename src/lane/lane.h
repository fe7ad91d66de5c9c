#pragma once

// A lane, as its slot sees it: a forked process that runs batches of cases.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "device/shared_inputs.h"
#include "wire/arena.h"
#include "wire/frame.h"

namespace assay {

struct ServerMessage;

struct LaneExit {
  int signal = 0;
  int code = 0;
  std::uint64_t max_rss_kb = 0;
  bool oom_killed = false;  // the kernel ran out of memory and killed something meanwhile
};

// A running lane. Closing it (or letting it go) ends the process: it reads end-of-file, and the
// pidfd kills it if that is not enough.
class Lane {
 public:
  int socket() const { return socket_.get(); }
  pid_t pid() const { return pid_; }
  const std::shared_ptr<wire::Arena>& arena() const { return arena_; }
  wire::FrameReader& reader() { return reader_; }
  // Whether it has said that it ends because its device reported a fault. The kernel takes 0.1 s to
  // clear up a process that had one, and its next lane need not wait for that.
  bool says_end_of_device() const { return arena_->header().end.load() == wire::kEndOfDevice; }
  // Whether it has left the run's MPS, which the others of its seat go through.
  bool apart() const { return apart_; }
  std::uint64_t cases_run() const { return cases_run_; }
  void count_cases(std::uint64_t cases) { cases_run_ += cases; }

  Status send(std::span<const std::uint8_t> message) {
    return wire::send_frame(socket_.get(), message);
  }
  void kill() const;
  // From now on it runs on this core alone, and so does every thread that it begins.
  Status stay_on(int core) const;
  bool alive() const;

  // Whether results may stay in the lane's memory: the kernel lets us read it (containers and
  // hardened systems forbid that), and the lane has opened its channel.
  bool can_lend() const;
  // A lane that has just been forked opens its channel some milliseconds later. Returns when it
  // has, has ended, or the limit has passed.
  void wait_until_open(std::chrono::milliseconds limit) const;
  // Copies what lies at `address` in the lane's memory. Fails when the lane has ended.
  Status read(std::uint64_t address, std::span<std::byte> to) const;

 private:
  friend class LaneSource;
  Fd socket_;
  Fd pidfd_;
  pid_t pid_ = -1;
  std::shared_ptr<wire::Arena> arena_;  // shared with answers that still point into it
  wire::FrameReader reader_;
  bool apart_ = false;
  std::uint64_t cases_run_ = 0;
  std::uint64_t oom_kills_before_ = 0;  // the kernel's count when the lane was forked
};

// A slot's connection to a fork server.
class LaneSource {
 public:
  // Its lanes may make large inputs in `inputs`.
  LaneSource(std::string address, std::string device, std::filesystem::path log,
             std::shared_ptr<const SharedInputs> inputs = nullptr)
      : address_(std::move(address)),
        device_(std::move(device)),
        log_(std::move(log)),
        inputs_(std::move(inputs)) {}

  // Forks a lane. `arena` is reused when given (the results in it are lost), else made anew.
  // Waits for a server that is being replaced. A lane that is `apart` does not go through the run's
  // MPS: no fault of another process on its GPU ends it, nor one of its own others.
  Result<Lane> spawn(std::shared_ptr<wire::Arena> arena, bool apart = false);

  // How a lane ended; kills it if it has not ended within `limit`. nullopt: the server died with
  // it, so nobody knows.
  Result<std::optional<LaneExit>> wait_exit(const Lane& lane, std::chrono::milliseconds limit);

  // Where its lanes print.
  const std::filesystem::path& log() const { return log_; }

 private:
  Result<std::optional<ServerMessage>> receive(std::chrono::milliseconds limit);
  Result<std::optional<Lane>> try_spawn(const std::shared_ptr<wire::Arena>& arena, bool apart);

  std::string address_;
  std::string device_;
  std::filesystem::path log_;
  std::shared_ptr<const SharedInputs> inputs_;
  Fd connection_;
};

}  // namespace assay
