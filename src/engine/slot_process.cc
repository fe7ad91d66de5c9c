#include "engine/slot_process.h"

#include <algorithm>

#include "device/device.h"
#include "wire/messages_generated.h"

namespace assay {
namespace {
constexpr int kSlotFd = 3;
}

Result<SlotProcess> SlotProcess::start(const SlotConfig& config, const std::filesystem::path& log) {
  ASSAY_TRY(const std::string program, own_executable());
  ASSAY_TRY(FdPair ends, make_socket_pair());
  ASSAY_TRY(const Fd log_file, open_for_append(log));
  SpawnOptions options;
  options.argv = {program, "slot", std::to_string(config.index), config.log_dir};
  options.environment = {kGpuOrder};
  options.fds = {{log_file.get(), 1}, {log_file.get(), 2}, {ends.second.get(), kSlotFd}};
  SlotProcess slot;
  slot.index_ = config.index;
  ASSAY_TRY(slot.process_, Process::spawn(options));
  slot.socket_ = std::move(ends.first);
  // A slot that has died already shows as end-of-file where it is read.
  (void)wire::send_frame(slot.socket_.get(), begin_message(config));
  return slot;
}

Status SlotProcess::send(std::span<const QueuedCase> leased) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::Job>> jobs;
  for (const QueuedCase& queued : leased) {
    const auto text = builder.CreateString(queued.text.data(), queued.text.size());
    jobs.push_back(wire::CreateJob(builder, queued.id, text, queued.attempt, queued.fresh,
                                   queued.cost.limit_ms, queued.cost.bytes));
    held_.push_back(queued);
  }
  const auto lease = wire::CreateLease(builder, builder.CreateVector(jobs));
  builder.Finish(
      wire::CreateToSlot(builder, wire::kVersion, wire::ToSlotBody::Lease, lease.Union()));
  return wire::send_frame(socket_.get(), wire::bytes_of(builder));
}

Status SlotProcess::send_stop() {
  flatbuffers::FlatBufferBuilder builder;
  const auto stop = wire::CreateStop(builder);
  builder.Finish(wire::CreateToSlot(builder, wire::kVersion, wire::ToSlotBody::Stop, stop.Union()));
  return wire::send_frame(socket_.get(), wire::bytes_of(builder));
}

std::optional<QueuedCase> SlotProcess::settle(std::uint64_t id) {
  const auto found = std::find_if(held_.begin(), held_.end(),
                                  [id](const QueuedCase& queued) { return queued.id == id; });
  if (found == held_.end()) return std::nullopt;
  QueuedCase settled = *found;
  held_.erase(found);
  return settled;
}

}  // namespace assay
