#pragma once

// A batch on its way through the lanes of a slot.
//
// Every (lane, job) pair ends in exactly one way: answered by the lane, or blamed on it because it
// died or ran out of time while running that job. What a dead lane had not answered is given to its
// successor; what was answered before stays valid, because it keeps the old arena.

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
struct Ending {
  // Answered: the reply, and the arena that its results lie in.
  wire::Bytes bytes;
  const wire::Reply* reply = nullptr;
  std::shared_ptr<wire::Arena> arena;
  const Lane* lender = nullptr;   // holds its large results in its own memory
  SharedCache* shared = nullptr;  // of what it lends on a GPU
  // Blamed: crashed or timed_out.
  std::optional<wire::Status> blame;
  LaneExit exit;
  std::string reason;  // where `exit` does not say it
  // How long it had run, all of it in the stage that it did not come back from.
  std::array<std::uint64_t, wire::kStagesOfLane> ran_ns{};

  bool done() const { return reply != nullptr || blame.has_value(); }
};

// Whether a lane has answered that it cannot run the case at all: it has no kernel, or does not
// know the API. If that is the lane under test, nothing that another lane says changes a verdict.
bool is_unable(const Ending& ending);

// One seat of a slot: a lane, and what it takes to get another.
struct LaneSeat {
  wire::LaneSpecT spec;
  LaneSource source;
  std::optional<Lane> lane;
  std::shared_ptr<wire::Arena> arena;      // kept from lane to lane, for its warm pages
  std::unique_ptr<SharedCache> shared;     // of its lane on a GPU; none on the CPU
  bool apart = false;                      // its lanes shall hear of nobody's fault but their own
  std::optional<int> core = std::nullopt;  // its lanes run on that one alone

  bool on_gpu() const { return shared != nullptr; }
};

class BatchRun {
 public:
  using OnJob = std::function<Status(std::size_t job, std::vector<Ending>& endings)>;

  // `on_job` is called once for each job, as soon as it has ended in every lane; the endings are
  // dropped afterwards.
  BatchRun(const SlotConfig& config, std::span<LaneSeat> seats, const std::vector<wire::JobT>& jobs,
           OnJob on_job);

  // Blocks until every job has ended in every lane.
  Status run();
  // Whether run() failed for want of lanes, which no case is to blame for.
  bool gave_up() const { return gave_up_; }

 private:
  // What a seat is busy with: the jobs sent to its present lane, in the order of its batch.
  struct SeatState {
    std::vector<std::size_t> sent;
    std::size_t answered = 0;
    // The job at hand and since when, as far as the lane's word can be true: a case may write over
    // what its lane says of itself, so jobs only ever follow each other, and none begins before the
    // one before it, or in the future.
    std::optional<std::size_t> at_hand;  // index into `sent`
    std::int64_t since_ns = 0;           // or when they were sent
    std::uint64_t lane_number = 0;       // of the lanes that this seat has had in this batch
    bool lends = false;                  // large results stay with the lane
    std::uint64_t lent_bytes = 0;        // of the last answer
    // The lane waits for its GPU after each job. Otherwise it does so when many are done, and of
    // those that it has not answered by then any may be the one that the GPU broke or hangs on, and
    // under MPS the fault may be another process's. So a careful lane is also apart.
    bool careful = false;
    bool busy() const { return answered < sent.size(); }
  };

  Status start(std::size_t seat);
  void send_batch(std::size_t seat, const std::vector<std::size_t>& jobs);
  Status serve();
  void take_back();
  Status collect(std::size_t seat);
  Status take(std::size_t seat, wire::Bytes bytes);
  enum class Loss { ended, timed_out, talks_nonsense };
  Status lost(std::size_t seat, Loss how);
  std::optional<std::size_t> to_blame(std::size_t seat, Loss how,
                                      const std::optional<LaneExit>& exit) const;
  Status finish_job(std::size_t job);
  void end_wait(std::size_t job);
  Status run_again(std::size_t job);
  Status skip_other_values(std::size_t seat, std::size_t blamed);
  void look_at_lane(std::size_t seat);
  std::int64_t deadline_ns(std::size_t seat);
  int poll_timeout_ms();
  Status end_overdue();
  Status give_up(std::string why);

  const SlotConfig& config_;
  std::span<LaneSeat> seats_;
  const std::vector<wire::JobT>& jobs_;
  OnJob on_job_;
  std::vector<SeatState> states_;
  std::vector<std::vector<Ending>> endings_;  // [job][seat]
  std::vector<bool> waits_;                   // [job]: other seats than the first wait with it
  std::vector<bool> hurries_;                 // [job]: the first ran out of time before they began
  int unexplained_ = 0;
  bool gave_up_ = false;
};

}  // namespace assay
