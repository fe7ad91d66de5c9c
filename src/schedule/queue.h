#pragma once

// Which case runs next, and where. Pure bookkeeping: no process, no clock.
//
// The first twelfth of the expected work goes out cheapest first, because most verdicts are then
// there early, whenever the run is ended. After that slots with even numbers take the most
// expensive case first, because such a case that comes last leaves every other slot idle, as do
// many that only run one after another; those with odd numbers go on from the cheap end. So large
// tensors stay with half of the slots, whose memory is warm for them (a first touch is ten times as
// slow as reuse), and fewer of them compete for the memory budget; the two meet at cases of
// middling size. The first lease of every slot is a short one from the cheap end in any case.
//
// A lease is admitted while the estimated memory of all leases fits the budget. Of cases that fit
// no budget one runs at a time, and beside it what is small: estimates are generous, and other
// slots shall not stand still. What ran out of memory is tried again with nothing beside it, on its
// GPU or, where lanes are on the host, at all. What is not admitted holds up nothing else.
//
// On GPUs a kernel's first call in a process takes as long as some hundred small cases, and each
// lane has to pay it. So small cases are sorted by their text, hence by their APIs, and each slot
// has a stretch of them for itself; one that has done its own helps where most is left, from the
// end. And a slot's first second attempt makes lanes of its own, for which the whole machine waits:
// second attempts stay with few slots, and another one joins only where many wait or it has nothing
// else to do.
//
// A lane costs more than most second attempts. So those that may have company wait for it, a moment
// at most (hurry()), and share a lane, one after another: the last that ran first, so that none of
// them follows a case that it followed the first time.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "wire/job.h"

namespace assay {

// What the cases of all slots may need at once, in bytes of one lane, as Cost counts them. A slot
// also takes part in the memory of its GPU, in which slots take turns.
struct MemoryBudget {
  std::uint64_t all = 0;
  std::uint64_t each_gpu = 0;
  std::size_t gpus = 0;
};

class Queue {
 public:
  explicit Queue(const MemoryBudget& budget) : budget_(budget), on_gpu_(budget.gpus) {}

  void add(wire::JobT added);
  // Call once after the last add(), with the number of slots that will ask for leases.
  void sort(std::size_t slots = 1);
  // A second attempt, or a case that came back: before all else.
  void put_back(const wire::JobT& again);
  // Second attempts that wait for company have waited long enough.
  void hurry() { hurry_ = company_ > 0; }
  // The next one of all.
  void put_first(const wire::JobT& again);

  // Gives a waiting case the epoch of a newer lease; false: it does not wait here.
  bool renew(std::uint64_t id, std::uint64_t epoch);

  // The next cases for a slot: none when the queue is empty or memory does not allow. `ahead`: it
  // still has others, so that what is large in memory is kept for those that have none.
  std::vector<wire::JobT> lease(std::uint32_t slot, bool ahead = false);
  // A slot that has so many cases, of so many slots, needs no lease yet.
  std::size_t enough(std::size_t slots) const;

  // A case of the slot has ended, or the slot died: its memory is free again. True: it fits no
  // budget, and nothing ran beside it; never so on GPUs, which others use as well.
  bool release(std::uint32_t slot, const wire::JobT& ended);

  // Whether the next lease of this slot is a case that has lost a slot before, which wants a slot
  // for itself.
  bool next_is_suspect(std::uint32_t slot) const;

  bool empty() const { return size() == 0; }
  std::size_t size() const { return cases_.size() + again_.size() + small_left_; }
  std::uint64_t work_us() const { return work_us_; }  // expected, of all that wait

 private:
  // What runs on a GPU.
  struct OnGpu {
    std::uint64_t bytes = 0;
    std::size_t cases = 0;
    bool short_of_memory = false;  // that one case had too little before
  };
  bool on_host() const;
  bool admits(std::uint32_t slot, const wire::JobT& queued) const;
  bool gpu_admits(const OnGpu& gpu, const wire::JobT& queued) const;
  bool has_room(const wire::JobT& queued) const;
  bool takes_second_attempts(std::uint32_t slot) const;
  std::deque<wire::JobT>::const_iterator next_again(std::uint32_t slot, bool any_fresh) const;
  // A case that waits, and where; no list: there is none.
  struct Place {
    std::deque<wire::JobT>* list = nullptr;
    std::deque<wire::JobT>::const_iterator at;
  };
  // Whether all slots still take what is cheap.
  bool cheap_for_all() const;
  // The next of the cheap or of the expensive ones that memory allows.
  Place next_case(std::uint32_t slot, bool cheap);
  Place next_small(std::uint32_t slot);
  std::size_t part_of(std::size_t cases) const;
  std::size_t share_of(std::uint32_t slot, const std::deque<wire::JobT>& list) const;
  void take(std::uint32_t slot, const Place& place, std::vector<wire::JobT>& leased);
  bool take_again(std::uint32_t slot, bool any_fresh, std::vector<wire::JobT>& leased);
  // Those that share a lane next, in the order in which they run.
  bool take_company(std::uint32_t slot, std::size_t most, std::vector<wire::JobT>& leased);
  bool take_new(std::uint32_t slot, bool ahead, std::vector<wire::JobT>& leased);
  void share_out_small(std::size_t slots);

  MemoryBudget budget_;
  std::uint64_t in_use_ = 0;      // by cases that fit the budget
  bool over_budget_ = false;      // one runs that does not…
  bool beside_it_ = false;        // … and another one runs, or ran, beside it
  std::size_t running_ = 0;       // all that is leased
  bool short_of_memory_ = false;  // one runs alone that had too little before
  std::vector<OnGpu> on_gpu_;
  std::uint64_t work_us_ = 0;
  // Of the first cases' work, what goes out before what is expensive. Of those that come in later
  // nothing, or it would be put off again and again.
  std::optional<std::uint64_t> cheap_left_us_;
  std::deque<wire::JobT> cases_;               // cheapest first
  std::vector<std::deque<wire::JobT>> small_;  // on GPUs: those of each slot
  std::size_t small_left_ = 0;                 // in all of them
  std::deque<wire::JobT> again_;
  std::size_t company_ = 0;  // of these, second attempts that may share a lane
  bool hurry_ = false;       // they wait no longer
  std::size_t slots_ = 1;
  std::set<std::uint32_t> with_fresh_lanes_;     // slots that have had a second attempt
  std::map<std::uint32_t, std::size_t> leases_;  // of each slot, so far
  std::uint64_t last_lease_ = 0;                 // its number
};

}  // namespace assay
