#include "slot/supervisor_link.h"

#include <poll.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>

#include "base/clock.h"
#include "wire/messages_generated.h"

namespace assay {
namespace {

// Records wait at most this long for others.
constexpr std::int64_t kSendAfterNs = 50'000'000;
constexpr std::chrono::seconds kPulse{1};

}  // namespace

Result<std::optional<wire::Bytes>> SupervisorLink::receive_first() const {
  return wire::receive_frame(supervisor_.get());
}

void SupervisorLink::start_pulse() {
  pulse_ = std::jthread([this](const std::stop_token& stop) { send_pulse(stop); });
}

void SupervisorLink::send_pulse(const std::stop_token& stop) {
  flatbuffers::FlatBufferBuilder builder;
  const auto alive = wire::CreateAlive(builder);
  builder.Finish(wire::CreateFromSlot(builder, wire::kMessageVersion, wire::FromSlotBody::Alive,
                                      alive.Union()));
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  // The main thread notices where the supervisor is gone.
  while (!wake.wait_for(lock, stop, kPulse, [] { return false; }) && !stop.stop_requested()) {
    (void)send(builder);
  }
}

Result<bool> SupervisorLink::wait(int limit_ms) const {
  pollfd wait{supervisor_.get(), POLLIN, 0};
  int got = -1;
  while ((got = ::poll(&wait, 1, limit_ms)) < 0) {
    if (errno != EINTR) return errno_error("poll");
  }
  return got > 0;
}

bool SupervisorLink::records_are_due() const {
  return monotonic_ns() - last_sent_ns_ >= kSendAfterNs;
}

Status SupervisorLink::send_records() {
  last_sent_ns_ = monotonic_ns();
  if (records_.empty()) return {};
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::RecordBytes>> records;
  records.reserve(records_.size());
  for (const wire::Bytes& bytes : records_) {
    builder.ForceVectorAlignment(bytes.size(), 1, 16);
    records.push_back(wire::CreateRecordBytes(builder, builder.CreateVector(bytes)));
  }
  const auto results = wire::CreateResults(builder, builder.CreateVector(records));
  builder.Finish(wire::CreateFromSlot(builder, wire::kMessageVersion, wire::FromSlotBody::Results,
                                      results.Union()));
  records_.clear();
  return send(builder);
}

void SupervisorLink::give_up(const std::string& why) {
  flatbuffers::FlatBufferBuilder builder;
  const auto body = wire::CreateGiveUp(builder, builder.CreateString(why));
  builder.Finish(wire::CreateFromSlot(builder, wire::kMessageVersion, wire::FromSlotBody::GiveUp,
                                      body.Union()));
  (void)send(builder);
}

Status SupervisorLink::send(const flatbuffers::FlatBufferBuilder& message) {
  const std::scoped_lock lock(sending_);
  return wire::send_frame(supervisor_.get(), wire::bytes_of(message));
}

}  // namespace assay
