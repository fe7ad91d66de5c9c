#include "simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace assay::testing {
namespace {

constexpr std::uint64_t kMostSteps = 200'000;  // of one session; a normal one needs far fewer
constexpr int kMostSessions = 60;
constexpr std::int64_t kBeginMs = 1'500;
constexpr std::int64_t kLongestTickMs = 1'000;  // as the core counts

Nature nature_of(std::uint64_t draw) {
  if (draw < 60) return Nature::passes;
  if (draw < 74) return Nature::fails;
  if (draw < 86) return Nature::flaky;
  if (draw < 92) return Nature::kills_slot;
  if (draw < 95) return Nature::hangs_slot;
  return draw < 98 ? Nature::silences_slot : Nature::makes_nonsense;
}

}  // namespace

Simulation::Simulation(std::uint64_t seed, bool trace)
    : chance_(seed), rare_(~seed), trace_(trace) {
  const std::uint64_t cases = chance_.below(30);
  budget_.all = 1 + chance_.below(200);
  budget_.each_gpu = 1 + rare_.below(200);
  budget_.gpus = rare_.below(3);
  others_ = chance_.one_in(2);
  if (others_) store_.lease_ms = 3'000 + static_cast<std::int64_t>(chance_.below(20'000));
  for (std::uint64_t id = 1; id <= cases; ++id) {
    SimulatedStore::Row row;
    row.planned.test_case.id = id;
    row.planned.test_case.text = id % 2 == 0 ? "cos(1)" : "sin(1)";
    row.planned.test_case.elements = chance_.below(2'000'000);
    row.planned.test_case.bytes = 1 + chance_.below(60);
    row.planned.attempt.limit_ms = 1000 + chance_.below(5000);
    row.nature = nature_of(chance_.below(100));
    store_.rows.emplace(id, row);
  }
}

std::optional<std::string> Simulation::run() {
  for (int session = 0; session < kMostSessions; ++session) {
    const bool calm = session >= 3;
    // From now on there is no other claimer; its uncommitted verdicts are lost.
    if (calm) store_.lose_uncommitted(SimulatedStore::kOther);
    const std::size_t before = store_.finished();
    const bool complete = run_session(calm);
    if (wrong_) return fmt::format("session {}: {}", session, *wrong_);
    if (complete) {
      for (const auto& [id, row] : store_.rows) {
        if (row.finished != 1 && row.holder != SimulatedStore::kOther) {
          return fmt::format("complete, and case {} ended {} times", id, row.finished);
        }
      }
      if (calm) return std::nullopt;
    }
    if (calm && !complete && store_.finished() == before) return "a calm session ended no case";
  }
  return "some case never ended";
}

// Returns whether the run reports that it is complete.
bool Simulation::run_session(bool calm) {
  calm_ = calm;
  CoreConfig config;
  config.slots = 1 + chance_.below(4);
  config.servers.resize(1 + chance_.below(2), "simulated");
  config.exit_on_error = !calm && chance_.one_in(6);
  config.silence_ms = 4'000;
  config.import_ms = 9'000;
  config.slack_ms = 9'000;
  if (store_.lease_ms > 0) config.lease_ms = store_.lease_ms;
  begin_at_once_ = 1 + rare_.below(4);
  config.begin_at_once = begin_at_once_;
  config.begin_ms = kBeginMs;
  config.claim = others_ ? 1 + chance_.below(12) : store_.rows.size() + 1;
  slots_.assign(config.slots, {});
  servers_.assign(config.servers.size(), {});
  in_use_.clear();
  unended_.clear();
  short_of_memory_.clear();
  had_all_memory_.clear();
  gave_back_.clear();
  recorded_.clear();
  for (auto& [id, row] : store_.rows) row.slots_lost = 0;
  faults_left_ = calm ? 0 : static_cast<int>(chance_.below(30));
  signals_ = 0;
  disk_full_ = ended_ = complete_ = false;
  strongest_ = StopReason::none;
  core_now_ = 0;
  ticked_ = false;
  core_.emplace(config, Queue(budget_));
  core_->begin();
  act();
  std::uint64_t steps = 0;
  while (!ended_ && !wrong_) {
    step();
    expect(++steps < kMostSteps, "the session does not end");
    ++steps_;
    if (!calm && !ended_ && chance_.one_in(3000)) {
      note("the supervisor is killed");
      store_.lose_uncommitted(SimulatedStore::kUs);
      return false;
    }
  }
  return core_->stop_reason() == StopReason::complete && !core_->error();
}

