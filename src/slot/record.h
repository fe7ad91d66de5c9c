#pragma once

// The record of one case: how it ended in each lane and, where it ended in results, how they
// differ.

#include <optional>
#include <vector>

#include "base/result.h"
#include "slot/batch.h"
#include "verdict/timings.h"
#include "wire/frame.h"

namespace assay {

// A lane in which a case is timed, turn after turn.
struct TimedLane {
  Ending first;  // tells how the inputs were filled
  Ending last;   // of a later turn, if there was one
  std::vector<TimeSeries> series;

  const Ending& latest() const { return last.done() ? last : first; }
};

// The record of one case under all values that it is run with.
class CaseRecord {
 public:
  CaseRecord(const SlotConfig& config, const wire::JobT& job, bool fresh)
      : config_(config), id_(job.test_case.id), attempt_(job.attempt.number), fresh_(fresh) {}

  std::uint64_t id() const { return id_; }

  enum class Next {
    nothing,
    truth,  // results are not alike: ask for the truth
    // One is beyond the error bar: before that is believed, ask for more perturbed inputs.
    more_perturbations
  };
  // Adds what came of one entry: a trial, or a better one of the same values. `endings` are those
  // of the lanes of the configuration, in its order. Fails only when a reply points outside its
  // arena.
  Result<Next> add(const wire::JobT& entry, const std::vector<Ending>& endings);

  // One of its entries ran; `place` counts all that the slot's lanes are given, in their order.
  void ran_at(std::uint64_t place);

  // What came of a case that was timed, in the lanes of the configuration.
  void add_timed(const wire::JobT& entry, std::span<const TimedLane> lanes);

  // A finished wire::Record.
  wire::Bytes finish();

 private:
  struct Named {
    std::string values;
    std::string mutant;
    flatbuffers::Offset<wire::Trial> trial;
  };
  void keep(const wire::JobT& entry, flatbuffers::Offset<wire::Trial> trial);

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
