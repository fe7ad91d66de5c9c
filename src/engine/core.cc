#include "engine/core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "schedule/cost.h"

namespace assay {
namespace {

// The core claims more cases if fewer cases than this wait for each slot, and less expected work
// than kLowWorkUs.
constexpr std::size_t kLowWater = 32;
// A slot that holds this much work gets no more, because slots of other supervisors could not take
// it.
constexpr std::uint64_t kLowWorkUs = 1'000'000;
constexpr std::int64_t kGraceMs = 10'000;  // for running cases, when the run stops
constexpr int kSlotDeaths = 10;            // in a row, without an answer
constexpr int kServerDeaths = 10;
// How many slots may die in a row while they hold one case alone: for any reason, or by a SIGKILL
// from outside.
constexpr std::uint32_t kCaseLosses = 3;
constexpr std::uint32_t kCaseKills = 20;
// The longest counted time between two ticks. A longer time means that the machine was suspended.
constexpr std::int64_t kLongestTickMs = 1'000;
// Retries wait at most this long to share a process.
constexpr std::int64_t kGatherMs = 1'000;
// Expected work in a bundle of a shared store.
constexpr std::int64_t kBundleMs = 2'000;

// Whether a slot died while it held the case. The next slot then holds no other case, so that only
// this case can be blamed.
bool suspected(const wire::JobT& queued) { return queued.attempt.slots_lost > 0; }

}  // namespace

Core::Core(CoreConfig config, Queue queue)
    : config_(std::move(config)),
      queue_(std::move(queue)),
      retries_(!config_.exit_on_error && queue_.shares_retries()),
      slots_(config_.slots),
      servers_(config_.servers.size()) {}

std::optional<Action> Core::next_action() {
  if (actions_.empty()) return std::nullopt;
  Action next = std::move(actions_.front());
  actions_.pop_front();
  return next;
}

template <typename Kind>
void Core::act(Kind action) {
  actions_.emplace_back(std::move(action));
}

// Called after every event: starts what can start, and ends the run if nothing is left.
void Core::go_on() {
  if (finished_) return;
  if (stop_ == StopReason::none) {
    claim_more();
    give_work();
    if (!work_left()) complete();
  }
  if (stop_ != StopReason::none && all_slots_gone()) finish();
}

// With several claimers, a lease and its case may have been lost since the last claim. So the run
// is complete only after a claim that follows the last verdict.
void Core::complete() {
  if (!config_.lease_ms || !recorded_since_claim_) return stop(StopReason::complete);
  act(CommitStore{});
  ask_for_cases();
}

void Core::ask_for_cases() {
  claiming_ = true;
  recorded_since_claim_ = false;
  committed_ms_ = clock_ms_;  // a claim commits first
  const auto times = config_.lease_ms ? std::max<std::int64_t>(pace_ms_ / kBundleMs, 1) : 1;
  act(ClaimCases{config_.claim * static_cast<std::size_t>(times)});
}

bool Core::work_left() const {
  if (claiming_ || supply_ != Supply::none || !queue_.empty()) return true;
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& at) { return !at.held.empty(); });
}

bool Core::all_slots_gone() const {
  return std::none_of(slots_.begin(), slots_.end(), [](const Slot& at) { return at.up; });
}

// ---- cases come in ----

void Core::begin() { go_on(); }

void Core::claim_more() {
  if (claiming_ || supply_ == Supply::none) return;
  if (supply_ == Supply::held_elsewhere && clock_ms_ < claim_again_ms_) return;
  if (queue_.size() >= slots_.size() * kLowWater) return;
  if (queue_.work_us() >= slots_.size() * kLowWorkUs) return;
  ask_for_cases();
}

void Core::add(wire::JobT claimed) {
  added_ = true;
  if (claimed.test_case.bytes > config_.most_bytes) {
    const std::uint64_t needed = input_bytes(claimed.test_case.text);
    if (needed > config_.most_bytes) return record_too_large(claimed, needed);
  }
  if (!config_.lease_ms || !renew(claimed)) queue_.add(std::move(claimed));
}

void Core::record_too_large(const wire::JobT& claimed, std::uint64_t needed) {
  constexpr double kGiB = 1 << 30;
  Verdict verdict;
  verdict.outcome = Outcome::oom;
  verdict.message = fmt::format("the inputs need {:.1f} GiB, and the GPU has {:.1f} GiB",
                                static_cast<double>(needed) / kGiB,
                                static_cast<double>(config_.most_bytes) / kGiB);
  record({claimed, std::move(verdict)});
}

