#pragma once

// The slot's side of a lane: a forked process that runs batches of cases.

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
  bool oom_killed = false;  // the kernel killed some process for lack of memory meanwhile
};

// A running lane. Its destructor closes the socket; the lane reads end-of-file and exits.
class Lane {
 public:
  int socket() const { return socket_.get(); }
  pid_t pid() const { return pid_; }
  const std::shared_ptr<wire::Arena>& arena() const { return arena_; }
  wire::FrameReader& reader() { return reader_; }
  // Whether the lane has reported that it ends because of a device fault. The kernel takes 0.1 s to
  // clean up such a process; the next lane need not wait for that.
  bool says_end_of_device() const { return arena_->header().end.load() == wire::kEndOfDevice; }
  // Whether the lane runs outside of the run's MPS.
  bool outside_mps() const { return outside_mps_; }
  std::uint64_t cases_run() const { return cases_run_; }
  void count_cases(std::uint64_t cases) { cases_run_ += cases; }

  Status send(std::span<const std::uint8_t> message) {
    return wire::send_frame(socket_.get(), message);
  }
  void kill() const;
  // Restricts the lane, and every thread that it starts later, to this core.
  Status stay_on(int core) const;
  bool alive() const;

  // Whether results may stay in the lane's memory: the lane has opened its channel, and the kernel
  // lets us read its memory. Containers and hardened systems forbid that.
  bool can_lend() const;
  // Waits until the lane has opened its channel, has ended, or `limit` is over. A new lane needs
  // some milliseconds.
  void wait_until_open(std::chrono::milliseconds limit) const;
  // Copies from `address` in the lane's memory. An error if the lane has ended.
  Status read(std::uint64_t address, std::span<std::byte> to) const;

 private:
  friend class LaneSource;
  Fd socket_;
  Fd pidfd_;
  pid_t pid_ = -1;
  std::shared_ptr<wire::Arena> arena_;  // shared with answers that point into it
  wire::FrameReader reader_;
  bool outside_mps_ = false;
  std::uint64_t cases_run_ = 0;
  std::uint64_t oom_kills_before_ = 0;  // the kernel's count when the lane was forked
};

// A slot's connection to a fork server.
class LaneSource {
 public:
  // Lanes make large inputs in `inputs`, if that is given.
  LaneSource(std::string address, std::string device, std::filesystem::path log,
             std::shared_ptr<const SharedInputs> inputs = nullptr)
      : address_(std::move(address)),
        device_(std::move(device)),
        log_(std::move(log)),
        inputs_(std::move(inputs)) {}

  // Forks a lane. Reuses `arena` if one is given (its results are lost), else makes a new one.
  // Waits for a server that is being replaced, 5 min at most. A lane with `outside_mps` runs
  // outside of the run's MPS: a fault of another process on its GPU does not end it, nor the other
  // way round.
  Result<Lane> spawn(std::shared_ptr<wire::Arena> arena, bool outside_mps = false);

  // How a lane ended; kills it if it still runs after `limit`. nullopt if that is unknown, because
  // its server has died as well.
  Result<std::optional<LaneExit>> wait_exit(const Lane& lane, std::chrono::milliseconds limit);

  // The file that its lanes print to.
  const std::filesystem::path& log() const { return log_; }

 private:
  Result<std::optional<ServerMessage>> receive(std::chrono::milliseconds limit);
  Result<std::optional<Lane>> try_spawn(const std::shared_ptr<wire::Arena>& arena,
                                        bool outside_mps);

  std::string address_;
  std::string device_;
  std::filesystem::path log_;
  std::shared_ptr<const SharedInputs> inputs_;
  Fd connection_;
};

}  // namespace assay
