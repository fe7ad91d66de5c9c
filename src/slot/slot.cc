#include "slot/slot.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <thread>

#include "base/clock.h"
#include "base/system_memory.h"
#include "slot/mutants.h"
#include "slot/record.h"
#include "slot/timing.h"
#include "wire/settings.h"

namespace assay {
namespace {

// Small cases share a batch, so that the switches between slot and lanes are paid once; large ones
// run alone, so that no more memory is in use than their own and their results can be lent.
constexpr std::size_t kBatchJobs = 32;
constexpr std::uint64_t kBatchBytes = std::uint64_t{16} << 20;
// Lanes on GPUs answer as their GPU comes along, so that a batch is compared beside it; a kernel's
// first call takes a lane as long as some ten cases, so that short batches leave the other waiting.
constexpr std::size_t kGpuBatchJobs = 256;
constexpr std::uint64_t kGpuBatchBytes = std::uint64_t{128} << 20;
// Records go to the supervisor at the latest this long after the first that waits.
constexpr std::int64_t kSendAfterNs = 50'000'000;
constexpr std::chrono::seconds kPulse{1};
// After so many runs a reference lane that second attempts use is replaced.
constexpr std::uint64_t kRunsOfSecondAttempts = 64;
// More than this stays with an arena only until its batch is over.
constexpr std::uint64_t kArenaKeep = std::uint64_t{1} << 30;
constexpr std::uint64_t kFreshArenaKeep = std::uint64_t{1} << 25;

// So much of the shared inputs' memory is kept for the next ones: less where the machine has not
// half of its memory left, as lanes do it (src/native/memory.cc).
constexpr std::uint64_t kInputsKeep = std::uint64_t{5} << 30;
constexpr std::uint64_t kInputsKeepIfShort = std::uint64_t{512} << 20;
// A lane that is killed has ended by then.
constexpr std::chrono::seconds kEndLimit{10};
// Memory comes back as long as there is so much more of it each time one looks.
constexpr std::uint64_t kComesBackBytes = std::uint64_t{64} << 20;
constexpr std::chrono::milliseconds kComesBackLook{50};
constexpr std::int64_t kComesBackLimitNs = 5'000'000'000;
// Without work for so long, a slot gives the rest back as well.
constexpr int kIdleMs = 200;

constexpr std::string_view kUsual = wire::kUsualValues;
// Perturbed inputs that the truth is asked for: at first, and before a fault is believed.
constexpr std::uint32_t kFirstPerturbations = 2;
constexpr std::uint32_t kMostPerturbations = 12;

// The regimes that a setting names, usual values first.
std::vector<std::string> values_of(std::string_view setting) {
  std::vector<std::string> found{std::string(kUsual)};
  if (setting.empty()) setting = wire::kAllValues;
  while (!setting.empty()) {
    const std::size_t end = std::min(setting.find(','), setting.size());
    if (end > 0 && setting.substr(0, end) != kUsual) found.emplace_back(setting.substr(0, end));
    setting.remove_prefix(std::min(end + 1, setting.size()));
  }
  return found;
}

std::filesystem::path lane_log(const SlotConfig& config, const wire::LaneSpecT& spec) {
  return std::filesystem::path(config.log_dir) /
         fmt::format("slot{}-{}-{}.log", config.index, spec.label, wire::EnumNameRole(spec.role));
}

bool is_retry(const wire::JobT& job) { return job.attempt.isolation != wire::Isolation::shared; }

bool wants_all(const wire::JobT& job) { return job.attempt.memory != wire::MemoryNeed::estimated; }

// Whether a retry runs in the process of the one before it.
bool shares_process(const wire::JobT& before, const wire::JobT& next) {
  return next.attempt.isolation == wire::Isolation::shared_retry &&
         next.attempt.lease == before.attempt.lease;
}

// Perturbed inputs to ask for next. A retry has failed before, mostly for good: then only the most
// will do.
std::uint32_t perturbations(CaseRecord::Next next, bool retry) {
  switch (next) {
    case CaseRecord::Next::truth:
      return retry ? kMostPerturbations : kFirstPerturbations;
    case CaseRecord::Next::more_perturbations:
      return kMostPerturbations;
    case CaseRecord::Next::nothing:
      break;
  }
  return 0;
}

CaseRecord& record_of(const wire::JobT& entry, std::vector<CaseRecord>& records) {
  return *std::find_if(records.begin(), records.end(),
                       [&](const CaseRecord& record) { return record.id() == entry.test_case.id; });
}

// Whether the lane of a second attempt is there for any other too: what is under suspicion is the
// lane under test, which only those of one company share (Job.follows). A new one takes 0.4 s on a
// GPU, where contexts are made one after another for whatever process, and on a CPU half of a
// second attempt's time.
bool stays_for_next(const SlotConfig& config, const LaneSeat& seat) {
  return seat.lane && seat.spec.role == wire::Role::reference && !is_timed(config.settings) &&
         seat.lane->cases_run() < kRunsOfSecondAttempts;
}

bool on_cpu(const wire::LaneSpecT& spec) { return !gpu_number(spec.device); }

// Whether a case is estimated to need more of the host's memory than there is.
bool may_take_all(const SlotConfig& config, const wire::JobT& job) {
  if (job.test_case.bytes < kArenaKeep ||
      std::none_of(config.lanes.begin(), config.lanes.end(), on_cpu)) {
    return false;
  }
  const auto memory = system_memory();
  return memory && job.test_case.bytes > memory->total;
}

// What other slots give back comes as their lanes end.
void wait_for_memory() {
  std::uint64_t before = 0;
  const std::int64_t until = monotonic_ns() + kComesBackLimitNs;
  while (monotonic_ns() < until) {
    const auto memory = system_memory();
    if (!memory || memory->available <= before + kComesBackBytes) return;
    before = memory->available;
    std::this_thread::sleep_for(kComesBackLook);
  }
}

// Inputs that are made once; nothing where that helps nobody, or cannot be had.
std::shared_ptr<SharedInputs> shared_inputs(const SlotConfig& config) {
  if (is_timed(config.settings) ||
      std::count_if(config.lanes.begin(), config.lanes.end(), on_cpu) < 2) {
    return nullptr;
  }
  auto inputs = SharedInputs::create();
  return inputs ? std::make_shared<SharedInputs>(std::move(*inputs)) : nullptr;
}

LaneSource lane_source(const SlotConfig& config, const wire::LaneSpecT& spec,
                       const std::shared_ptr<SharedInputs>& inputs, bool second_attempts) {
  const bool others = second_attempts && !spec.address_of_second.empty();
  const std::vector<std::uint8_t>& address = others ? spec.address_of_second : spec.address;
  return {std::string(address.begin(), address.end()), spec.device, lane_log(config, spec),
          on_cpu(spec) ? inputs : nullptr};
}

}  // namespace

Slot::Slot(SlotConfig config, Fd supervisor, const std::shared_ptr<LazyDevice>& ahead)
    : config_(std::move(config)),
      supervisor_(std::move(supervisor)),
      values_(values_of(config_.settings.values)),
      inputs_(shared_inputs(config_)) {
  // Results on GPUs are compared on the first of them.
  for (const wire::LaneSpecT& spec : config_.lanes) {
    if (!device_ && gpu_number(spec.device)) {
      device_ =
          ahead && ahead->name() == spec.device ? ahead : std::make_shared<LazyDevice>(spec.device);
    }
    for (std::vector<LaneSeat>* seats : {&seats_, &fresh_seats_}) {
      auto shared = gpu_number(spec.device) ? std::make_unique<SharedCache>(device_) : nullptr;
      const bool fresh = seats == &fresh_seats_;
      seats->push_back({spec, lane_source(config_, spec, inputs_, fresh), std::nullopt, nullptr,
                        std::move(shared), fresh});
    }
  }
}

Result<Slot> Slot::begin(Fd supervisor, const std::string& device) {
  std::shared_ptr<LazyDevice> ahead;
  if (!device.empty()) {
    ahead = std::make_shared<LazyDevice>(device);
    ahead->open_ahead();
  }
  ASSAY_TRY(const auto message, wire::receive_frame(supervisor.get()));
  if (!message) return fail("slot: the supervisor has gone");
  ASSAY_TRY(SlotConfig config, read_begin(*message));
  return Slot(std::move(config), std::move(supervisor), ahead);
}

Status Slot::run() {
  Status served = serve();
  if (!served && (gave_up_ || (device_ && device_->failed()))) {
    flatbuffers::FlatBufferBuilder builder;
    const auto why = builder.CreateString(served.error().message);
    const auto body = wire::CreateGiveUp(builder, why);
    builder.Finish(wire::CreateFromSlot(builder, wire::kMessageVersion, wire::FromSlotBody::GiveUp,
                                        body.Union()));
    (void)send(builder);
  }
  return served;
}

Status Slot::serve() {
  pulse_ = std::jthread([this](const std::stop_token& stop) { show_life(stop); });
  while (true) {
    ASSAY_TRY(const bool open, take_messages());
    if (!open || (stopping_ && queue_.empty())) return send_results();
    const std::vector<wire::JobT> batch = next_batch();
    if (batch.empty()) continue;
    ASSAY_CHECK(run_batch(batch));
    if (queue_.empty() || monotonic_ns() - last_sent_ns_ > kSendAfterNs) {
      ASSAY_CHECK(send_results());
    }
  }
}

// Reads what the supervisor has sent; waits for it while there is nothing to do.
Result<bool> Slot::take_messages() {
  if (queue_.empty() && !stopping_) {
    ASSAY_CHECK(send_results());
    if (inputs_ && inputs_->held() > kInputsKeepIfShort) {
      ASSAY_TRY(const bool comes, wait_for_supervisor(kIdleMs));
      if (!comes) trim_inputs(0);
    }
    ASSAY_TRY([[maybe_unused]] const bool comes, wait_for_supervisor(-1));
  }
  ASSAY_TRY(const bool open, reader_.feed(supervisor_.get()));
  while (true) {
    ASSAY_TRY(const auto frame, reader_.next());
    if (!frame) return open;
    ASSAY_CHECK(take_message(*frame));
  }
}

// Whether something has come from the supervisor within the limit.
Result<bool> Slot::wait_for_supervisor(int limit_ms) const {
  pollfd wait{supervisor_.get(), POLLIN, 0};
  int got = -1;
  while ((got = ::poll(&wait, 1, limit_ms)) < 0) {
    if (errno != EINTR) return errno_error("poll");
  }
  return got > 0;
}

void Slot::trim_inputs(std::uint64_t wanted) {
  if (inputs_->held() <= std::max(wanted, kInputsKeepIfShort)) return;
  const auto memory = system_memory();
  const bool short_of_it = memory && memory->available < memory->total / 2;
  inputs_->trim(std::max(wanted, short_of_it ? kInputsKeepIfShort : kInputsKeep));
}

Status Slot::take_message(const wire::Bytes& bytes) {
  ASSAY_TRY(const wire::ToSlot* message, wire::open<wire::ToSlot>(bytes));
  if (message->body_type() == wire::ToSlotBody::Stop) {
    stopping_ = true;
    queue_.clear();  // the supervisor knows what it gave; it runs again in a later session
  }
  if (message->body_type() == wire::ToSlotBody::GiveBack) ASSAY_CHECK(give_back());
  const wire::Lease* lease = message->body_as_Lease();
  if (lease == nullptr || lease->jobs() == nullptr) return {};
  for (const wire::Job* job : *lease->jobs()) queue_.push_back(wire::unpack(*job));
  return {};
}

std::vector<wire::JobT> Slot::next_batch() {
  std::vector<wire::JobT> batch;
  std::uint64_t bytes = 0;
  const std::size_t most = device_ ? kGpuBatchJobs : kBatchJobs;
  const std::uint64_t most_bytes = device_ ? kGpuBatchBytes : kBatchBytes;
  while (!queue_.empty() && batch.size() < most) {
    const wire::JobT& next = queue_.front();
    const std::uint64_t needed = next.test_case.bytes;
    const bool alone =
        is_retry(next) || wants_all(next) || needed > kBatchBytes || bytes + needed > most_bytes;
    if (alone && !batch.empty()) break;
    bytes += needed;
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
    if (is_retry(batch.back()) || !config_.settings.mutants.empty() || is_timed(config_.settings))
      break;
  }
  return batch;
}

std::vector<wire::JobT> Slot::with_values(const std::vector<wire::JobT>& batch) {
  std::vector<wire::JobT> entries;
  for (const wire::JobT& job : batch) {
    wire::Start start = learns() ? abilities_.start(job) : wire::Start::together;
    // Two lanes need more than one.
    if (wants_all(job)) start = std::max(start, wire::Start::test_lane_first);
    for (const std::string& mutant : mutants_of(config_.settings, job.test_case.id)) {
      for (const std::string& values : values_) {
        // Large cases run under usual values only (MOST_ELEMENTS of python/assay/regimes.py).
        if (values != kUsual && job.test_case.bytes > kBatchBytes) continue;
        wire::JobT& entry = entries.emplace_back(job);
        entry.trial.values = values;
        entry.trial.mutant = mutant;
        // A kernel that is missing is so under any values.
        const bool first = values == kUsual && mutant.empty();
        entry.attempt.start = first ? start : std::min(start, wire::Start::test_lane_first);
      }
    }
  }
  return entries;
}

// The next case waits for new lanes, some milliseconds on a CPU, 0.4 s each on a GPU.
Status Slot::give_back() {
  for (std::vector<LaneSeat>* seats : {&seats_, &fresh_seats_}) {
    for (LaneSeat& seat : *seats) {
      if (seat.shared) seat.shared->close_all();
      if (seat.lane) {
        seat.lane->kill();
        ASSAY_CHECK(seat.source.wait_exit(*seat.lane, kEndLimit));
        seat.lane.reset();
      }
      if (seat.arena) seat.arena->trim(kFreshArenaKeep);
    }
  }
  if (inputs_) inputs_->trim(0);
  return {};
}

Status Slot::run_batch(const std::vector<wire::JobT>& batch) {
  if (wants_all(batch.front())) {
    ASSAY_CHECK(give_back());
    wait_for_memory();
  } else if (may_take_all(config_, batch.front())) {
    // What a lane's heap has had would not count for what it may take (MemoryWatch::bound).
    ASSAY_CHECK(give_back());
  }
  const bool suspect = is_retry(batch.front());
  std::vector<LaneSeat>& seats = suspect ? fresh_seats_ : seats_;
  bool fresh = std::none_of(seats.begin(), seats.end(), [&](const LaneSeat& seat) {
    return seat.lane && seat.lane->cases_run() > 0 && !(suspect && stays_for_next(config_, seat));
  });
  if (inputs_) {
    inputs_->renew();
    trim_inputs(batch.front().test_case.bytes);
  }
  std::vector<CaseRecord> records;
  records.reserve(batch.size());
  for (const wire::JobT& job : batch) {
    records.emplace_back(config_, job, std::exchange(fresh, false));
  }
  ASSAY_CHECK(is_timed(config_.settings) ? time_entries(seats, with_values(batch), records)
                                         : run_entries(seats, with_values(batch), records));
  const bool followed = suspect && !queue_.empty() && shares_process(batch.front(), queue_.front());
  for (LaneSeat& seat : seats) {
    const bool ends =
        suspect ? !followed && !stays_for_next(config_, seat) : seat.lane && seat.lane->apart();
    if (ends) {
      if (seat.shared) seat.shared->close_all();
      seat.lane.reset();
    }
    if (seat.arena) seat.arena->trim(suspect ? kFreshArenaKeep : kArenaKeep);
  }
  return send(records);
}

// Runs entries, then those again that call for a closer look, until none does.
Status Slot::run_entries(std::vector<LaneSeat>& seats, std::vector<wire::JobT> entries,
                         std::vector<CaseRecord>& records) {
  while (!entries.empty()) {
    std::vector<wire::JobT> again;
    const std::uint64_t before = given_;
    given_ += entries.size();
    BatchRun run(config_, seats, entries,
                 [&](std::size_t i, std::vector<Ending>& endings) -> Status {
                   const wire::JobT& entry = entries[i];
                   if (learns() && entry.trial.values == kUsual)
                     abilities_.learn(entry, endings.front());
                   CaseRecord& record = record_of(entry, records);
                   record.ran_at(before + i);
                   ASSAY_TRY(const CaseRecord::Next next, record.add(entry, endings));
                   const std::uint32_t wanted = perturbations(next, is_retry(entry));
                   if (wanted > entry.trial.perturbations) {
                     again.push_back(entry);
                     again.back().trial.perturbations = wanted;
                     again.back().attempt.start = wire::Start::together;
                   }
                   return {};
                 });
    Status ran = run.run();
    gave_up_ = run.gave_up();
    if (!ran) return ran;
    entries = std::move(again);
  }
  return {};
}

// One after another: beside other work no time means anything.
Status Slot::time_entries(std::vector<LaneSeat>& seats, const std::vector<wire::JobT>& entries,
                          std::vector<CaseRecord>& records) {
  for (const wire::JobT& entry : entries) {
    TimedCase timed(config_, seats, entry);
    Status ran = timed.run();
    gave_up_ = timed.gave_up();
    if (!ran) return ran;
    record_of(entry, records).add_timed(entry, timed.lanes());
  }
  return {};
}

Status Slot::send(std::vector<CaseRecord>& records) {
  for (CaseRecord& record : records) results_.push_back(record.finish());
  if (monotonic_ns() - last_sent_ns_ < kSendAfterNs) return {};
  return send_results();
}

Status Slot::send_results() {
  last_sent_ns_ = monotonic_ns();
  if (results_.empty()) return {};
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::RecordBytes>> records;
  for (const wire::Bytes& bytes : results_) {
    builder.ForceVectorAlignment(bytes.size(), 1, 16);
    records.push_back(wire::CreateRecordBytes(builder, builder.CreateVector(bytes)));
  }
  const auto results = wire::CreateResults(builder, builder.CreateVector(records));
  builder.Finish(wire::CreateFromSlot(builder, wire::kMessageVersion, wire::FromSlotBody::Results,
                                      results.Union()));
  results_.clear();
  return send(builder);
}

Status Slot::send(const flatbuffers::FlatBufferBuilder& message) {
  const std::scoped_lock lock(*sending_);
  return wire::send_frame(supervisor_.get(), wire::bytes_of(message));
}

void Slot::show_life(const std::stop_token& stop) {
  flatbuffers::FlatBufferBuilder builder;
  const auto alive = wire::CreateAlive(builder);
  builder.Finish(wire::CreateFromSlot(builder, wire::kMessageVersion, wire::FromSlotBody::Alive,
                                      alive.Union()));
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  // A supervisor that is gone shows where the main thread reads.
  while (!wake.wait_for(lock, stop, kPulse, [] { return false; }) && !stop.stop_requested()) {
    (void)send(builder);
  }
}

}  // namespace assay