void Core::claimed(Supply supply) {
  claiming_ = false;
  const bool none = !std::exchange(added_, false);
  // Ask a store again later if it announced more cases but gave none.
  supply_ = none && supply == Supply::more ? Supply::held_elsewhere : supply;
  claim_again_ms_ = clock_ms_ + config_.claim_again_ms;
  if (!none) queue_.sort(slots_.size());
  go_on();
}

// Updates the epoch of a claimed case that is still here. This happens if another claimer took the
// case after its lease had expired, died, and this claimer claims it again before it noticed.
bool Core::renew(const wire::JobT& claimed) {
  for (Slot& at : slots_) {
    for (wire::JobT& held : at.held) {
      if (held.test_case.id != claimed.test_case.id) continue;
      held.attempt.epoch = claimed.attempt.epoch;
      return true;
    }
  }
  return queue_.renew(claimed.test_case.id, claimed.attempt.epoch);
}

// ---- cases go out ----

// Gives each slot one lease in turn, idle slots first, so that the first slot does not get all of
// a few cases.
void Core::give_work() {
  bool given = true;
  while (given) {
    given = false;
    for (const bool idle : {true, false}) {
      for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
        if (slots_[slot].held.empty() == idle) given = give_lease(slot) || given;
      }
    }
  }
}

bool Core::give_lease(std::size_t slot) {
  Slot& at = slots_[slot];
  if (queue_.empty() || at.killed || at.held.size() >= queue_.enough(slots_.size())) {
    return false;
  }
  if (work_us(at) >= kLowWorkUs) return false;
  if (!at.up && !may_begin()) return false;
  const auto number = static_cast<std::uint32_t>(slot);
  const bool with_suspect =
      !at.held.empty() && (suspected(at.held.back()) || queue_.next_is_suspect(number));
  if (with_suspect) return false;
  std::vector<wire::JobT> leased = queue_.lease(number, !at.held.empty());
  if (leased.empty()) return false;  // memory does not allow it now
  if (!at.up) {
    at.up = true;
    at.spoke_ms = clock_ms_;
    at.began_ms = clock_ms_;
    act(StartSlot{slot});
  }
  if (leased.front().attempt.memory != wire::MemoryNeed::estimated) have_memory_given_back(slot);
  if (at.held.empty()) at.answered_ms = clock_ms_;
  at.held.insert(at.held.end(), leased.begin(), leased.end());
  act(SendLease{slot, std::move(leased)});
  return true;
}

bool Core::may_begin() const {
  const auto begins = std::count_if(slots_.begin(), slots_.end(), [&](const Slot& at) {
    return at.up && at.began_ms && clock_ms_ - *at.began_ms < config_.begin_ms;
  });
  return static_cast<std::size_t>(begins) < config_.begin_at_once;
}

// Asks idle slots only. Slots that hold cases use other GPUs.
void Core::have_memory_given_back(std::size_t but_for) {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    const Slot& at = slots_[slot];
    const bool idle = at.up && !at.killed && at.held.empty();
    if (slot != but_for && idle) act(SendGiveBack{slot});
  }
}

std::uint64_t Core::work_us(const Slot& at) {
  std::uint64_t sum = 0;
  for (const wire::JobT& queued : at.held) sum += queued.test_case.work_us;
  return sum;
}

// ---- answers ----

const wire::JobT* Core::held(std::size_t slot, std::uint64_t id, std::uint32_t attempt) const {
  for (const wire::JobT& queued : slots_[slot].held) {
    if (queued.test_case.id == id && queued.attempt.number == attempt) return &queued;
  }
  return nullptr;
}

