#pragma once

// The run's side of the shim (chain/shim/main.cc): a socket on which a script's commands arrive,
// and the way back for their output. Nothing here blocks.

#include <poll.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "chain/shim/call.h"

namespace assay::chain::script {

// One shim, which waits for the end of its command.
class CallLine {
 public:
  explicit CallLine(Fd socket) : socket_(std::move(socket)) {}

  void add_to(std::vector<pollfd>& fds) const;
  // Reads what has arrived. Returns the call once it is complete.
  std::optional<shim::Call> receive();
  // The standard input of the script's command.
  const Fd& input() const { return input_; }
  // Sends output as far as the shim takes it; the rest waits.
  void send(shim::Answer kind, std::string_view bytes);
  void flush();
  // Whether the shim takes more output now.
  bool ready() const { return waiting_.size() < kMostWaiting; }
  // Whether all was sent.
  bool empty() const { return waiting_.empty(); }
  // Whether the shim has ended: its script ended the command.
  bool gone() const { return gone_; }

 private:
  static constexpr std::size_t kMostWaiting = 1 << 20;

  Fd socket_;
  Fd input_;
  bool has_call_ = false;
  bool gone_ = false;
  std::string incoming_;
  std::string waiting_;
};

class CallServer {
 public:
  // Listens at `path`, in a folder of this user alone.
  static Result<CallServer> open(const std::filesystem::path& path);
  int fd() const { return listener_.get(); }
  // A new shim; null if there is none. Processes of other users are turned away.
  std::unique_ptr<CallLine> accept();

 private:
  explicit CallServer(Fd listener) : listener_(std::move(listener)) {}
  Fd listener_;
};

}  // namespace assay::chain::script
