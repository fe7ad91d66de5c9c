#pragma once

// The shell around the core: performs its actions with real processes, a real store and a real
// clock, and reports events to it.
//
// Everything runs on one thread, and only the event loop waits. A readiness event is a hint: a
// handler tries without blocking, and watches again if nothing was ready. Store calls are the
// exception: they wait for the disk or the database, which have limits of time. SignalWatch
// interrupts them at a signal.

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "base/signal_watch.h"
#include "engine/core.h"
#include "engine/plan.h"
#include "engine/recorder.h"
#include "engine/slot_process.h"
#include "lane/fork_server.h"

namespace assay {

class Session {
 public:
  // `complete` is called when every case has a verdict in the store, while slots and servers end.
  Session(const RunConfig& config, Recorder& recorder, RunClaims& claims,
          const RunObserver& observer, std::vector<ForkServer> servers,
          std::vector<wire::LaneSpecT> lanes, std::vector<SpawnedSlot> ahead,
          std::function<void()> complete = {});
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  // Runs until every case has a verdict or a signal stops the run. An error means that the engine
  // cannot continue; recorded verdicts are committed nevertheless.
  Result<RunEnding> run();

 private:
  // A fork server and its watches, which borrow its descriptors.
  struct Server {
    ForkServer process;
    std::optional<asio::posix::stream_descriptor> end_watch;
    std::optional<asio::posix::stream_descriptor> heartbeat_watch;
    // The number of processes watched so far. A handler of an earlier process may still run after
    // its watch was removed; it sees another number and does nothing.
    std::uint64_t number = 0;
  };

  // Performs the core's actions until there are none.
  void act();
  void perform(const StartSlot& action);
  void perform(const SendLease& action);
  void perform(const SendStop& action);
  void perform(const KillSlot& action);
  void perform(const SendGiveBack& action);
  void perform(const KillServer& action);
  void perform(const RestartServer& action);
  void perform(const ClaimCases& action);
  void perform(const RenewLeases& action);
  void perform(const Judged& ended);
  void perform(const NoteFailure& failed);
  void perform(const CommitStore& action);
  void perform(const Tell& action);
  void perform(const TellComplete& action);
  void perform(const FinishRun& action);
  void check(const Status& status);

  std::string advice_for_gpu(std::size_t slot) const;  // empty for a slot on the CPU
  void slot_said(std::size_t slot, const wire::Bytes& bytes);
  void slot_gone(std::size_t slot, const ExitStatus& status);
  void watch_server(std::size_t index);
  void listen_to_server(std::size_t index);
  void unwatch_server(Server& server);
  void server_spoke(std::size_t index);
  void server_gone(std::size_t index);
  void await_server_end(std::size_t index);
  void tell_of_left(ForkServer& server);
  void sweep();
  void sweep_at_end();
  Status watch_signals();
  void tick();
  void show_running();

  const RunConfig& config_;
  Recorder& recorder_;
  RunClaims& claims_;
  const RunObserver& observer_;
  std::function<void()> complete_;
  Core core_;
  asio::io_context context_{1};
  asio::steady_timer ticker_;
  std::int64_t shown_running_ms_ = 0;
  bool sweeping_ = false;               // a killed server may have left processes behind
  std::vector<wire::LaneSpecT> lanes_;  // of each slot
  std::vector<Server> servers_;
  std::vector<std::optional<SpawnedSlot>> ahead_;  // slots that were started before the run
  std::vector<std::unique_ptr<SlotProcess>> slots_;
  std::unique_ptr<SignalWatch> signals_;  // ends first: it posts to the loop
};

}  // namespace assay
