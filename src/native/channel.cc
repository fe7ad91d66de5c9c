#include "native/channel.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <utility>

#include "base/clock.h"

namespace assay::native {
namespace {
// Allows the slot to read this process's memory under Yama, so that it sees lent results.
void let_slot_read(int socket) {
  ucred slot{};
  socklen_t size = sizeof slot;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &slot, &size) != 0) return;
  (void)::prctl(PR_SET_PTRACER, slot.pid, 0, 0, 0);  // fails without Yama
}

// A switch to the slot costs 35 to 50 µs: small cases share it, slow ones do not wait.
constexpr std::int64_t kFlushAfterNs = 1'000'000;
}  // namespace

Result<Channel> Channel::open(Fd socket, Fd arena) {
  ASSAY_TRY(wire::Arena mapped, wire::Arena::map(std::move(arena)));
  let_slot_read(socket.get());
  wire::ArenaHeader& header = mapped.header();
  header.address.store(reinterpret_cast<std::uintptr_t>(&header), std::memory_order_release);
  return Channel(std::move(socket), std::move(mapped));
}

Result<Channel::Received> Channel::next() {
  if (letting_go_) answer_that_lane_let_go();
  while (batch_ == nullptr || next_index_ == batch_->jobs()->size()) {
    ASSAY_CHECK(flush());
    arena_.header().running.store(wire::kIdle, std::memory_order_release);
    ASSAY_TRY(auto frame, wire::receive_frame(socket_.get()));
    if (!frame) return Received::closed;
    batch_bytes_ = std::move(*frame);
    ASSAY_TRY(batch_, wire::open<wire::Batch>(batch_bytes_));
    if (batch_->jobs() == nullptr || batch_->settings() == nullptr || batch_->lane() == nullptr) {
      return fail("a batch without jobs, settings or lane");
    }
    job_ = nullptr;
    next_index_ = 0;
    arena_.clear();
    last_flush_ns_ = monotonic_ns();
    if (batch_->jobs()->size() == 0) {
      letting_go_ = true;
      return Received::let_go;
    }
  }
  job_ = batch_->jobs()->Get(next_index_);
  compilations_ = 0;
  wire::ArenaHeader& header = arena_.header();
  header.started_ns.store(monotonic_ns(), std::memory_order_relaxed);
  header.stage.store(0, std::memory_order_relaxed);
  header.running.store(next_index_++, std::memory_order_release);
  return Received::job;
}

std::int64_t Channel::compiling(bool on) {
  if (!on && compilations_ == 0) return 0;
  compilations_ += on ? 1 : -1;
  if (compilations_ != (on ? 1 : 0)) return 0;
  const std::int64_t now = monotonic_ns();
  std::atomic<std::int64_t>& started = arena_.header().started_ns;
  if (on) {  // a start that lies ahead: the limit begins then
    compiles_from_ns_ = now;
    started.store(started.load() + wire::kMostCompileNs);
    return 0;
  }
  const std::int64_t took = now - compiles_from_ns_;
  started.store(started.load() - wire::kMostCompileNs + took);
  return took;
}

ino_t Channel::inode_of(const Fd& file) {
  struct stat about {};
  return ::fstat(file.get(), &about) == 0 ? about.st_ino : 0;
}

Status Channel::check_socket() const {
  if (inode_of(socket_) == inode_) return {};
  return fail("the case has closed the lane's connection to its slot");
}

bool Channel::runs_alone() const {
  return job_ != nullptr &&
         (batch_->only_lane() || job_->attempt()->start() != wire::Start::together);
}

void Channel::answer_that_lane_let_go() {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(wire::CreateReply(builder, wire::kMessageVersion));
  wire::append_frame(pending_, wire::bytes_of(builder));
  letting_go_ = false;
}

void Channel::end_of_device() const {
  arena_.header().end.store(wire::kEndOfDevice);
  ::shutdown(socket_.get(), SHUT_RDWR);
}

Status Channel::reply(std::span<const std::uint8_t> message, bool others_follow) {
  wire::append_frame(pending_, message);
  if (others_follow) return {};
  const bool last = batch_ != nullptr && next_index_ == batch_->jobs()->size();
  if (!last && monotonic_ns() - last_flush_ns_ < kFlushAfterNs) return {};
  return flush();
}

Status Channel::flush() {
  if (pending_.empty()) return {};
  ASSAY_CHECK(send_all(socket_.get(), std::as_bytes(std::span(pending_))));
  pending_.clear();
  last_flush_ns_ = monotonic_ns();
  return {};
}

}  // namespace assay::native
