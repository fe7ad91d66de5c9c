#pragma once

// A slot, as the supervisor sees it: a child process, the connection to it, the cases it holds.

#include <csignal>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "schedule/queue.h"
#include "slot/config.h"
#include "wire/frame.h"

namespace assay {

class SlotProcess {
 public:
  static Result<SlotProcess> start(const SlotConfig& config, const std::filesystem::path& log);

  int socket() const { return socket_.get(); }
  std::uint32_t index() const { return index_; }

  Status send(std::span<const QueuedCase> leased);
  Status send_stop();

  // Reads what has come. False: the slot has closed its end.
  Result<bool> feed() { return reader_.feed(socket_.get()); }
  Result<std::optional<wire::Bytes>> next_message() { return reader_.next(); }

  // Cases that were sent and not yet answered.
  const std::deque<QueuedCase>& held() const { return held_; }
  // Takes an answered case off that list; nullopt when the slot did not hold it.
  std::optional<QueuedCase> settle(std::uint64_t id);

  void kill() const { process_.signal_group(SIGKILL); }
  Result<ExitStatus> wait() { return process_.wait(); }

 private:
  std::uint32_t index_ = 0;
  Process process_;
  Fd socket_;
  wire::FrameReader reader_;
  std::deque<QueuedCase> held_;
};

}  // namespace assay
