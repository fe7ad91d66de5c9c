#include "slot/slot.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "slot/batch.h"
#include "slot/batching.h"
#include "slot/config.h"
#include "slot/record.h"
#include "slot/seats.h"
#include "slot/slot_memory.h"
#include "slot/supervisor_link.h"
#include "slot/timing.h"

namespace assay {
namespace {

// An idle slot gives back shared inputs after this time.
constexpr int kIdleMs = 200;
// Evaluations with perturbed inputs that the reference lane is asked for: at first, and before a
// fault is believed.
constexpr std::uint32_t kFirstPerturbations = 2;
constexpr std::uint32_t kMostPerturbations = 12;

// A retry has failed before, mostly for good, so it asks for the most at once.
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

CaseRecord& record_of(const wire::JobT& trial, std::vector<CaseRecord>& records) {
  return *std::find_if(records.begin(), records.end(),
                       [&](const CaseRecord& record) { return record.id() == trial.test_case.id; });
}

class Slot {
 public:
  Slot(SlotConfig config, SupervisorLink& supervisor, const std::shared_ptr<LazyDevice>& opened)
      : config_(std::move(config)),
        supervisor_(supervisor),
        memory_(config_),
        seats_(config_, opened, memory_.inputs()),
        batching_(config_, seats_.on_gpu()) {}
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  Status run();

 private:
  Status serve();
  Result<bool> take_messages();
  Status take_message(const wire::Bytes& bytes);
  // Ends all lanes and gives back their memory and that of the shared inputs.
  Status give_back();
  Status make_room(const wire::JobT& job);
  Status run_batch(const std::vector<wire::JobT>& batch);
  Status run_trials(std::vector<LaneSeat>& seats, std::vector<wire::JobT> trials,
                    std::vector<CaseRecord>& records);
  Status time_trials(std::vector<LaneSeat>& seats, const std::vector<wire::JobT>& trials,
                     std::vector<CaseRecord>& records);

