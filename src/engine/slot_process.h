#pragma once

// A slot as the supervisor sees it: a child process and its connection. Nothing blocks: bytes that
// the socket does not accept wait in an outbox, and messages are reported as they arrive.

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

// A slot's process before its first message.
struct SpawnedSlot {
  Process process;
  Fd socket;
};
// Starts a slot's process, whose log goes to the folder `logs`. It opens `device`, such as "gpu:0",
// at once; empty: none.
Result<SpawnedSlot> spawn_slot(std::uint32_t index, const std::filesystem::path& logs,
                               const std::string& device);

class SlotProcess {
 public:
  struct Events {
    // A message, not verified yet.
    std::function<void(const wire::Bytes&)> said;
    // An invalid message, with a description. Nothing more is read from the slot.
    std::function<void(const std::string&)> sent_invalid;
    // The last event: the process has ended, and all its messages were reported.
    std::function<void(const ExitStatus&)> gone;
  };

  // Sends the slot its configuration, and reports its events on `context`.
  static std::unique_ptr<SlotProcess> start(asio::io_context& context, SpawnedSlot spawned,
                                            const SlotConfig& config, Events events);
  SlotProcess(const SlotProcess&) = delete;
  SlotProcess& operator=(const SlotProcess&) = delete;
  ~SlotProcess();  // kills the process

  void send(const std::vector<wire::JobT>& lease);
  // Asks the slot to finish its batch and exit.
  void send_stop();
  // Asks the slot to free its memory.
  void send_give_back();
  // Kills the slot and its process group.
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
  bool deaf_ = false;  // nothing more is read
  wire::Bytes outbox_;
  std::size_t sent_ = 0;  // bytes of the outbox
  bool waits_to_send_ = false;
  std::shared_ptr<int> here_ = std::make_shared<int>();  // alive as long as this object
};

}  // namespace assay
