#include "slot/record.h"

#include <algorithm>
#include <csignal>

#include "base/clock.h"
#include "slot/compare.h"
#include "slot/mask.h"

namespace assay {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

template <typename T>
Offset<flatbuffers::Vector<T>> copy(FlatBufferBuilder& builder,
                                    const flatbuffers::Vector<T>* from) {
  if (from == nullptr) return 0;
  return builder.CreateVector(from->data(), from->size());
}

Offset<flatbuffers::String> copy(FlatBufferBuilder& builder, const flatbuffers::String* from) {
  return from == nullptr ? builder.CreateString("") : builder.CreateString(from);
}

using Names = flatbuffers::Vector<Offset<flatbuffers::String>>;

Offset<Names> copy_names(FlatBufferBuilder& builder, const Names* from) {
  std::vector<Offset<flatbuffers::String>> copied;
  for (flatbuffers::uoffset_t i = 0; from != nullptr && i < from->size(); ++i) {
    copied.push_back(builder.CreateString(from->Get(i)));
  }
  return builder.CreateVector(copied);
}

using Fillings = flatbuffers::Vector<Offset<wire::Filling>>;

// Listed values are left out if `said` has them already.
Offset<Fillings> copy_fillings(FlatBufferBuilder& builder, const Fillings* from,
                               const Fillings* said) {
  std::vector<Offset<wire::Filling>> copied;
  for (flatbuffers::uoffset_t i = 0; from != nullptr && i < from->size(); ++i) {
    const wire::Filling* filling = from->Get(i);
    const bool repeated =
        said != nullptr && i < said->size() && said->Get(i)->checksum() == filling->checksum();
    const auto literal = repeated ? 0 : copy(builder, filling->literal());
    copied.push_back(wire::CreateFilling(builder, filling->kind(), filling->low(), filling->high(),
                                         filling->extent(), literal, filling->checksum()));
  }
  return builder.CreateVector(copied);
}

// One run of the case in a lane. The execution "twice" makes two: "paddle#1" and "paddle#2".
struct LaneRun {
  std::string name;
  wire::Role role = wire::Role::test;
  const LaneResult* ending = nullptr;
  const wire::Reply* reply = nullptr;  // null: the lane was blamed
  bool no_gradients = false;           // its framework cannot differentiate
};

std::vector<LaneRun> runs_of(const wire::LaneSpecT& spec, const LaneResult& ending) {
  std::vector<LaneRun> runs{{spec.label, spec.role, &ending, ending.reply, spec.no_gradients}};
  if (ending.reply == nullptr || ending.reply->again() == nullptr) return runs;
  for (const wire::Reply* again : *ending.reply->again()) {
    runs.push_back({spec.label, spec.role, &ending, again, spec.no_gradients});
  }
  for (std::size_t i = 0; i < runs.size() && runs.size() > 1; ++i) {
    runs[i].name += "#" + std::to_string(i + 1);
  }
  return runs;
}

using Timings = flatbuffers::Vector<Offset<wire::Timing>>;

Offset<wire::LaneRecord> lane_record(FlatBufferBuilder& builder, const LaneRun& run,
                                     const Fillings* said, Offset<Timings> timings = 0) {
  const LaneResult& ending = *run.ending;
  const auto name_offset = builder.CreateString(run.name);
  if (run.reply == nullptr) {
    const auto reason = builder.CreateString(ending.reason);
    const bool ran = *ending.blame != wire::Status::skipped;
    const auto times = ran ? builder.CreateVector(ending.ran_ns.data(), ending.ran_ns.size()) : 0;
    return wire::CreateLaneRecord(builder, name_offset, *ending.blame, 0, reason, 0, times,
                                  ending.exit.signal, ending.exit.max_rss_kb, 0,
                                  ending.exit.oom_killed, run.role);
  }
  const auto goldens = ending.goldens.empty() ? 0 : builder.CreateString(ending.goldens);
  const wire::Reply& reply = *run.reply;
  const auto phase = copy(builder, reply.phase());
  const auto error = copy(builder, reply.error());
  const auto inputs = copy_fillings(builder, ending.reply->inputs(), said);
  const auto times = copy(builder, reply.nanoseconds());
  const auto overwritten = copy_names(builder, reply.overwritten());
  return wire::CreateLaneRecord(
      builder, name_offset, reply.status(), phase, error, inputs, times, 0, reply.resident_kb(),
      reply.grown_kb(), false, run.role, overwritten, run.no_gradients, timings,
      reply.left_running(), goldens, reply.device_kb(), reply.self_only(), reply.changed_state());
}

Offset<Timings> copy_timings(FlatBufferBuilder& builder, std::span<const TimeSeries> all) {
  std::vector<Offset<wire::Timing>> copied;
  for (const TimeSeries& series : all) {
    const auto what = builder.CreateString(series.what);
    const auto samples = builder.CreateVector(series.nanoseconds);
    const auto turns = builder.CreateVector(series.turns);
    copied.push_back(
        wire::CreateTiming(builder, what, series.calls, samples, turns, series.turns_of_lane));
  }
  return builder.CreateVector(copied);
}

bool gave_outputs(const LaneRun& run) { return run.reply != nullptr && has_outputs(*run.reply); }

// The data that making a trial needs beside the endings.
struct TrialDraft {
  const SlotConfig& config;
  const wire::JobT& entry;
  bool suspicious = false;
  bool wrong = false;
  double apart = 0;
};

// Equal calls of one lane may differ by rounding. Results that were farther apart than so many
// rounding errors at the first look and agree at the second one are two different results.
constexpr double kTwoResults = 1e4;

// Elements of a result of a case that is too large for the truth. Such a result, a gradient of
// weights for example, may be a sum of millions of terms.
constexpr std::uint64_t kMostOfLargeCase = 1 << 24;

Result<Comparisons> compare_results(FlatBufferBuilder& builder, TrialDraft& request,
                                    const LaneRun& left, const LaneRun& right, bool gradients) {
  const wire::CaseSettingsT& settings = request.config.settings;
  const LaneMemory left_memory = memory_of(*left.ending);
  const LaneMemory right_memory = memory_of(*right.ending);
  const wire::Reply& test = *left.reply;
  const wire::Reply& reference = *right.reply;
  const wire::Reply* const evidence = right.ending->evidence;
  const Truth truth = truth_of(evidence != nullptr ? *evidence : reference, right_memory,
                               request.entry.trial.values, gradients);
  Look look;
  look.by_bar = settings.error_bar;
  if (request.entry.trial.perturbations > 0) look.truth = &truth;
  // Under exact values, and without tensors, a result may need no rounding at all. Only the truth
  // shows that.
  look.closer = settings.error_bar && request.entry.trial.values != "exact" &&
                reference.inputs() != nullptr && reference.inputs()->size() > 0;
  if (!is_judged_by_truth(request.config, request.entry)) look.most = kMostOfLargeCase;
  const Results left_results{gradients ? test.gradients() : test.outputs(), left_memory};
  const Results right_results{gradients ? reference.gradients() : reference.outputs(),
                              right_memory};
  ASSAY_TRY(Comparisons compared, compare(builder, left_results, right_results,
                                          gradients ? ResultRole::gradient : ResultRole::output,
                                          {settings.atol, settings.rtol}, &look));
  request.suspicious = request.suspicious || look.suspicious;
  request.wrong = request.wrong || look.wrong;
  request.apart = std::max(request.apart, look.apart);
  return compared;
}

// Compares two runs' results. Gradients that only one run has are compared with nothing, which
// counts as zeros. From a framework that cannot differentiate none are expected.
Result<Offset<wire::Pair>> compare_runs(FlatBufferBuilder& builder, TrialDraft& request,
                                        const std::vector<LaneRun>& runs, std::uint8_t left,
                                        std::uint8_t right) {
  ASSAY_TRY(const Comparisons outputs,
            compare_results(builder, request, runs[left], runs[right], false));
  const wire::Reply& test = *runs[left].reply;
  const wire::Reply& reference = *runs[right].reply;
  const bool both_ok = test.status() == wire::Status::ok && reference.status() == wire::Status::ok;
  const bool both_can = !runs[left].no_gradients && !runs[right].no_gradients;
  const bool compared =
      both_ok && both_can && (test.differentiable() || reference.differentiable());
  Comparisons gradients;
  if (compared) {
    ASSAY_TRY(gradients, compare_results(builder, request, runs[left], runs[right], true));
    ASSAY_TRY(const Comparisons masks,
              compare_masks(builder, test, memory_of(*runs[left].ending), reference));
    gradients.insert(gradients.end(), masks.begin(), masks.end());
  }
  const auto output_vector = builder.CreateVector(outputs);
  const auto gradient_vector = builder.CreateVector(gradients);
  return wire::CreatePair(builder, left, right, output_vector, gradient_vector, compared);
}

// The fault of a trial; null in a real one.
Offset<flatbuffers::String> mutant_of(FlatBufferBuilder& builder, const wire::JobT& entry) {
  return entry.trial.mutant.empty() ? 0 : builder.CreateString(entry.trial.mutant);
}

// Compares every run with every later one, if both have results.
Result<Offset<wire::Trial>> make_trial(FlatBufferBuilder& builder, TrialDraft& request,
                                       const std::vector<LaneResult>& endings) {
  std::vector<LaneRun> runs;
  for (std::size_t lane = 0; lane < endings.size(); ++lane) {
    for (LaneRun& run : runs_of(request.config.lanes[lane], endings[lane]))
      runs.push_back(std::move(run));
  }
  std::vector<Offset<wire::LaneRecord>> lanes;
  std::vector<Offset<wire::Pair>> pairs;
  const wire::Reply* first = endings.front().reply;
  lanes.reserve(runs.size());
  for (std::size_t run = 0; run < runs.size(); ++run) {
    lanes.push_back(
        lane_record(builder, runs[run], run > 0 && first != nullptr ? first->inputs() : nullptr));
  }
  for (std::size_t left = 0; left < runs.size(); ++left) {
    for (std::size_t right = left + 1; right < runs.size(); ++right) {
      if (!gave_outputs(runs[left]) || !gave_outputs(runs[right])) continue;
      ASSAY_TRY(const Offset<wire::Pair> pair,
                compare_runs(builder, request, runs, static_cast<std::uint8_t>(left),
                             static_cast<std::uint8_t>(right)));
      pairs.push_back(pair);
    }
  }
  const auto lane_vector = builder.CreateVector(lanes);
  const auto pair_vector = builder.CreateVector(pairs);
  return wire::CreateTrial(builder, builder.CreateString(request.entry.trial.values), lane_vector,
                           pair_vector, 0, mutant_of(builder, request.entry));
}

bool skipped(const LaneResult& ending) {
  if (ending.blame) return *ending.blame == wire::Status::skipped;
  return ending.reply->status() == wire::Status::skipped;
}

// Whether the lane lacked time or memory, or somebody killed it.
bool came_to_nothing(const LaneResult& ending) {
  if (ending.reply != nullptr) return ending.reply->status() == wire::Status::out_of_memory;
  return ending.blame == wire::Status::timed_out || ending.exit.signal == SIGKILL;
}

std::string reason_of(const LaneResult& ending) {
  if (ending.reply == nullptr || ending.reply->error() == nullptr) return {};
  return ending.reply->error()->str();
}

// A draw follows its distribution under usual values only; others are not judged.
bool is_drawn(const LaneResult& ending) {
  if (ending.reply == nullptr || ending.reply->outputs() == nullptr) return false;
  return std::any_of(
      ending.reply->outputs()->begin(), ending.reply->outputs()->end(),
      [](const wire::Leaf* leaf) { return leaf->kind() == wire::LeafKind::distribution; });
}

}  // namespace

