#include "slot/slot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/terminal.h"
#include "case/canonical.h"
#include "slot/batch.h"
#include "slot/batching.h"
#include "slot/config.h"
#include "slot/golden.h"
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
constexpr std::uint32_t kMostPerturbations = kRecordedPerturbations;

// A retry has failed before, mostly for good, so it asks for the most at once. Goldens have only
// those.
std::uint32_t perturbations(CaseRecord::Next next, bool at_once) {
  switch (next) {
    case CaseRecord::Next::truth:
      return at_once ? kMostPerturbations : kFirstPerturbations;
    case CaseRecord::Next::more_perturbations:
      return kMostPerturbations;
    case CaseRecord::Next::nothing:
      break;
  }
  return 0;
}

// The record, or the draft of a golden, that belongs to the trial.
auto& of_case(const wire::JobT& trial, auto& records) {
  return *std::find_if(records.begin(), records.end(),
                       [&](const auto& record) { return record.id() == trial.test_case.id; });
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
  Status open_goldens();
  Status serve();
  Result<bool> take_messages();
  Status take_message(const wire::Bytes& bytes);
  // Ends all lanes and gives back their memory and that of the shared inputs.
  Status give_back();
  Status make_room(const wire::JobT& job);
  Status run_batch(const std::vector<wire::JobT>& batch);
  Status run_trials(std::vector<LaneSeat>& seats, std::vector<wire::JobT> trials,
                    std::vector<CaseRecord>& records);
  Result<std::uint32_t> add_trial(const wire::JobT& trial, std::vector<LaneResult>& endings,
                                  CaseRecord& record);
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
  std::optional<GoldenLane> golden_lane_;  // in place of the last lane
  std::optional<ShardWriter> recording_;   // of the only lane
  std::vector<GoldenDraft> drafts_;        // of the present batch
};

Status Slot::run() {
  Status served = open_goldens();
  gave_up_ = !served;
  if (served) served = serve();
  if (!served && (gave_up_ || seats_.gpu_failed())) supervisor_.give_up(served.error().message);
  return served;
}

Status Slot::open_goldens() {
  const wire::LaneSpecT& last = config_.lanes.back();
  if (!last.records_to.empty()) recording_.emplace(last.records_to);
  if (last.goldens.empty()) return {};
  ASSAY_TRY(golden_lane_, GoldenLane::open(last, config_.settings));
  return {};
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

// In the slot's log, to look into a verdict that seems to come from another case of the lane.
void log_retries(const std::vector<wire::JobT>& batch, const std::vector<LaneSeat>& seats) {
  std::string line = "retries";
  for (const wire::JobT& job : batch) {
    line += fmt::format(" {}#{}", format_case_id(job.test_case.id), job.attempt.number);
  }
  for (const LaneSeat& seat : seats) {
    if (!seat.lane) continue;
    line += fmt::format(", {} lane {}{} after {} jobs", seat.spec.label, seat.lane->pid(),
                        seat.spec.retry_address.empty() ? "" : " of its second server",
                        seat.lane->cases_run());
  }
  show_line(stdout, line);
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
  drafts_.clear();
  for (const wire::JobT& job : batch) {
    if (recording_) drafts_.emplace_back(job.test_case.id);
  }
  std::vector<LaneSeat>& seats = seats_.of(retry);
  std::vector<wire::JobT> trials = batching_.trials_of(batch);
  ASSAY_CHECK(is_timed(config_.settings) ? time_trials(seats, trials, records)
                                         : run_trials(seats, std::move(trials), records));
  if (retry) log_retries(batch, seats);
  seats_.end_batch(retry, batching_.is_followed(batch));
  if (recording_) {
    std::vector<GoldenCase> goldens;
    goldens.reserve(drafts_.size());
    for (const GoldenDraft& draft : drafts_)
      goldens.push_back(draft.finish(config_.settings, config_.lanes.back().digest));
    // Before the supervisor hears of the cases: what it knows as done is in the folder.
    ASSAY_CHECK(recording_->append(goldens));
  }
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
                 [&](std::size_t i, std::vector<LaneResult>& endings) -> Status {
                   const wire::JobT& trial = trials[i];
                   batching_.learn(trial, endings.front());
                   CaseRecord& record = of_case(trial, records);
                   record.ran_at(before + i);
                   ASSAY_TRY(const std::uint32_t wanted, add_trial(trial, endings, record));
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

// Adds the trial to the record of its case, and returns with how many perturbations it should run
// again; 0: not.
Result<std::uint32_t> Slot::add_trial(const wire::JobT& trial, std::vector<LaneResult>& endings,
                                      CaseRecord& record) {
  if (golden_lane_) {
    ASSAY_TRY(LaneResult recorded, golden_lane_->ending_of(trial, endings.front()));
    endings.push_back(std::move(recorded));
  }
  bool wants_truth = false;
  if (recording_) {
    ASSAY_TRY(wants_truth, of_case(trial, drafts_).add(config_, trial, endings.front()));
  }
  ASSAY_TRY(const CaseRecord::Next next, record.add(trial, endings));
  if (golden_lane_) endings.pop_back();
  if (wants_truth) return kMostPerturbations;
  return perturbations(next, is_retry(trial) || golden_lane_.has_value());
}

// One after another, because other work would change the times.
Status Slot::time_trials(std::vector<LaneSeat>& seats, const std::vector<wire::JobT>& trials,
                         std::vector<CaseRecord>& records) {
  for (const wire::JobT& trial : trials) {
    TimedCase timed(config_, seats, trial);
    Status ran = timed.run();
    gave_up_ = timed.gave_up();
    if (!ran) return ran;
    of_case(trial, records).add_timed(trial, timed.lanes());
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
