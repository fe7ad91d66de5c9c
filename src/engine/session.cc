#include "engine/session.h"

#include <fmt/format.h>

#include <asio/post.hpp>
#include <chrono>
#include <limits>
#include <thread>

#include "base/clock.h"
#include "base/interruption.h"
#include "base/log_cap.h"
#include "base/orphans.h"
#include "engine/lane_plan.h"
#include "slot/config.h"

namespace assay {
namespace {

constexpr std::chrono::milliseconds kTick{100};                    // how often the store commits
constexpr std::uint64_t kMostLogBytes = std::uint64_t{64} << 20U;  // of a lane or server
constexpr std::int64_t kNsInMs = 1'000'000;
constexpr std::int64_t kSweepNs = 1'000 * kNsInMs;  // for killed processes to end
// Slots on GPUs that start at the same time. Each has two lanes and creates two contexts, 0.2 s
// each; the driver creates them serially, so more slots would only wait (lab/gpu.md).
constexpr std::size_t kBeginAtOnce = 2;
using Wait = asio::posix::stream_descriptor::wait_type;

CoreConfig core_config(const RunConfig& config, const std::vector<ForkServer>& servers,
                       const RunClaims& claims) {
  CoreConfig core;
  core.slots = config.slots;
  for (const ForkServer& server : servers) core.servers.push_back(server.config().name);
  core.exit_on_error = config.exit_on_error;
  core.most_failures = config.most_failures;
  if (!config.gpus.empty()) core.begin_at_once = kBeginAtOnce;
  if (config.gpu_bytes > 0) core.most_bytes = config.gpu_bytes;
  core.logs = (config.folder / "lanes").string();
  core.silence_ms = config.silence_ms;
  core.claim_again_ms = config.claim_again_ms;
  if (const auto lease_time = claims.lease_time()) {
    core.lease_ms = lease_time->count();
    core.claim = config.slots;
  } else {
    core.claim = std::numeric_limits<std::size_t>::max();  // this run is the only worker
  }
  return core;
}

Status check_records(const wire::Results& results) {
  for (const wire::RecordBytes* record : *results.records()) {
    if (record->data() == nullptr) return fail("a message has no record");
    const std::span<const std::uint8_t> inner{record->data()->data(), record->data()->size()};
    ASSAY_TRY([[maybe_unused]] const wire::Record* root, wire::open<wire::Record>(inner));
  }
  return {};
}

}  // namespace

Session::Session(const RunConfig& config, Recorder& recorder, RunClaims& claims,
                 const RunObserver& observer, std::vector<ForkServer> servers,
                 std::vector<wire::LaneSpecT> lanes, std::vector<SpawnedSlot> ahead,
                 std::function<void()> complete)
    : config_(config),
      recorder_(recorder),
      claims_(claims),
      observer_(observer),
      complete_(std::move(complete)),
      core_(core_config(config, servers, claims),
            Queue(memory_budget(config, lanes), compiles_kernels(config, lanes))),
      ticker_(context_),
      lanes_(std::move(lanes)),
      ahead_(config.slots),
      slots_(config.slots) {
  std::move(ahead.begin(), ahead.end(), ahead_.begin());
  for (ForkServer& server : servers) {
    servers_.push_back({std::move(server), std::nullopt, std::nullopt, 0});
  }
}

Session::~Session() {
  for (Server& server : servers_) unwatch_server(server);
}

Result<RunEnding> Session::run() {
  adopt_orphans();
  ASSAY_CHECK(watch_signals());
  for (std::size_t index = 0; index < servers_.size(); ++index) watch_server(index);
  core_.begin();
  act();
  tick();
  if (!context_.stopped()) context_.run();
  remove_running(config_.folder);
  signals_.reset();  // nothing below waits for long: a signal may end the program again
  slots_.clear();
  for (Server& server : servers_) {
    unwatch_server(server);
    server.process.ask_to_stop();
  }
  for (Server& server : servers_) {
    server.process.stop();
    tell_of_left(server.process);
  }
  sweep_at_end();
  if (core_.error()) return tl::unexpected<Error>(*core_.error());
  switch (core_.stop_reason()) {
    case StopReason::interrupted:
    case StopReason::stop_now:
      return RunEnding::interrupted;
    case StopReason::stopped_on_error:
      return RunEnding::stopped_on_error;
    default:
      return RunEnding::complete;
  }
}

// ---- actions ----

void Session::act() {
  while (const auto action = core_.next_action()) {
    std::visit([this](const auto& what) { perform(what); }, *action);
  }
}

void Session::check(const Status& status) {
  if (!status) core_.fail(status.error());
}

void Session::perform(const StartSlot& action) {
  const std::size_t slot = action.slot;
  const SlotProcess::Events events{
      [this, slot](const wire::Bytes& bytes) { slot_said(slot, bytes); },
      [this, slot](const std::string& what) {
        core_.slot_sent_invalid(slot, what);
        act();
      },
      [this, slot](const ExitStatus& status) { slot_gone(slot, status); }};
  const std::filesystem::path logs = config_.folder / "lanes";
  SlotConfig begin{static_cast<std::uint32_t>(slot), lanes_, config_.settings, logs.string(),
                   config_.slots};
  for (wire::LaneSpecT& lane : begin.lanes) {
    lane.device = device_in_slot(config_, lane.device, begin.index);
  }
  if (!ahead_[slot]) {
    auto spawned = spawn_slot(begin.index, logs, "");
    if (!spawned) return core_.fail(spawned.error());
    ahead_[slot] = std::move(*spawned);
  }
  slots_[slot] = SlotProcess::start(context_, std::move(*ahead_[slot]), begin, events);
  ahead_[slot].reset();
}

void Session::perform(const SendLease& action) {
  if (slots_[action.slot]) slots_[action.slot]->send(action.cases);
}

void Session::perform(const SendStop& action) {
  if (slots_[action.slot]) slots_[action.slot]->send_stop();
}

void Session::perform(const KillSlot& action) {
  if (slots_[action.slot]) slots_[action.slot]->kill();
}

void Session::perform(const SendGiveBack& action) {
  if (slots_[action.slot]) slots_[action.slot]->send_give_back();
}

void Session::perform(const KillServer& action) { servers_[action.server].process.kill(); }

void Session::perform(const RestartServer& action) {
  if (const Status restarted = servers_[action.server].process.restart(); !restarted) {
    return core_.fail(restarted.error());
  }
  watch_server(action.server);
}

void Session::perform(const ClaimCases& action) {
  const auto supply = claim_cases(config_, action.bundles, claims_,
                                  [this](wire::JobT claimed) { core_.add(std::move(claimed)); });
  if (!supply) return core_.fail(supply.error());
  core_.set_pace(claims_.pace().count());
  core_.claimed(*supply);
}

void Session::perform(const RenewLeases&) { check(claims_.renew()); }

void Session::perform(const Judged& ended) { check(recorder_.record(ended)); }

void Session::perform(const NoteFailure& failed) {
  check(claims_.note_failure(failed.id, failed.how));
}

void Session::perform(const CommitStore&) {
  check(claims_.commit());
  core_.set_pace(claims_.pace().count());
}

void Session::perform(const Tell& action) {
  if (observer_.note) observer_.note(action.line);
}

void Session::perform(const TellComplete&) {
  const Status committed = claims_.commit();
  if (!committed) return core_.fail(committed.error());
  if (complete_) complete_();
}

void Session::perform(const FinishRun&) {
  check(claims_.commit());
  check(claims_.release_all());
  check(claims_.commit());
  context_.stop();
}

// ---- slots ----

// Advice for a slot that gives up: its GPU may be broken.
std::string Session::advice_for_gpu(std::size_t slot) const {
  const std::string gpu = compared_on(config_, lanes_, static_cast<std::uint32_t>(slot));
  if (gpu.empty()) return {};
  return fmt::format(
      "; check whether {} still works (nvidia-smi; an Xid in dmesg), or exclude it with --gpu_ids; "
      "the same command with --log_dir={} resumes the run",
      gpu, config_.folder.string());
}

void Session::slot_said(std::size_t slot, const wire::Bytes& bytes) {
  const auto message = wire::open<wire::FromSlot>(bytes);
  if (!message) return core_.slot_sent_invalid(slot, message.error().message), act();
  core_.slot_spoke(slot);
  if (const wire::GiveUp* end = (*message)->body_as_GiveUp(); end != nullptr) {
    const std::string why =
        end->reason() != nullptr ? end->reason()->str() : "it gave up without a reason";
    core_.slot_gives_up(slot, why + advice_for_gpu(slot));
    return act();
  }
  const wire::Results* results = (*message)->body_as_Results();
  if (results == nullptr || results->records() == nullptr) return;
  const Status checked = check_records(*results);
  if (!checked) return core_.slot_sent_invalid(slot, checked.error().message), act();
  std::vector<Judged> answers;
  for (const wire::RecordBytes* record : *results->records()) {
    const wire::Record& root = *record->data_nested_root();
    const wire::JobT* held = core_.held(slot, root.id(), root.attempt());
    if (held != nullptr) answers.push_back(recorder_.judge(*held, *record));
  }
  core_.slot_answered(slot, std::move(answers));
  act();
}

void Session::slot_gone(std::size_t slot, const ExitStatus& status) {
  const std::unique_ptr<SlotProcess> ended = std::move(slots_[slot]);  // destroyed on return
  core_.slot_gone(slot, status.signal == SIGKILL, status.describe());
  act();
}

// ---- fork servers ----

void Session::watch_server(std::size_t index) {
  Server& server = servers_[index];
  server.end_watch.emplace(context_, server.process.pidfd());
  await_server_end(index);
  server.heartbeat_watch.emplace(context_, server.process.heartbeat_fd());
  listen_to_server(index);
}

void Session::await_server_end(std::size_t index) {
  Server& server = servers_[index];
  server.end_watch->async_wait(
      Wait::wait_read, [this, index, number = server.number](const asio::error_code& error) {
        if (!error && servers_[index].number == number) server_gone(index);
      });
}

void Session::listen_to_server(std::size_t index) {
  Server& server = servers_[index];
  server.heartbeat_watch->async_wait(
      Wait::wait_read, [this, index, number = server.number](const asio::error_code& error) {
        if (!error && servers_[index].number == number) server_spoke(index);
      });
}

void Session::unwatch_server(Server& server) {
  ++server.number;
  for (auto* watch : {&server.end_watch, &server.heartbeat_watch}) {
    if (*watch) (void)(*watch)->release();
    watch->reset();
  }
}

void Session::server_spoke(std::size_t index) {
  const auto heard = servers_[index].process.read_heartbeat();
  if (!heard) {
    core_.fail(heard.error());
    return act();
  }
  if (*heard == ForkServer::Heard::nothing_more) return;  // end_watch sees the server's end
  if (*heard == ForkServer::Heard::ready) core_.server_ready(index);
  if (*heard == ForkServer::Heard::alive) core_.server_spoke(index);
  tell_of_left(servers_[index].process);
  listen_to_server(index);
}

void Session::tell_of_left(ForkServer& server) {
  for (const std::string& note : server.take_notes()) {
    if (observer_.note) observer_.note(note);
  }
  const std::vector<std::string> left = server.take_left();
  if (left.empty() || !observer_.note) return;
  observer_.note(fmt::format("killed processes that cases had left running: {}; see {}",
                             fmt::join(left, ", "), (config_.folder / "lanes").string()));
}

// May be called although the server is running: asio reuses the state of a released descriptor, so
// that an event queued for the old descriptor fires for that of the new server.
void Session::server_gone(std::size_t index) {
  ExitStatus status;
  const auto ended = servers_[index].process.try_wait(status);
  if (ended && !*ended) return await_server_end(index);
  unwatch_server(servers_[index]);
  sweeping_ = true;
  core_.server_gone(index, ended ? status.describe() : ended.error().message);
  act();
}

// Kills processes that cases had started. Unlike lanes, they do not die with their server.
void Session::sweep() {
  if (sweeping_) sweeping_ = !sweep_orphans().all_gone;
}

// Ends what cases have left running, and reports what does not end within a second.
void Session::sweep_at_end() {
  const std::int64_t until = monotonic_ns() + kSweepNs;
  OrphanSweep sweep = sweep_orphans();
  while (!sweep.all_gone && monotonic_ns() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    sweep = sweep_orphans();
  }
  if (sweep.all_gone || !observer_.note) return;
  observer_.note(fmt::format(
      "cases have left processes running that do not end: {}; they wait for a disk or a device",
      fmt::join(sweep.killed, ", ")));
}

// ---- time and signals ----

void Session::tick() {
  core_.tick(monotonic_ns() / kNsInMs);
  act();
  sweep();
  show_running();
  (void)cap_logs(config_.folder / "lanes", kMostLogBytes);  // a full disk shows elsewhere
  ticker_.expires_after(kTick);
  ticker_.async_wait([this](const asio::error_code& error) {
    if (!error) tick();
  });
}

// A page may miss this file; a run does not end because it cannot be written.
void Session::show_running() {
  constexpr std::int64_t kPauseMs = 1'000;
  const std::int64_t now_ms = monotonic_ns() / kNsInMs;
  if (now_ms - shown_running_ms_ < kPauseMs) return;
  shown_running_ms_ = now_ms;
  (void)write_running(config_.folder, core_.running());
}

Status Session::watch_signals() {
  const auto take = [this] {
    signals_->taken();
    hurry_sockets();  // the database may stop answering from now on
    core_.signal();
    act();
  };
  ASSAY_TRY(signals_, SignalWatch::start([this, take] { asio::post(context_, take); }));
  return {};
}

}  // namespace assay