bool has_outputs(const wire::Reply& reply) {
  const flatbuffers::String* phase = reply.phase();
  return reply.status() == wire::Status::ok ||
         (phase != nullptr && phase->string_view() == "backward");
}

bool is_judged_by_truth(const SlotConfig& config, const wire::JobT& entry) {
  // The truth of larger cases costs more than it tells: they test sizes, not values.
  constexpr std::uint64_t kMostForTruth = std::uint64_t{1} << 26;  // bytes of one lane for a case
  return config.settings.error_bar && entry.test_case.bytes <= kMostForTruth;
}

LaneMemory memory_of(const LaneResult& ending) {
  LaneMemory memory{ending.arena.get(), nullptr, ending.shared};
  if (ending.lender != nullptr) {
    memory.read_lent = [lane = ending.lender](std::uint64_t address, std::span<std::byte> to) {
      return lane->read(address, to);
    };
  }
  return memory;
}

Result<CaseRecord::Next> CaseRecord::add(const wire::JobT& entry,
                                         const std::vector<LaneResult>& endings) {
  const bool usual = entry.trial.values == "usual";
  if (!usual || !entry.trial.mutant.empty()) {
    const auto one = std::find_if(endings.begin(), endings.end(), skipped);
    const bool distribution = !usual && std::any_of(endings.begin(), endings.end(), is_drawn);
    if (one != endings.end() || distribution) {
      const std::string reason =
          distribution ? "a draw is judged by its distribution" : reason_of(*one);
      if (reason.empty()) return Next::nothing;
      const auto values = builder_.CreateString(entry.trial.values);
      const auto skipped = builder_.CreateString(reason);
      keep(entry, wire::CreateTrial(builder_, values, 0, 0, skipped, mutant_of(builder_, entry)));
      return Next::nothing;
    }
  }
  const bool answered = std::all_of(endings.begin(), endings.end(), [](const LaneResult& ending) {
    return ending.reply != nullptr && has_outputs(*ending.reply);
  });
  // If the reference cannot be computed in float64, the first trial stays and a tolerance judges.
  // A lane that lacked time or memory, or was killed, says nothing about that.
  if (entry.trial.perturbations > 0 && !answered && !std::ranges::any_of(endings, came_to_nothing))
    return Next::nothing;
  TrialDraft request{config_, entry};
  const std::int64_t began_ns = monotonic_ns();
  ASSAY_TRY(const Offset<wire::Trial> trial, make_trial(builder_, request, endings));
  compare_ns_ += static_cast<std::uint64_t>(monotonic_ns() - began_ns);
  // A call that is right only when it is repeated stays as the first look saw it.
  if (entry.trial.perturbations > 0 && !request.suspicious && was_far_apart(entry)) {
    return Next::nothing;
  }
  keep(entry, trial, request.apart);
  if (!is_judged_by_truth(config_, entry)) return Next::nothing;
  if (entry.trial.perturbations == 0) return request.suspicious ? Next::truth : Next::nothing;
  return request.wrong ? Next::more_perturbations : Next::nothing;
}

