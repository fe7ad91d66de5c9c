#pragma once

// Results of a lane, recorded for later runs: packing them in the run that records, and putting
// them in the place of a lane's answer in the run that compares.
//
// A lane's reply and tensors are kept bit for bit. Of the truth the judge needs two numbers for
// each element: the true value, and how far it moves under perturbed inputs. The true value is kept
// to 2^-13 of a unit in the last place of the result (float64 results: exactly), the distance to
// one part in 512.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "goldens/folder.h"
#include "slot/batch.h"
#include "slot/config.h"

namespace assay {

// Evaluations with perturbed inputs that a recording asks for: what a retry would ask for.
inline constexpr std::uint32_t kRecordedPerturbations = 12;

// The results of one case on their way to a folder of goldens.
class GoldenDraft {
 public:
  explicit GoldenDraft(CaseId id) : id_(id) {}

  CaseId id() const { return id_; }
  // Adds how a trial ended in the recorded lane. Returns whether the trial should run once more,
  // with kRecordedPerturbations. Fails if a reply points outside its arena.
  Result<bool> add(const SlotConfig& config, const wire::JobT& entry, const LaneResult& ending);
  // The golden; with `digest`, large tensors become digests. For digests without a truth the
  // tolerances of the run count.
  GoldenCase finish(const wire::CaseSettingsT& settings, bool digest) const;

 private:
  struct Evidence {
    bool gradient = false;
    std::string path;
    bool complex = false;
    std::uint8_t drop = 0;
    std::vector<std::uint64_t> steps;  // a real number each, or two for a complex one
    std::vector<std::uint64_t> moved;  // of each element
    std::vector<double> errors;        // that a right result may have, by element
    std::vector<std::uint64_t> landmarks;
  };
  struct Trial {
    std::string values;
    wire::Bytes reply;  // its leaves lie in `data`
    std::vector<std::byte> data;
    std::vector<Evidence> evidence;
    bool has_evidence = false;
    wire::Status blame = wire::Status::ok;
    LaneExit exit;
    std::string reason;
  };
  using Builder = flatbuffers::FlatBufferBuilder;
  static flatbuffers::Offset<wire::GoldenTrial> pack(Builder& builder, const Trial& trial,
                                                     const wire::CaseSettingsT& settings,
                                                     bool digest);
  static flatbuffers::Offset<wire::Evidence> pack_evidence(Builder& builder, const Evidence& one,
                                                           const wire::Leaf* digested,
                                                           std::uint64_t seed);
  static flatbuffers::Offset<wire::Digest> pack_digest(Builder& builder, const wire::Leaf& leaf,
                                                       bool gradient,
                                                       std::span<const std::byte> tensor,
                                                       const Trial& trial,
                                                       const wire::CaseSettingsT& settings);
  static Status keep_results(const LaneResult& ending, Trial& trial);
  static Status keep_evidence(const LaneResult& ending, bool gradients, Trial& trial);
  Trial& trial_of(const std::string& values);

  CaseId id_;
  std::vector<Trial> trials_;
};

// Stands for a lane whose results were recorded.
class GoldenLane {
 public:
  static Result<GoldenLane> open(const wire::LaneSpecT& spec, const wire::CaseSettingsT& settings);

  // How the trial ended when it was recorded; with wire::Status::absent if it was not. The results
  // are valid until the next call. `test` is how it ended in the lane under test, and gets its
  // results in the form of a digest where the golden is one. Fails only if memory cannot be had, or
  // if the reply of `test` points outside its arena.
  Result<LaneResult> ending_of(const wire::JobT& entry, LaneResult& test);

 private:
  GoldenLane(GoldenFolder folder, std::shared_ptr<wire::Arena> arena)
      : folder_(std::move(folder)), arena_(std::move(arena)) {}
  Result<std::optional<LaneResult>> recorded(const wire::JobT& entry, LaneResult& test);
  Result<LaneResult> unpack(const wire::GoldenTrial& trial, bool with_evidence);
  Status digest(const wire::GoldenTrial& trial, LaneResult& recorded, LaneResult& test);
  Status move_here(LaneResult& ending);
  Status reduce(const wire::Digest& kept, wire::Leaf& recorded, wire::Leaf* test);
  Status unpack_evidence(const wire::GoldenTrial& trial, LaneResult& ending);

  GoldenFolder folder_;
  std::shared_ptr<wire::Arena> arena_;
  std::uint64_t seed_ = 0;
  std::string recorded_by_;
  std::string refusal_;  // why no result of this folder can be used; empty: they can
};

}  // namespace assay
