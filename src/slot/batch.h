#pragma once

// Runs a batch of jobs in the lanes of a slot.
//
// Each pair of lane and job ends in exactly one way: the lane answers, or the job is blamed because
// the lane died or ran out of time while running it. A dead lane's successor gets the jobs without
// an answer. Earlier answers stay valid, because they keep the old arena.

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/shared_cache.h"
#include "lane/lane.h"
#include "slot/config.h"
#include "wire/job.h"

namespace assay {

// How one job ended in one lane.
struct LaneResult {
  // Answered: the reply, and the arena that holds its results.
  wire::Bytes bytes;
  const wire::Reply* reply = nullptr;
  std::shared_ptr<wire::Arena> arena;
  const Lane* lender = nullptr;   // the lane that keeps large results in its own memory; null: none
  SharedCache* shared = nullptr;  // opens results that are lent on a GPU
  // Blamed: crashed, timed_out or skipped.
  std::optional<wire::Status> blame;
  LaneExit exit;
  std::string reason;  // if `exit` does not tell it
  // Recorded (slot/golden.h): by which assay, and the truth in a reply of its own.
  std::string goldens;
  wire::Bytes evidence_bytes;
  const wire::Reply* evidence = nullptr;
  // Time that the job had run, all counted for the stage in which it stopped.
  std::array<std::uint64_t, wire::kStagesOfLane> ran_ns{};

  bool done() const { return reply != nullptr || blame.has_value(); }
};

// Whether a lane has answered that it cannot run the case at all: it has no kernel, or does not
// know the API. If the test lane cannot, no answer of another lane changes the verdict.
bool is_unable(const LaneResult& ending);

// One seat of a slot: a lane, and the means to get another.
struct LaneSeat {
  wire::LaneSpecT spec;
  LaneSource source;
  std::optional<Lane> lane;
  std::shared_ptr<wire::Arena> arena;      // kept from lane to lane, because its pages are warm
  std::unique_ptr<SharedCache> shared;     // cache of results lent on a GPU; null on the CPU
  bool outside_mps = false;                // its lanes do not go through the run's MPS
  std::optional<int> core = std::nullopt;  // its lanes run on this core only

  bool on_gpu() const { return shared != nullptr; }
};

class BatchRun {
 public:
  using OnJob = std::function<Status(std::size_t job, std::vector<LaneResult>& endings)>;

  // Calls `on_job` once for each job, as soon as it has ended in every lane. The endings are
  // dropped afterwards.
  BatchRun(const SlotConfig& config, std::span<LaneSeat> seats, const std::vector<wire::JobT>& jobs,
           OnJob on_job);

  // Blocks until every job has ended in every lane.
  Status run();
  // Whether run() failed because no lanes can be had. No case is to blame for that.
  bool gave_up() const { return gave_up_; }

 private:
  // The work of a seat: the jobs that its present lane got, in the order of its batch.
  struct SeatState {
    std::vector<std::size_t> sent;
    std::size_t answered = 0;
    // The running job and its start, as far as the lane can be believed: a case may overwrite the
    // arena's header. So jobs only follow each other, and none starts before the previous one or in
    // the future.
    std::optional<std::size_t> at_hand;  // index into `sent`
    std::int64_t since_ns = 0;           // start of that job, or the time of sending
    std::int64_t sent_ns = 0;
    std::uint64_t lane_number = 0;  // counts the lanes of this seat in this batch
    bool lends = false;             // large results stay with the lane
    std::uint64_t lent_bytes = 0;   // by the last answer
    // The lane waits for its GPU after each job. Without that, it waits after many jobs, and any
    // job without an answer may be the one that broke the GPU. Under MPS, the fault may also be
    // another process's: a careful lane does not go through MPS.
    bool careful = false;
    bool busy() const { return answered < sent.size(); }
  };

  Status start(std::size_t seat);
  void send_batch(std::size_t seat, const std::vector<std::size_t>& jobs);
  Status serve();
  void take_back();
  Status collect(std::size_t seat);
  Status take(std::size_t seat, wire::Bytes bytes);
  enum class Loss { ended, timed_out, invalid_message };
  Status lost(std::size_t seat, Loss how);
  std::optional<std::size_t> to_blame(std::size_t seat, Loss how,
                                      const std::optional<LaneExit>& exit) const;
  Status finish_job(std::size_t job);
  void end_wait(std::size_t job);
  Status run_again(std::size_t job);
  Status skip_other_values(std::size_t seat, std::size_t blamed);
  void look_at_lane(std::size_t seat);
  std::int64_t deadline_ns(std::size_t seat);
  std::optional<std::uint64_t> hang_ms(std::size_t seat, std::size_t job) const;
  int poll_timeout_ms();
  Status end_overdue();
  Status end_long_wait();
  Status give_up(std::string why);

  const SlotConfig& config_;
  std::span<LaneSeat> seats_;
  const std::vector<wire::JobT>& jobs_;
  OnJob on_job_;
  std::vector<SeatState> states_;
  std::vector<std::vector<LaneResult>> endings_;  // [job][seat]
  std::vector<bool> waits_;                       // [job]: the other seats wait for the first one
  std::vector<bool> hurries_;  // [job]: the first seat ran out of time before the others started
  int unexplained_ = 0;
  bool gave_up_ = false;
};

}  // namespace assay