void CaseRecord::add_timed(const wire::JobT& entry, std::span<const TimedLane> lanes) {
  std::vector<Offset<wire::LaneRecord>> records;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const wire::LaneSpecT& spec = config_.lanes[i];
    const LaneResult& latest = lanes[i].latest();
    // Times come from all turns, input checksums from the first one.
    const LaneResult& told = latest.reply != nullptr ? lanes[i].first : latest;
    const LaneRun run{spec.label, spec.role, &told, latest.reply, spec.no_gradients};
    const auto timings = copy_timings(builder_, lanes[i].series);
    records.push_back(lane_record(builder_, run, nullptr, timings));
  }
  const auto vector = builder_.CreateVector(records);
  const auto values = builder_.CreateString(entry.trial.values);
  keep(entry, wire::CreateTrial(builder_, values, vector));
}

void CaseRecord::keep(const wire::JobT& entry, Offset<wire::Trial> trial, double apart) {
  for (Named& known : trials_) {
    if (known.values == entry.trial.values && known.mutant == entry.trial.mutant) {
      known.trial = trial;
      return;
    }
  }
  trials_.push_back({entry.trial.values, entry.trial.mutant, trial, apart});
}

bool CaseRecord::was_far_apart(const wire::JobT& entry) const {
  return std::ranges::any_of(trials_, [&entry](const Named& known) {
    return known.values == entry.trial.values && known.mutant == entry.trial.mutant &&
           known.apart > kTwoResults;
  });
}

void CaseRecord::ran_at(std::uint64_t position) {
  ran_from_ = std::min(ran_from_.value_or(position), position);
  ran_to_ = std::max(ran_to_, position);
}

wire::Bytes CaseRecord::finish() {
  std::vector<Offset<wire::Trial>> trials;
  trials.reserve(trials_.size());
  for (const Named& known : trials_) trials.push_back(known.trial);
  const auto vector = builder_.CreateVector(trials);
  builder_.Finish(wire::CreateRecord(builder_, wire::kVersion, id_, attempt_, fresh_, config_.index,
                                     vector, config_.settings.atol, config_.settings.rtol,
                                     compare_ns_, ran_from_.value_or(0), ran_to_));
  const auto bytes = wire::bytes_of(builder_);
  return {bytes.begin(), bytes.end()};
}

}  // namespace assay
