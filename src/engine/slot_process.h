#pragma once

// A slot, as the supervisor sees it: a child process and the connection to it. Nothing here blocks:
// what the socket does not take waits in an outbox, and what comes is told as it comes.

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <csignal>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "slot/config.h"
#include "wire/frame.h"
#include "wire/job.h"

namespace assay {

// The process of a slot that has not been told yet what it is to do.
struct SpawnedSlot {
  Process process;
  Fd socket;
};
// `device`, such as "gpu:0", is opened at once; empty: none.
Result<SpawnedSlot> spawn_slot(std::uint32_t index, const std::filesystem::path& logs,
                               const std::string& device);

class SlotProcess {
 public:
  struct Events {
    std::function<void(const wire::Bytes&)> said;           // a message, not yet verified
    std::function<void(const std::string&)> said_nonsense;  // and nothing more is read from it
    // The process has ended, and all it had said was told. The last thing that is told.
    std::function<void(const ExitStatus&)> gone;
  };

  static std::unique_ptr<SlotProcess> start(asio::io_context& context, SpawnedSlot spawned,
                                            const SlotConfig& config, Events events);
  SlotProcess(const SlotProcess&) = delete;
  SlotProcess& operator=(const SlotProcess&) = delete;
  ~SlotProcess();  // kills it

  void send(const std::vector<wire::JobT>& lease);
  void send_stop();
  void send_give_back();
  void kill() const { process_.signal_group(SIGKILL); }

 private:
  SlotProcess(asio::io_context& context, Process process, Fd socket, Events events);
  void post(std::span<const std::uint8_t> message);
  using Wait = asio::posix::stream_descriptor::wait_type;
  template <typename Then>
  void wait_for(asio::posix::stream_descriptor& watch, Wait what, Then then);
  void flush();
  void watch_socket();
  void watch_process();
  bool take_messages();

  Process process_;
  Fd socket_;
  Events events_;
  asio::posix::stream_descriptor socket_watch_;  // these borrow their descriptors
  asio::posix::stream_descriptor process_watch_;
  wire::FrameReader reader_;
  bool deaf_ = false;  // nothing more is read from it
  wire::Bytes outbox_;
  std::size_t sent_ = 0;  // of the outbox
  bool waits_to_send_ = false;
  std::shared_ptr<int> here_ = std::make_shared<int>();  // while we are
};

}  // namespace assay