  const SlotConfig config_;
  SupervisorLink& supervisor_;
  SlotMemory memory_;
  Seats seats_;
  Batching batching_;
  bool gave_up_ = false;     // no lanes can be had
  std::uint64_t given_ = 0;  // trials, to lanes, in this slot's life
  bool stopping_ = false;
};

Status Slot::run() {
  Status served = serve();
  if (!served && (gave_up_ || seats_.gpu_failed())) supervisor_.give_up(served.error().message);
  return served;
}

Status Slot::serve() {
  while (true) {
    ASSAY_TRY(const bool open, take_messages());
    if (!open || (stopping_ && batching_.empty())) return supervisor_.send_records();
    const std::vector<wire::JobT> batch = batching_.next();
    if (batch.empty()) continue;
    ASSAY_CHECK(run_batch(batch));
    if (batching_.empty() || supervisor_.records_are_due()) {
      ASSAY_CHECK(supervisor_.send_records());
    }
  }
}

// Reads the supervisor's messages; waits for one while there is nothing to do.
Result<bool> Slot::take_messages() {
  if (batching_.empty() && !stopping_) {
    ASSAY_CHECK(supervisor_.send_records());
    if (memory_.keeps_much()) {
      ASSAY_TRY(const bool comes, supervisor_.wait(kIdleMs));
      if (!comes) memory_.trim_idle();
    }
    ASSAY_TRY([[maybe_unused]] const bool comes, supervisor_.wait(-1));
  }
  ASSAY_TRY(const bool open, supervisor_.read());
  while (true) {
    ASSAY_TRY(const auto message, supervisor_.next());
    if (!message) return open;
    ASSAY_CHECK(take_message(*message));
  }
}

Status Slot::take_message(const wire::Bytes& bytes) {
  ASSAY_TRY(const wire::ToSlot* message, wire::open<wire::ToSlot>(bytes));
  if (message->body_type() == wire::ToSlotBody::Stop) {
    stopping_ = true;
    batching_.clear();  // the supervisor knows these cases; they run in a later session
  }
  if (message->body_type() == wire::ToSlotBody::GiveBack) ASSAY_CHECK(give_back());
  const wire::Lease* lease = message->body_as_Lease();
  if (lease == nullptr || lease->jobs() == nullptr) return {};
  for (const wire::Job* job : *lease->jobs()) batching_.add(wire::unpack(*job));
  return {};
}

Status Slot::give_back() {
  ASSAY_CHECK(seats_.end_all());
  memory_.give_back();
  return {};
}

Status Slot::make_room(const wire::JobT& job) {
  if (needs_much_memory(job)) {
    ASSAY_CHECK(give_back());
    SlotMemory::wait_for_others();
  } else if (memory_.may_exceed_host(job)) {
    // The limit of a lane does not count memory that its heap had before (MemoryWatch::bound).
    ASSAY_CHECK(give_back());
  }
  return {};
}

Status Slot::run_batch(const std::vector<wire::JobT>& batch) {
  ASSAY_CHECK(make_room(batch.front()));
  const bool retry = is_retry(batch.front());
  bool fresh = seats_.are_fresh(retry);
  memory_.begin_batch(batch.front().test_case.bytes);
  std::vector<CaseRecord> records;
  records.reserve(batch.size());
  for (const wire::JobT& job : batch) {
    records.emplace_back(config_, job, std::exchange(fresh, false));
  }
  std::vector<LaneSeat>& seats = seats_.of(retry);
  std::vector<wire::JobT> trials = batching_.trials_of(batch);
  ASSAY_CHECK(is_timed(config_.settings) ? time_trials(seats, trials, records)
                                         : run_trials(seats, std::move(trials), records));
  seats_.end_batch(retry, batching_.is_followed(batch));
  for (CaseRecord& record : records) supervisor_.keep(record.finish());
  return {};
}

// Runs trials, then those again that need a closer look, until none does.
Status Slot::run_trials(std::vector<LaneSeat>& seats, std::vector<wire::JobT> trials,
                        std::vector<CaseRecord>& records) {
  while (!trials.empty()) {
    std::vector<wire::JobT> again;
    const std::uint64_t before = given_;
    given_ += trials.size();
    BatchRun run(config_, seats, trials,
                 [&](std::size_t i, std::vector<Ending>& endings) -> Status {
                   const wire::JobT& trial = trials[i];
                   batching_.learn(trial, endings.front());
                   CaseRecord& record = record_of(trial, records);
                   record.ran_at(before + i);
                   ASSAY_TRY(const CaseRecord::Next next, record.add(trial, endings));
                   const std::uint32_t wanted = perturbations(next, is_retry(trial));
                   if (wanted <= trial.trial.perturbations) return {};
                   wire::JobT& closer = again.emplace_back(trial);
                   closer.trial.perturbations = wanted;
                   closer.attempt.start = wire::Start::together;
                   return {};
                 });
    Status ran = run.run();
    gave_up_ = run.gave_up();
    if (!ran) return ran;
    trials = std::move(again);
  }
  return {};
}

// One after another, because other work would change the times.
Status Slot::time_trials(std::vector<LaneSeat>& seats, const std::vector<wire::JobT>& trials,
                         std::vector<CaseRecord>& records) {
  for (const wire::JobT& trial : trials) {
    TimedCase timed(config_, seats, trial);
    Status ran = timed.run();
    gave_up_ = timed.gave_up();
    if (!ran) return ran;
    record_of(trial, records).add_timed(trial, timed.lanes());
  }
  return {};
}

}  // namespace

Status run_slot(Fd supervisor, const std::string& device) {
  std::shared_ptr<LazyDevice> opened;
  if (!device.empty()) {
    opened = std::make_shared<LazyDevice>(device);
    opened->open_ahead();
  }
  SupervisorLink link(std::move(supervisor));
  ASSAY_TRY(const auto message, link.receive_first());
  if (!message) return fail("slot: the supervisor has gone");
  ASSAY_TRY(SlotConfig config, read_begin(*message));
  Slot slot(std::move(config), link, opened);
  link.start_pulse();
  return slot.run();
}

}  // namespace assay
