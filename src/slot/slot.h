#pragma once

// A slot: one seat on a device. It takes leases of cases from the supervisor, runs each in its
// lanes, measures how the results differ, and sends records back. It never judges.

#include <deque>
#include <vector>

#include "base/fd.h"
#include "slot/batch.h"
#include "slot/config.h"

namespace assay {

class Slot {
 public:
  // Reads from the supervisor which lanes it has; blocks until that has come.
  static Result<Slot> begin(Fd supervisor);

  // Serves the supervisor until it says stop or closes the connection.
  Status run();

 private:
  Slot(SlotConfig config, Fd supervisor);
  Result<bool> take_messages();
  Status take_message(const wire::Bytes& bytes);
  std::vector<SlotJob> next_batch();
  Status run_batch(const std::vector<SlotJob>& batch);
  Status record(const SlotJob& job, bool fresh, std::vector<Ending>& endings);
  Status send_results();

  SlotConfig config_;
  Fd supervisor_;
  wire::FrameReader reader_;
  std::deque<SlotJob> queue_;
  std::vector<LaneSeat> seats_;  // test lane, then the reference lane if there is one
  // The same for second attempts: their lanes run one case and go, while the others keep what
  // makes them fast, warm memory and caches.
  std::vector<LaneSeat> fresh_seats_;
  std::vector<wire::Bytes> results_;
  std::int64_t last_sent_ns_ = 0;
  bool stopping_ = false;
};

}  // namespace assay