void Simulation::step() {
  if (faults_left_ > 0 && chance_.one_in(12)) disturb();
  const std::size_t slot = chance_.below(slots_.size());
  if (!calm_ && rare_.one_in(5000)) give_up(slot);
  switch (chance_.below(8)) {
    case 0:
      pass_time();
      break;
    case 1:
    case 2:
    case 3:
      run_case(slot);
      break;
    case 4:
      if (others_ && !calm_) other_claimer();
      break;
    default:
      deliver(slot);
  }
  if (core_->stop_reason() < strongest_) expect(false, "the reason to stop has sunk");
  strongest_ = core_->stop_reason();
}

// ---- the world ----

void Simulation::pass_time() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].up && !slots_[i].hangs && !slots_[i].killed) core_->slot_spoke(i);
  }
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    Server& server = servers_[i];
    if (server.up && server.ready && !server.hangs) core_->server_spoke(i);
    if (server.up && !server.ready && !server.hangs && chance_.one_in(2)) {
      server.ready = true;
      core_->server_ready(i);
    }
    if (server.killed) {
      server = {false, false, false, false};
      core_->server_gone(i, "killed");
      act();
    }
  }
  // Now and then the whole machine sleeps.
  const std::int64_t passed =
      chance_.one_in(200) ? 100'000 : static_cast<std::int64_t>(50 + chance_.below(1500));
  now_ += passed;
  if (std::exchange(ticked_, true)) core_now_ += std::min(passed, kLongestTickMs);
  core_->tick(now_);
  act();
}

std::size_t Simulation::slots_that_begin() const {
  return static_cast<std::size_t>(std::count_if(slots_.begin(), slots_.end(), [&](const Slot& at) {
    return at.up && at.began && core_now_ - *at.began < kBeginMs;
  }));
}

bool Simulation::servers_ready() const {
  return std::all_of(servers_.begin(), servers_.end(),
                     [](const Server& at) { return at.up && at.ready && !at.hangs; });
}

// The slot runs its next case, or leaves, or dies of an earlier disturbance.
void Simulation::run_case(std::size_t index) {
  Slot& slot = slots_[index];
  if (!slot.up) return;
  if (slot.killed) return end_slot(index, true);
  if (slot.hangs || slot.busy || slot.nonsense || !servers_ready()) return;
  if (slot.told_to_stop) {
    if (slot.on_the_way.empty()) end_slot(index, false);
    return;
  }
  if (slot.queue.empty()) return;
  const wire::JobT running = slot.queue.front();
  const Nature nature = store_.rows.at(running.test_case.id).nature;
  if (!answers(nature)) {
    note("case {} takes slot {} along", running.test_case.id, index);
    if (nature == Nature::kills_slot) return end_slot(index, false);
    slot.hangs = nature == Nature::silences_slot;
    slot.busy = nature == Nature::hangs_slot;
    if (nature == Nature::makes_nonsense) {
      slot.nonsense = true;
      core_->slot_sent_invalid(index, "nonsense");
      act();
    }
    return;
  }
  if (running.attempt.number == 1) first_ran_[running.test_case.id] = {slot.number, steps_};
  slot.queue.erase(slot.queue.begin());
  slot.on_the_way.push_back(answer_to(running));
  // Some answers come twice.
  if (!calm_ && chance_.one_in(20)) slot.on_the_way.push_back(slot.on_the_way.back());
}

Judged Simulation::answer_to(const wire::JobT& queued) {
  const Nature nature = store_.rows.at(queued.test_case.id).nature;
  Judged answer{queued};
  answer.ran_from = answer.ran_to = steps_;
  const bool fails =
      nature == Nature::fails || (nature == Nature::flaky && queued.attempt.number == 1);
  answer.verdict.outcome = fails ? Outcome::mismatch : Outcome::pass;
  if (nature == Nature::fails && queued.test_case.id % 3 == 0)
    answer.verdict.outcome = Outcome::oom;
  if (queued.attempt.isolation == wire::Isolation::shared_retry && rare_.one_in(4))
    answer.verdict.message = "in another way";
  if (!calm_ && chance_.one_in(40)) {
    answer.verdict.outcome = Outcome::crash;
    answer.killed_from_outside = true;
  }
  return answer;
}

