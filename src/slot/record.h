#pragma once

// The record of one case: how it ended in each lane, and how the results differ.

#include <optional>
#include <vector>

#include "base/result.h"
#include "slot/batch.h"
#include "slot/values.h"
#include "verdict/timings.h"
#include "wire/frame.h"

namespace assay {

// A lane with a timed case, over all turns.
struct TimedLane {
  LaneResult first;  // has the inputs' fillings
  LaneResult last;   // of a later turn, if there was one
  std::vector<TimeSeries> series;

  const LaneResult& latest() const { return last.done() ? last : first; }
};

// Whether the lane has results; a case that only could not be differentiated has.
bool has_outputs(const wire::Reply& reply);
// Whether the truth decides about the case, if its results differ.
bool is_judged_by_truth(const SlotConfig& config, const wire::JobT& entry);
// The memory that holds the results of a lane that answered.
LaneMemory memory_of(const LaneResult& ending);

// The record of one case under all value regimes.
class CaseRecord {
 public:
  CaseRecord(const SlotConfig& config, const wire::JobT& job, bool fresh)
      : config_(config), id_(job.test_case.id), attempt_(job.attempt.number), fresh_(fresh) {}

  std::uint64_t id() const { return id_; }

  enum class Next {
    nothing,
    truth,  // results differ: ask for the truth
    // A leaf is beyond the error bar: ask for more perturbed inputs before that is believed.
    more_perturbations
  };
  // Adds the result of one trial, or a better one for the same values. `endings` are in the order
  // of the configuration's lanes. Fails only if a reply points outside its arena.
  Result<Next> add(const wire::JobT& entry, const std::vector<LaneResult>& endings);

  // A trial ran; `position` counts all trials that the slot gave to its lanes.
  void ran_at(std::uint64_t position);

  // Adds a timed case. `lanes` are in the order of the configuration's lanes.
  void add_timed(const wire::JobT& entry, std::span<const TimedLane> lanes);

  // The finished wire::Record.
  wire::Bytes finish();

 private:
  struct Named {
    std::string values;
    std::string mutant;
    flatbuffers::Offset<wire::Trial> trial;
    double apart = 0;  // rounding errors between the lanes at the first look
  };
  void keep(const wire::JobT& entry, flatbuffers::Offset<wire::Trial> trial, double apart = 0);
  // Whether the first look at this trial saw results far apart.
  bool was_far_apart(const wire::JobT& entry) const;

  const SlotConfig& config_;
  std::uint64_t id_;
  std::uint32_t attempt_;
  bool fresh_;
  flatbuffers::FlatBufferBuilder builder_{4096};
  std::vector<Named> trials_;
  std::uint64_t compare_ns_ = 0;
  std::optional<std::uint64_t> ran_from_;
  std::uint64_t ran_to_ = 0;
};

}  // namespace assay
