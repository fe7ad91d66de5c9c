#include "engine/slot_process.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "device/device.h"
#include "wire/messages_generated.h"

namespace assay {
namespace {

constexpr int kSlotFd = 3;

// The bytes of a finished message in `builder`.
std::span<const std::uint8_t> message_of(flatbuffers::FlatBufferBuilder& builder,
                                         wire::ToSlotBody kind, flatbuffers::Offset<void> body) {
  builder.Finish(wire::CreateToSlot(builder, wire::kMessageVersion, kind, body));
  return wire::bytes_of(builder);
}

}  // namespace

Result<SpawnedSlot> spawn_slot(std::uint32_t index, const std::filesystem::path& logs,
                               const std::string& device) {
  ASSAY_TRY(const std::string program, own_executable());
  ASSAY_TRY(FdPair ends, make_socket_pair());
  ASSAY_TRY(const Fd log_file, open_for_append(logs / fmt::format("slot{}.log", index)));
  SpawnOptions options;
  options.argv = {program, "slot"};
  if (!device.empty()) options.argv.push_back("--device=" + device);
  options.argv.insert(options.argv.end(), {"--", std::to_string(index), logs.string()});
  options.environment = {kGpuOrder, kGpuQueues};
  options.fds = {{log_file.get(), 1}, {log_file.get(), 2}, {ends.second.get(), kSlotFd}};
  ASSAY_TRY(Process process, Process::spawn(options));
  return SpawnedSlot{std::move(process), std::move(ends.first)};
}

std::unique_ptr<SlotProcess> SlotProcess::start(asio::io_context& context, SpawnedSlot spawned,
                                                const SlotConfig& config, Events events) {
  std::unique_ptr<SlotProcess> slot(new SlotProcess(context, std::move(spawned.process),
                                                    std::move(spawned.socket), std::move(events)));
  slot->post(begin_message(config));
  slot->watch_socket();
  slot->watch_process();
  return slot;
}

SlotProcess::SlotProcess(asio::io_context& context, Process process, Fd socket, Events events)
    : process_(std::move(process)),
      socket_(std::move(socket)),
      events_(std::move(events)),
      socket_watch_(context, socket_.get()),
      process_watch_(context, process_.pidfd()) {}

// Handlers that were ready before this object ended may still be called.
template <typename Then>
void SlotProcess::wait_for(asio::posix::stream_descriptor& watch, Wait what, Then then) {
  watch.async_wait(what, [then, here = std::weak_ptr<int>(here_)](const asio::error_code& error) {
    if (!error && !here.expired()) then();
  });
}

SlotProcess::~SlotProcess() {
  (void)socket_watch_.release();
  (void)process_watch_.release();
}

// ---- what it is told ----

void SlotProcess::send(const std::vector<wire::JobT>& lease) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::Job>> jobs;
  jobs.reserve(lease.size());
  for (const wire::JobT& queued : lease) {
    jobs.push_back(wire::pack(builder, queued));
  }
  const auto body = wire::CreateLease(builder, builder.CreateVector(jobs));
  post(message_of(builder, wire::ToSlotBody::Lease, body.Union()));
}

void SlotProcess::send_stop() {
  flatbuffers::FlatBufferBuilder builder;
  post(message_of(builder, wire::ToSlotBody::Stop, wire::CreateStop(builder).Union()));
}

void SlotProcess::send_give_back() {
  flatbuffers::FlatBufferBuilder builder;
  post(message_of(builder, wire::ToSlotBody::GiveBack, wire::CreateGiveBack(builder).Union()));
}

void SlotProcess::post(std::span<const std::uint8_t> message) {
  wire::append_frame(outbox_, message);
  if (!waits_to_send_) flush();
}

void SlotProcess::flush() {
  while (sent_ < outbox_.size()) {
    const ssize_t sent = ::send(socket_.get(), outbox_.data() + sent_, outbox_.size() - sent_,
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      sent_ += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      waits_to_send_ = true;
      return wait_for(socket_watch_, Wait::wait_write, [this] {
        waits_to_send_ = false;
        flush();
      });
    } else if (errno != EINTR) {
      break;  // the process has ended, which watch_process() sees
    }
  }
  outbox_.clear();
  sent_ = 0;
}

// ---- what it says ----

void SlotProcess::watch_socket() {
  wait_for(socket_watch_, Wait::wait_read, [this] {
    if (take_messages()) watch_socket();
  });
}

// False: nothing more will come.
bool SlotProcess::take_messages() {
  if (deaf_) return false;
  const auto open = reader_.feed(socket_.get());
  while (!deaf_) {
    const auto message = reader_.next();
    if (message && !*message) break;
    if (message) {
      events_.said(**message);
    } else {
      deaf_ = true;
      events_.sent_invalid(message.error().message);
    }
  }
  deaf_ = deaf_ || !open || !*open;
  return !deaf_;
}

void SlotProcess::watch_process() {
  wait_for(process_watch_, Wait::wait_read, [this] {
    ExitStatus status;
    const auto ended = process_.try_wait(status);
    if (ended && !*ended) return watch_process();  // the event was spurious
    (void)take_messages();                         // what it said before it ended
    events_.gone(status);
  });
}

}  // namespace assay
