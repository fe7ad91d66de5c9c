#pragma once

// The running part of a run: fork servers, slots, signals, timers, all on one thread.

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "engine/plan.h"
#include "engine/recorder.h"
#include "engine/slot_process.h"
#include "lane/fork_server.h"

namespace assay {

class Session {
 public:
  Session(const RunConfig& config, Plan& plan, Recorder& recorder, Store& store,
          const RunObserver& observer, std::vector<ForkServer> servers,
          std::vector<wire::LaneSpecT> lanes);

  // Blocks until the queue has run dry and every slot has left, or until told to stop. An error
  // means that the engine itself cannot go on; what was recorded is committed all the same.
  Result<RunEnding> run();

 private:
  // What is waited for on behalf of a slot or a server. The watch borrows the descriptor.
  struct Seat {
    std::optional<SlotProcess> slot;
    std::optional<asio::posix::stream_descriptor> watch;
    int deaths = 0;  // without a verdict between them
  };
  struct ServerSeat {
    ForkServer server;
    std::optional<asio::posix::stream_descriptor> watch;
    int deaths = 0;
  };

  void start_slot(std::size_t seat);
  void watch_slot(std::size_t seat);
  void on_readable(std::size_t seat);
  Status on_records(std::size_t seat, const std::vector<OpenRecord>& records);
  Status on_record(std::size_t seat, const OpenRecord& record);
  void on_slot_broken(std::size_t seat, const Error& error);
  void on_slot_gone(std::size_t seat, bool broken);
  void give_work(std::size_t seat);
  void give_work_to_all();
  void watch_server(std::size_t index);
  void on_server_gone(std::size_t index);
  void watch_signals();
  void tick();
  void stop(RunEnding why);
  void stop_now();
  void trouble(Error error);
  bool work_left() const;
  SlotConfig slot_config(std::size_t seat) const;

  const RunConfig& config_;
  Plan& plan_;
  Recorder& recorder_;
  Store& store_;
  const RunObserver& observer_;
  asio::io_context context_{1};
  asio::signal_set signals_;
  asio::steady_timer ticker_;
  asio::steady_timer grace_;
  std::vector<ServerSeat> servers_;
  std::vector<wire::LaneSpecT> lanes_;  // of each slot
  std::vector<Seat> seats_;
  RunEnding ending_ = RunEnding::complete;
  bool stopping_ = false;
  std::optional<Error> trouble_;
};

}  // namespace assay
