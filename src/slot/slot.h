#pragma once

// A slot: one seat on a device. It takes leases of cases from the supervisor, runs each in its
// lanes, measures how the results differ, and sends records back. It never judges.

#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "device/shared_inputs.h"
#include "slot/abilities.h"
#include "slot/batch.h"
#include "slot/config.h"
#include "slot/record.h"

namespace assay {

class Slot {
 public:
  // Reads from the supervisor which lanes it has; blocks until that has come. Meanwhile it opens
  // `device`, where that is not empty: the one that results will be compared on.
  static Result<Slot> begin(Fd supervisor, const std::string& device = "");

  // Serves the supervisor until it says stop or closes the connection.
  // Where neither this slot nor another in its place could go on, it says so first.
  Status run();

 private:
  Status serve();
  Slot(SlotConfig config, Fd supervisor, const std::shared_ptr<LazyDevice>& ahead);
  Result<bool> take_messages();
  Status take_message(const wire::Bytes& bytes);
  std::vector<wire::JobT> next_batch();
  Status run_batch(const std::vector<wire::JobT>& batch);
  // Gives memory of the shared inputs back that a case of so many bytes does not want.
  void trim_inputs(std::uint64_t wanted);
  Result<bool> wait_for_supervisor(int limit_ms) const;
  // Ends all lanes; their memory and that of the shared inputs goes back.
  Status give_back();
  // Every job once for each kind of values; where faults are planted, once more for each of them.
  std::vector<wire::JobT> with_values(const std::vector<wire::JobT>& batch);
  // Planted faults say nothing of what a lane can do.
  bool learns() const { return config_.settings.mutants.empty(); }
  Status run_entries(std::vector<LaneSeat>& seats, std::vector<wire::JobT> entries,
                     std::vector<CaseRecord>& records);
  Status time_entries(std::vector<LaneSeat>& seats, const std::vector<wire::JobT>& entries,
                      std::vector<CaseRecord>& records);
  Status send(std::vector<CaseRecord>& records);
  Status send_results();
  Status send(const flatbuffers::FlatBufferBuilder& message);
  void show_life(const std::stop_token& stop);

  SlotConfig config_;
  Fd supervisor_;
  std::vector<std::string> values_;  // the regimes that every case is run under
  std::unique_ptr<std::mutex> sending_ = std::make_unique<std::mutex>();  // two threads do
  wire::FrameReader reader_;
  std::deque<wire::JobT> queue_;
  std::shared_ptr<LazyDevice> device_;    // that results on GPUs are compared on
  bool gave_up_ = false;                  // no lanes can be had
  Abilities abilities_;                   // of the lane under test, whichever process it is
  std::shared_ptr<SharedInputs> inputs_;  // of the lanes on the CPU, where there are several
  std::vector<LaneSeat> seats_;           // test lane, then the reference lane if there is one
  // The same for second attempts: their lanes run one case and go, while the others keep what
  // makes them fast, warm memory and caches.
  std::vector<LaneSeat> fresh_seats_;
  std::vector<wire::Bytes> results_;
  std::int64_t last_sent_ns_ = 0;
  std::uint64_t given_ = 0;  // entries, to lanes, in this slot's life
  bool stopping_ = false;
  // Says once a second that the process runs, also while a case keeps the main thread busy. Last,
  // so that it ends before what it uses.
  std::jthread pulse_;
};

}  // namespace assay