std::vector<RunningCase> Core::running() const {
  std::vector<RunningCase> cases;
  for (const Slot& at : slots_) {
    if (at.held.empty()) continue;
    const auto ms = static_cast<double>(clock_ms_ - at.answered_ms);
    cases.push_back({at.held.front().test_case.text, ms / 1'000});
  }
  return cases;
}

void Core::slot_spoke(std::size_t slot) { slots_[slot].spoke_ms = clock_ms_; }

void Core::slot_answered(std::size_t slot, std::vector<Judged> answers) {
  if (finished_) return;
  slot_spoke(slot);
  for (Judged& judged : answers) take(slot, std::move(judged));
  go_on();
}

// Ignores an answer for a case that the slot does not hold, such as a second or late answer.
void Core::take(std::size_t slot, Judged judged) {
  Slot& at = slots_[slot];
  wire::JobT& job = judged.job;
  const auto found = std::find_if(at.held.begin(), at.held.end(), [&](const wire::JobT& queued) {
    return queued.test_case.id == job.test_case.id && queued.attempt.number == job.attempt.number;
  });
  if (found == at.held.end()) return;
  job = std::move(*found);
  at.held.erase(found);
  at.answered_ms = clock_ms_;
  at.began_ms.reset();
  at.deaths = 0;
  for (Server& server : servers_) server.deaths = 0;
  // If a case ran out of memory and the lane does not say how much it needed, later cases of its
  // kind are expected to need twice as much.
  const bool oom = judged.verdict.outcome == Outcome::oom;
  const bool unknown = oom && judged.device_bytes == 0;
  queue_.learn(job, unknown ? 2 * job.attempt.gpu_bytes : judged.device_bytes);
  const bool huge_and_alone = queue_.release(static_cast<std::uint32_t>(slot), job);
  wire::AttemptT& attempt = job.attempt;
  const bool too_large = oom && judged.device_bytes > config_.most_bytes;
  const bool had_all_memory =
      huge_and_alone || too_large || attempt.memory == wire::MemoryNeed::whole_device;

  const auto isolation = retries_.retry(judged, had_all_memory);
  if (!isolation) return record(std::move(judged));
  if (attempt.number == 1 && info(judged.verdict.outcome).failed && !oom &&
      !judged.killed_from_outside) {
    act(NoteFailure{job.test_case.id,
                    fmt::format("{} ({})", name(judged.verdict.outcome), judged.verdict.message)});
  }
  ++attempt.number;
  attempt.isolation = *isolation;
  attempt.first_ran = wire::Ran(static_cast<std::uint32_t>(slot), judged.ran_from, judged.ran_to);
  if (oom) attempt.memory = wire::MemoryNeed::whole_device;
  attempt.limit_ms = Retries::limit_ms(judged);
  if (judged.verdict.outcome == Outcome::timeout) {
    std::uint64_t& work_us = job.test_case.work_us;
    work_us = std::max(work_us, 1000 * attempt.limit_ms);
  }
  queue_.put_back(job);
}

void Core::record(Judged ended) {
  const bool failed = info(ended.verdict.outcome).failed;
  recorded_since_claim_ = true;
  act(std::move(ended));
  if (!failed) return;
  ++failures_;
  if (config_.exit_on_error || failures_ == config_.most_failures) {
    stop(StopReason::stopped_on_error);
  }
}

// ---- slots that end ----

void Core::slot_sent_invalid(std::size_t slot, const std::string& what) {
  if (!slots_[slot].up || slots_[slot].killed) return;
  kill(slot, what);
}

void Core::slot_gives_up(std::size_t slot, const std::string& why) {
  if (!slots_[slot].up) return;
  fail(Error{fmt::format("slot {}: {}", slot, why)});
}

void Core::kill(std::size_t slot, std::string why) {
  act(Tell{fmt::format("slot {}: {}", slot, std::move(why))});
  slots_[slot].killed = true;
  act(KillSlot{slot});
}

// The cases that a dead slot held run again, each alone.
void Core::slot_gone(std::size_t slot, bool by_sigkill, const std::string& how) {
  Slot& at = slots_[slot];
  if (finished_ || !at.up) return;
  const bool from_outside = by_sigkill && !at.killed;
  const bool alone = at.held.size() == 1 && suspected(at.held.front());
  const std::deque<wire::JobT> lost = std::exchange(at.held, {});
  at.up = at.killed = false;
  for (const wire::JobT& queued : lost) {
    queue_.release(static_cast<std::uint32_t>(slot), queued);
    run_again(queued, alone, from_outside ? kCaseKills : kCaseLosses);
  }
  if (stop_ == StopReason::none && work_left()) {
    act(Tell{fmt::format("slot {} has ended ({}); starting another in its place", slot, how)});
    if (!from_outside && ++at.deaths >= kSlotDeaths) {
      return fail(Error{fmt::format("slot {} died {} times in a row ({}); see {}", slot, at.deaths,
                                    how, config_.logs)});
    }
  }
  go_on();
}

void Core::run_again(const wire::JobT& lost, bool alone, std::uint32_t most_losses) {
  wire::JobT again = lost;
  wire::AttemptT& attempt = again.attempt;
  attempt.slots_lost = alone ? attempt.slots_lost + 1 : std::max(attempt.slots_lost, 1U);
  if (attempt.isolation != wire::Isolation::shared) {
    attempt.isolation = wire::Isolation::own_process;
  }
  // A suspect that ran alone is next again, until its verdict is known. Different suspects in turn
  // would look like a slot that cannot run at all.
  if (attempt.slots_lost <= most_losses)
    return alone ? queue_.put_first(again) : queue_.put_back(again);
  retries_.forget(again.test_case.id);
  Verdict verdict;
  verdict.outcome = Outcome::crash;
  verdict.lane = "slot";
  verdict.message =
      fmt::format("{} slots in a row died while they held this case alone", attempt.slots_lost - 1);
  record({std::move(again), std::move(verdict)});
}

// ---- fork servers ----

void Core::server_ready(std::size_t server) {
  servers_[server].ready = true;
  server_spoke(server);
}

void Core::server_spoke(std::size_t server) { servers_[server].spoke_ms = clock_ms_; }

// Slots wait at the server's address until it is back. Its lanes died with it, and their cases run
// again.
void Core::server_gone(std::size_t server, const std::string& how) {
  if (finished_) return;
  Server& at = servers_[server];
  if (++at.deaths >= kServerDeaths) {
    return fail(Error{fmt::format("the fork server of {} died {} times in a row ({}); see {}",
                                  config_.servers[server], at.deaths, how, config_.logs)});
  }
  at.ready = at.killed = false;
  at.spoke_ms = clock_ms_;
  act(Tell{fmt::format("the fork server of {} has ended ({}); starting another in its place",
                       config_.servers[server], how)});
  act(RestartServer{server});
  go_on();
}

// ---- time ----

void Core::tick(std::int64_t now_ms) {
  if (finished_) return;
  const std::int64_t passed = now_ms - ticked_ms_.value_or(now_ms);
  ticked_ms_ = now_ms;
  clock_ms_ += std::clamp<std::int64_t>(passed, 0, kLongestTickMs);
  if (!config_.lease_ms || clock_ms_ - committed_ms_ >= pace_ms_) {
    committed_ms_ = clock_ms_;
    act(CommitStore{});
  }
  if (config_.lease_ms && clock_ms_ - renewed_ms_ >= *config_.lease_ms / 3) {
    renewed_ms_ = clock_ms_;
    act(RenewLeases{});
  }
  if (clock_ms_ - hurried_ms_ >= kGatherMs) {
    hurried_ms_ = clock_ms_;
    queue_.hurry();
  }
  end_silent_slots();
  end_silent_servers();
  if (stop_ != StopReason::none && clock_ms_ >= stop_by_ms_) return finish();
  go_on();
}

void Core::end_silent_slots() {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    const Slot& at = slots_[slot];
    if (!at.up || at.killed) continue;
    if (clock_ms_ - at.spoke_ms > config_.silence_ms) {
      kill(slot, fmt::format("no sign of life for {} s", config_.silence_ms / 1000));
    } else if (!at.held.empty() && clock_ms_ - at.answered_ms > longest_wait_ms(at)) {
      kill(slot, fmt::format("no answer for {} s", longest_wait_ms(at) / 1000));
    }
  }
}

// How long a slot may hold its cases without an answer.
std::int64_t Core::longest_wait_ms(const Slot& at) const {
  std::uint64_t limit = 0;
  for (const wire::JobT& queued : at.held) limit = std::max(limit, queued.attempt.limit_ms);
  constexpr std::uint64_t kYear = std::uint64_t{366} * 86'400'000;
  return static_cast<std::int64_t>(std::min(limit, kYear)) + config_.slack_ms;
}

void Core::end_silent_servers() {
  for (std::size_t server = 0; server < servers_.size(); ++server) {
    Server& at = servers_[server];
    const std::int64_t limit = at.ready ? config_.silence_ms : config_.import_ms;
    if (at.killed || clock_ms_ - at.spoke_ms <= limit) continue;
    at.killed = true;
    act(Tell{fmt::format("the fork server of {} gives no sign of life for {} s",
                         config_.servers[server], limit / 1000)});
    act(KillServer{server});
  }
}

// ---- the end ----

void Core::signal() {
  if (finished_) return;
  stop(stop_ >= StopReason::interrupted ? StopReason::stop_now : StopReason::interrupted);
  go_on();
}

void Core::fail(Error error) {
  if (!error_) error_ = std::move(error);
  stop(StopReason::trouble);
}

// Raises the stop reason. The first reason asks the slots to exit and gives them time; with
// `trouble` or `stop_now` the run does not wait.
void Core::stop(StopReason why) {
  if (finished_ || why <= stop_) return;
  const bool first = stop_ == StopReason::none;
  stop_ = why;
  if (why >= StopReason::trouble) return finish();
  if (why == StopReason::interrupted) {
    act(Tell{"stopping: running cases have 10 s; press Ctrl-C again to stop at once"});
  } else if (why == StopReason::stopped_on_error) {
    act(Tell{config_.exit_on_error
                 ? std::string("stopping at the first failure (--exit_on_error)")
                 : fmt::format("stopping after {} failures (--max-failures)", failures_)});
  }
  if (!first) return;
  stop_by_ms_ = clock_ms_ + kGraceMs;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].up) act(SendStop{slot});
  }
  if (why == StopReason::complete) act(TellComplete{});
}

void Core::finish() {
  if (std::exchange(finished_, true)) return;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].up) act(KillSlot{slot});
  }
  act(FinishRun{});
}

}  // namespace assay
