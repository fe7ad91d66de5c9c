#include "engine/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>

#include "engine/lane_plan.h"

namespace assay {
namespace {

// A slot asks for nothing: it is given more when it holds less than this.
constexpr std::size_t kLowWater = 32;
constexpr std::chrono::milliseconds kTick{100};  // how often the store commits
constexpr std::chrono::seconds kGrace{10};       // for running cases, after a signal
constexpr int kSlotDeaths = 10;                  // in a row, without a verdict
constexpr int kServerDeaths = 10;
// Slots that may die while they hold one case alone: by themselves, or by a SIGKILL from outside.
constexpr std::uint32_t kCaseLosses = 3;
constexpr std::uint32_t kCaseKills = 20;

// The records of a slot's message; they point into it.
Result<std::vector<OpenRecord>> records_in(const wire::Bytes& bytes) {
  ASSAY_TRY(const wire::FromSlot* message, wire::open<wire::FromSlot>(bytes));
  std::vector<OpenRecord> records;
  const wire::Results* results = message->body_as_Results();
  if (results == nullptr || results->records() == nullptr) return records;
  for (const wire::RecordBytes* record : *results->records()) {
    if (record->data() == nullptr) return fail("a message without its record");
    const std::span<const std::uint8_t> inner{record->data()->data(), record->data()->size()};
    ASSAY_TRY(const wire::Record* root, wire::open<wire::Record>(inner));
    records.push_back({root, inner});
  }
  return records;
}

}  // namespace

Session::Session(const RunConfig& config, Plan& plan, Recorder& recorder, Store& store,
                 const RunObserver& observer, std::vector<ForkServer> servers,
                 std::vector<wire::LaneSpecT> lanes)
    : config_(config),
      plan_(plan),
      recorder_(recorder),
      store_(store),
      observer_(observer),
      signals_(context_, SIGINT, SIGTERM),
      ticker_(context_),
      grace_(context_),
      lanes_(std::move(lanes)),
      seats_(config.slots) {
  for (ForkServer& server : servers) servers_.push_back({std::move(server), std::nullopt, 0});
}

Result<RunEnding> Session::run() {
  watch_signals();
  for (std::size_t index = 0; index < servers_.size(); ++index) watch_server(index);
  for (std::size_t seat = 0; seat < seats_.size(); ++seat) start_slot(seat);
  tick();
  context_.run();
  for (Seat& seat : seats_) {
    if (seat.watch) (void)seat.watch->release();
  }
  for (ServerSeat& server : servers_) {
    if (server.watch) (void)server.watch->release();
    server.server.stop();
  }
  if (const Status committed = store_.commit(); !committed && !trouble_) {
    trouble_ = committed.error();
  }
  if (trouble_) return tl::unexpected<Error>(*trouble_);
  return ending_;
}

SlotConfig Session::slot_config(std::size_t seat) const {
  SlotConfig slot{static_cast<std::uint32_t>(seat), lanes_, config_.settings,
                  (config_.folder / "lanes").string()};
  for (wire::LaneSpecT& lane : slot.lanes) {
    lane.device = device_in_slot(config_, lane.device, slot.index);
  }
  return slot;
}

// ---- slots ----

void Session::start_slot(std::size_t seat) {
  auto started = SlotProcess::start(slot_config(seat),
                                    config_.folder / "lanes" / fmt::format("slot{}.log", seat));
  if (!started) return trouble(started.error());
  seats_[seat].slot = std::move(*started);
  seats_[seat].watch.emplace(context_, seats_[seat].slot->socket());
  watch_slot(seat);
  give_work(seat);
}

void Session::watch_slot(std::size_t seat) {
  seats_[seat].watch->async_wait(asio::posix::stream_descriptor::wait_read,
                                 [this, seat](const asio::error_code& error) {
                                   if (!error) on_readable(seat);
                                 });
}

void Session::on_readable(std::size_t seat) {
  SlotProcess& slot = *seats_[seat].slot;
  const auto open = slot.feed();
  while (!trouble_) {
    auto message = slot.next_message();
    if (!message) return on_slot_broken(seat, message.error());
    if (!*message) break;
    const auto records = records_in(**message);
    if (!records) return on_slot_broken(seat, records.error());
    if (const Status taken = on_records(seat, *records); !taken) return trouble(taken.error());
  }
  if (trouble_) return;
  if (!open || !*open) return on_slot_gone(seat, /*broken=*/false);
  give_work(seat);
  watch_slot(seat);
}

Status Session::on_records(std::size_t seat, const std::vector<OpenRecord>& records) {
  if (records.empty()) return {};
  seats_[seat].deaths = 0;
  for (ServerSeat& server : servers_) server.deaths = 0;
  for (const OpenRecord& record : records) ASSAY_CHECK(on_record(seat, record));
  return {};
}

Status Session::on_record(std::size_t seat, const OpenRecord& record) {
  std::optional<QueuedCase> queued = seats_[seat].slot->settle(record.root->id());
  if (!queued) return {};
  plan_.queue.release(queued->cost.bytes);
  ASSAY_TRY(const Recorder::Decision decision, recorder_.take(*queued, record));
  if (decision == Recorder::Decision::again) {
    ++queued->attempt;
    queued->fresh = true;
    plan_.queue.put_back(*queued);
  } else if (decision == Recorder::Decision::failed && config_.exit_on_error) {
    stop(RunEnding::stopped_on_error);
  }
  return {};
}

// What a slot says makes no sense: it is ended, as one that has died by itself.
void Session::on_slot_broken(std::size_t seat, const Error& error) {
  if (observer_.note) observer_.note(fmt::format("slot {}: {}", seat, error.message));
  seats_[seat].slot->kill();
  on_slot_gone(seat, /*broken=*/true);
}

// A slot that was not told to leave has died: what it held runs again, each case alone now.
void Session::on_slot_gone(std::size_t seat, bool broken) {
  Seat& at = seats_[seat];
  (void)at.watch->release();
  at.watch.reset();
  const auto status = at.slot->wait();
  const bool killed = !broken && status && status->signal == SIGKILL;
  const std::uint32_t most = killed ? kCaseKills : kCaseLosses;
  const bool alone = at.slot->held().size() == 1 && at.slot->held().front().losses > 0;
  for (const QueuedCase& held : at.slot->held()) {
    plan_.queue.release(held.cost.bytes);
    QueuedCase again = held;
    again.losses = alone ? held.losses + 1 : std::max(held.losses, 1U);
    if (again.losses <= most) {
      plan_.queue.put_back(again);
    } else if (const Status given_up = recorder_.give_up(
                   again, fmt::format("{} slots in a row died while they held this case alone",
                                      again.losses - 1));
               !given_up) {
      return trouble(given_up.error());
    }
  }
  at.slot.reset();
  if (stopping_ || !work_left()) {
    if (std::none_of(seats_.begin(), seats_.end(),
                     [](const Seat& s) { return s.slot.has_value(); })) {
      context_.stop();
    }
    return;
  }
  if (!killed && ++at.deaths >= kSlotDeaths) {
    return trouble(Error{fmt::format("slot {} died {} times in a row ({}); see {}", seat, at.deaths,
                                     status ? status->describe() : status.error().message,
                                     (config_.folder / "lanes").string())});
  }
  if (observer_.note) {
    observer_.note(fmt::format("slot {} was replaced ({})", seat,
                               status ? status->describe() : status.error().message));
  }
  start_slot(seat);
}

bool Session::work_left() const {
  if (!plan_.queue.empty()) return true;
  return std::any_of(seats_.begin(), seats_.end(),
                     [](const Seat& seat) { return seat.slot && !seat.slot->held().empty(); });
}

void Session::give_work(std::size_t seat) {
  SlotProcess& slot = *seats_[seat].slot;
  // A case that has lost a slot is alone with the next one, so that nothing else is suspected.
  const auto suspected = [&] { return !slot.held().empty() && slot.held().back().losses > 0; };
  while (!stopping_ && slot.held().size() < kLowWater && !suspected()) {
    if (!slot.held().empty() && plan_.queue.next_is_suspect()) break;
    const std::vector<QueuedCase> leased = plan_.queue.lease(slot.index());
    if (leased.empty()) break;
    // A slot that has died shows as end-of-file where it is read.
    (void)slot.send(leased);
  }
  if (!stopping_ && !work_left()) stop(RunEnding::complete);
}

void Session::give_work_to_all() {
  for (std::size_t seat = 0; seat < seats_.size() && !trouble_; ++seat) {
    if (seats_[seat].slot) give_work(seat);
  }
}

// ---- fork servers ----

void Session::watch_server(std::size_t index) {
  ServerSeat& at = servers_[index];
  at.watch.emplace(context_, at.server.pidfd());
  at.watch->async_wait(asio::posix::stream_descriptor::wait_read,
                       [this, index](const asio::error_code& error) {
                         if (!error) on_server_gone(index);
                       });
}

// Slots wait on the server's address meanwhile; its lanes have died with it and run again.
void Session::on_server_gone(std::size_t index) {
  ServerSeat& at = servers_[index];
  (void)at.watch->release();
  at.watch.reset();
  if (++at.deaths >= kServerDeaths) {
    return trouble(
        Error{fmt::format("the fork server of {} keeps dying; see {}", at.server.config().name,
                          (config_.folder / "lanes").string())});
  }
  if (const Status restarted = at.server.restart(); !restarted) return trouble(restarted.error());
  if (observer_.note) {
    observer_.note(fmt::format("the fork server of {} was replaced", at.server.config().name));
  }
  watch_server(index);
}

// ---- time and signals ----

void Session::tick() {
  if (const Status committed = store_.commit(); !committed) return trouble(committed.error());
  if (!stopping_) give_work_to_all();  // memory may have become free
  ticker_.expires_after(kTick);
  ticker_.async_wait([this](const asio::error_code& error) {
    if (!error) tick();
  });
}

void Session::watch_signals() {
  signals_.async_wait([this](const asio::error_code& error, int) {
    if (error) return;
    if (stopping_ && ending_ == RunEnding::interrupted) return stop_now();
    stop(RunEnding::interrupted);
    watch_signals();
  });
}

void Session::stop(RunEnding why) {
  if (why != RunEnding::complete && observer_.note) {
    observer_.note(why == RunEnding::interrupted
                       ? "stopping: running cases have 10 s; press Ctrl-C again to stop at once"
                       : "stopping at the first failure (--exit_on_error)");
  }
  stopping_ = true;
  ending_ = why;
  bool any = false;
  for (Seat& seat : seats_) {
    if (!seat.slot) continue;
    any = true;
    (void)seat.slot->send_stop();
  }
  if (!any) return context_.stop();
  grace_.expires_after(kGrace);
  grace_.async_wait([this](const asio::error_code& error) {
    if (!error) stop_now();
  });
}

void Session::stop_now() {
  for (Seat& seat : seats_) {
    if (seat.slot) seat.slot->kill();
  }
  context_.stop();
}

void Session::trouble(Error error) {
  if (!trouble_) trouble_ = std::move(error);
  stopping_ = true;
  stop_now();
}

}  // namespace assay