// Some of the answers on the way arrive, also from a slot that is being killed.
void Simulation::deliver(std::size_t index) {
  Slot& slot = slots_[index];
  if (!slot.up || slot.on_the_way.empty() || slot.hangs) return;
  const std::size_t most = 1 + chance_.below(slot.on_the_way.size());
  const std::vector<Judged> arrived(slot.on_the_way.begin(),
                                    slot.on_the_way.begin() + static_cast<std::ptrdiff_t>(most));
  slot.on_the_way.erase(slot.on_the_way.begin(),
                        slot.on_the_way.begin() + static_cast<std::ptrdiff_t>(most));
  for (const Judged& answer : arrived) {
    if (core_->held(index, answer.job.test_case.id, answer.job.attempt.number) == nullptr) continue;
    const auto held = in_use_.extract(answer.job.test_case.id);
    if (!held || answer.verdict.outcome != Outcome::oom) continue;  // some come twice
    short_of_memory_.insert(answer.job.test_case.id);
    if (held.mapped().bytes > budget_.all && held.mapped().alone)
      had_all_memory_.insert(answer.job.test_case.id);
  }
  if (std::any_of(arrived.begin(), arrived.end(), [&](const Judged& answer) {
        return core_->held(index, answer.job.test_case.id, answer.job.attempt.number) != nullptr;
      })) {
    slot.began.reset();
  }
  core_->slot_answered(index, arrived);
  act();
}

void Simulation::end_slot(std::size_t index, bool by_sigkill) {
  Slot& slot = slots_[index];
  if (!slot.hangs && chance_.one_in(2)) {
    while (slot.up && !slot.on_the_way.empty() && !ended_) deliver(index);
  }
  if (ended_) return;
  note("slot {} has ended{}", index, by_sigkill ? " of SIGKILL" : "");
  std::erase_if(in_use_, [&](const auto& entry) {
    const bool lost = entry.second.slot == index;
    if (lost) ++store_.rows.at(entry.first).slots_lost;
    return lost;
  });
  slot = {};
  core_->slot_gone(index, by_sigkill, by_sigkill ? "killed by SIGKILL" : "exit code 1");
  act();
}

// ---- faults ----

void Simulation::disturb() {
  --faults_left_;
  switch (chance_.below(12)) {
    case 0:
      ++signals_;
      note("signal");
      core_->signal();
      act();
      expect(signals_ < 2 || ended_, "a second signal does not end the run");
      break;
    case 1:
      if (chance_.one_in(4)) disk_full_ = true;
      break;
    case 2:
    case 3:
    case 4:
      disturb_server(chance_.below(servers_.size()));
      break;
    default:
      disturb_slot(chance_.below(slots_.size()));
  }
}

void Simulation::disturb_slot(std::size_t index) {
  if (ended_ || !slots_[index].up) return;
  Slot& slot = slots_[index];
  switch (chance_.below(5)) {
    case 0:
      slot.hangs = true;
      break;
    case 1:
      slot.busy = true;
      break;
    case 2:
      slot.nonsense = true;
      core_->slot_sent_invalid(index, "nonsense");
      act();
      break;
    case 3:
      end_slot(index, true);
      break;
    default:
      end_slot(index, false);
  }
}

void Simulation::disturb_server(std::size_t index) {
  Server& server = servers_[index];
  if (ended_ || !server.up) return;
  if (chance_.one_in(2)) {
    server.hangs = true;
  } else {
    server = {false, false, false, false};
    core_->server_gone(index, "exit code 1");
    act();
  }
}

// For example, its GPU cannot be opened.
void Simulation::give_up(std::size_t index) {
  if (ended_ || !slots_[index].up) return;
  note("slot {} gives up", index);
  core_->slot_gives_up(index, "no such GPU");
  act();
  expect(ended_ && core_->error(), "a slot that gives up does not end the run");
}

// Another supervisor on the same store, which is not always in time.
void Simulation::other_claimer() {
  const int who = SimulatedStore::kOther;
  switch (chance_.below(6)) {
    case 0:
      (void)store_.claim(who, 1 + chance_.below(4), now_);
      break;
    case 1:
      store_.renew(who, now_);
      break;
    case 2:
      store_.lose_uncommitted(who);
      break;
    case 3:
      store_.commit(who);
      break;
    default:
      for (auto& [id, row] : store_.rows) {
        if (row.holder == who && row.finished == 0 && chance_.one_in(3)) {
          store_.finish(who, id, row.epoch, {});
        }
      }
  }
}

// ---- actions ----

void Simulation::act() {
  while (const auto action = core_->next_action()) {
    expect(!ended_, "an action after the last one");
    std::visit([this](const auto& what) { perform(what); }, *action);
  }
  check_nobody_sleeps();
}

