#pragma once

// The shell around the core: performs its actions with real processes, a real store and a real
// clock, and tells it what happens. All on one thread, and nothing in it waits but the event loop.

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "engine/core.h"
#include "engine/plan.h"
#include "engine/recorder.h"
#include "engine/slot_process.h"
#include "lane/fork_server.h"

namespace assay {

class Session {
 public:
  Session(const RunConfig& config, Recorder& recorder, Store& store, const RunObserver& observer,
          std::vector<ForkServer> servers, std::vector<wire::LaneSpecT> lanes,
          std::vector<SpawnedSlot> ahead);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  // Blocks until every case has ended, or until told to stop. An error means that the engine itself
  // cannot go on; what was recorded is committed all the same.
  Result<RunEnding> run();

 private:
  // A fork server and what is waited for on its behalf; the watches borrow its descriptors.
  struct Server {
    ForkServer process;
    std::optional<asio::posix::stream_descriptor> end_watch;
    std::optional<asio::posix::stream_descriptor> voice_watch;
    // Of the process that is watched now: what was ready when the one before it was given up may
    // still be called.
    std::uint64_t number = 0;
  };

  // Performs what the core wants until it wants nothing more.
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
  void perform(const RecordVerdict& action);
  void perform(const CommitStore& action);
  void perform(const Tell& action);
  void perform(const TellComplete& action);
  void perform(const FinishRun& action);
  void check(const Status& status);

  std::string advice_for_gpu(std::size_t slot) const;  // empty: it sits on none
  void slot_said(std::size_t slot, const wire::Bytes& bytes);
  void slot_gone(std::size_t slot, const ExitStatus& status);
  void watch_server(std::size_t index);
  void listen_to_server(std::size_t index);
  void unwatch_server(Server& server);
  void server_spoke(std::size_t index);
  void server_gone(std::size_t index);
  void watch_signals();
  void tick();

  const RunConfig& config_;
  Recorder& recorder_;
  Store& store_;
  const RunObserver& observer_;
  Core core_;
  asio::io_context context_{1};
  asio::signal_set signals_;
  asio::steady_timer ticker_;
  std::vector<wire::LaneSpecT> lanes_;  // of each slot
  std::vector<Server> servers_;
  std::vector<std::optional<SpawnedSlot>> ahead_;  // of the first slots, until they are wanted
  std::vector<std::unique_ptr<SlotProcess>> slots_;
};

}  // namespace assay