void Simulation::perform(const StartSlot& action) {
  note("start slot {}", action.slot);
  expect(!slots_[action.slot].up, "a slot is started twice");
  slots_[action.slot] = {};
  slots_[action.slot].up = true;
  slots_[action.slot].number = ++slots_started_;
  slots_[action.slot].began = core_now_;
  expect(slots_that_begin() <= begin_at_once_, "more slots begin at once than shall");
  gave_back_.erase(action.slot);
}

void Simulation::perform(const SendLease& action) {
  Slot& slot = slots_[action.slot];
  expect(slot.up && !slot.killed, "a lease for a slot that is not there");
  gave_back_.erase(action.slot);
  for (const wire::JobT& queued : action.cases) {
    note("case {} attempt {} to slot {}", queued.test_case.id, queued.attempt.number, action.slot);
    expect(!recorded_.contains(queued.test_case.id), "a case runs again after its verdict");
    for (auto& [id, held] : in_use_) held.alone = false;
    const Held held{action.slot, queued.test_case.bytes, queued.attempt.number, in_use_.empty()};
    expect(in_use_.emplace(queued.test_case.id, held).second, "two slots hold one case");
    if (queued.attempt.slots_lost > 0) expect(slot.queue.empty(), "a suspect is not alone");
    if (queued.attempt.memory != wire::MemoryNeed::estimated) check_given_back(action.slot);
    slot.queue.push_back(queued);
  }
  check_shared_process(action.cases);
  check_memory();
}

void Simulation::perform(const SendGiveBack& action) {
  const Slot& slot = slots_[action.slot];
  expect(slot.up && slot.queue.empty(), "a slot that works gives its memory back");
  gave_back_.insert(action.slot);
}

void Simulation::perform(const SendStop& action) {
  expect(slots_[action.slot].up, "a stop for a slot that is not there");
  slots_[action.slot].told_to_stop = true;
}

void Simulation::perform(const KillSlot& action) {
  note("kill slot {}", action.slot);
  expect(slots_[action.slot].up, "a kill of a slot that is not there");
  slots_[action.slot].killed = true;
}

void Simulation::perform(const KillServer& action) {
  note("kill server {}", action.server);
  expect(servers_[action.server].up, "a kill of a server that is not there");
  servers_[action.server].killed = true;
}

void Simulation::perform(const RestartServer& action) {
  note("restart server {}", action.server);
  expect(!servers_[action.server].up, "a server is started twice");
  servers_[action.server] = {true, false, false, false};
}

void Simulation::perform(const ClaimCases& action) {
  const auto claimed = store_.claim(SimulatedStore::kUs, action.bundles, now_);
  for (const wire::JobT& queued : claimed) {
    unended_.insert(queued.test_case.id);
    core_->add(queued);
  }
  core_->claimed(store_.supply(SimulatedStore::kUs));
}

void Simulation::perform(const NoteFailure& action) {
  expect(unended_.contains(action.id), "a failure of a case that has ended");
}

void Simulation::perform(const RenewLeases&) { store_.renew(SimulatedStore::kUs, now_); }

void Simulation::perform(const Judged& action) {
  const std::uint64_t id = action.job.test_case.id;
  unended_.erase(id);
  note("verdict on {}: {}", id, name(action.verdict.outcome));
  expect(!recorded_.contains(id), "two verdicts on one case");
  expect(!complete_, "a verdict after the last one");
  if (disk_full_) return core_->fail(Error{"the disk is full"});
  check_verdict(store_.rows.at(id), action);
  // A refused case may come back: another claimer had it and did not end it.
  if (store_.finish(SimulatedStore::kUs, id, action.job.attempt.epoch, action.verdict)) {
    recorded_.insert(id);
  } else {
    short_of_memory_.erase(id);  // the core has forgotten it
  }
}

void Simulation::perform(const CommitStore&) {
  if (disk_full_) return core_->fail(Error{"the disk is full"});
  store_.commit(SimulatedStore::kUs);
}

void Simulation::perform(const Tell& action) { note("{}", action.line); }

void Simulation::perform(const TellComplete&) {
  note("complete");
  complete_ = true;
  expect(unended_.empty() && in_use_.empty(), "complete, and a case has no verdict");
}

void Simulation::perform(const FinishRun&) {
  note("the session ends");
  if (disk_full_) {
    core_->fail(Error{"the disk is full"});
    store_.lose_uncommitted(SimulatedStore::kUs);
  } else {
    store_.commit(SimulatedStore::kUs);
  }
  store_.release(SimulatedStore::kUs);
  ended_ = true;
}

void Simulation::expect(bool holds, const char* what) {
  if (holds || wrong_) return;
  wrong_ = what;
  note("WRONG: {}", what);
}

}  // namespace assay::testing
