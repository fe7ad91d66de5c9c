#include "slot/record.h"

#include "slot/compare.h"

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

using Fillings = flatbuffers::Vector<Offset<wire::Filling>>;

// Listed values are not repeated where `said` has them already.
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

// One run of the case in a lane: "twice" makes two of them, "paddle#1" and "paddle#2".
struct LaneRun {
  std::string name;
  wire::Role role = wire::Role::test;
  const Ending* ending = nullptr;
  const wire::Reply* reply = nullptr;  // none: the lane was blamed
};

std::vector<LaneRun> runs_of(const wire::LaneSpecT& spec, const Ending& ending) {
  std::vector<LaneRun> runs{{spec.label, spec.role, &ending, ending.reply}};
  if (ending.reply == nullptr || ending.reply->again() == nullptr) return runs;
  for (const wire::Reply* again : *ending.reply->again()) {
    runs.push_back({spec.label, spec.role, &ending, again});
  }
  for (std::size_t i = 0; i < runs.size() && runs.size() > 1; ++i) {
    runs[i].name += "#" + std::to_string(i + 1);
  }
  return runs;
}

Offset<wire::LaneRecord> lane_record(FlatBufferBuilder& builder, const LaneRun& run,
                                     const Fillings* said) {
  const Ending& ending = *run.ending;
  const auto name_offset = builder.CreateString(run.name);
  if (run.reply == nullptr) {
    const auto reason = builder.CreateString(ending.reason);
    return wire::CreateLaneRecord(builder, name_offset, *ending.blame, 0, reason, 0, 0,
                                  ending.exit.signal, ending.exit.max_rss_kb, 0,
                                  ending.exit.oom_killed, run.role);
  }
  const wire::Reply& reply = *run.reply;
  const auto phase = copy(builder, reply.phase());
  const auto error = copy(builder, reply.error());
  const auto inputs = copy_fillings(builder, ending.reply->inputs(), said);
  const auto times = copy(builder, reply.nanoseconds());
  return wire::CreateLaneRecord(builder, name_offset, reply.status(), phase, error, inputs, times,
                                0, reply.resident_kb(), reply.grown_kb(), false, run.role);
}

// Whether results came: also from a case that only could not be differentiated.
bool has_outputs(const LaneRun& run) {
  if (run.reply == nullptr) return false;
  const flatbuffers::String* phase = run.reply->phase();
  return run.reply->status() == wire::Status::ok ||
         (phase != nullptr && phase->string_view() == "backward");
}

LaneMemory memory_of(const Ending& ending) {
  LaneMemory memory{ending.arena.get(), nullptr, ending.shared};
  if (ending.lender != nullptr) {
    memory.read_lent = [lane = ending.lender](std::uint64_t address, std::span<std::byte> to) {
      return lane->read(address, to);
    };
  }
  return memory;
}

// Compares two runs' results, those of gradients only where both could differentiate.
Result<Offset<wire::Pair>> compare_runs(FlatBufferBuilder& builder,
                                        const wire::CaseSettingsT& settings,
                                        const std::vector<LaneRun>& runs, std::uint8_t left,
                                        std::uint8_t right) {
  const Tolerance tolerance{settings.atol, settings.rtol};
  const wire::Reply& left_reply = *runs[left].reply;
  const wire::Reply& right_reply = *runs[right].reply;
  const LaneMemory left_memory = memory_of(*runs[left].ending);
  const LaneMemory right_memory = memory_of(*runs[right].ending);
  ASSAY_TRY(const Comparisons outputs,
            compare(builder, {left_reply.outputs(), left_memory},
                    {right_reply.outputs(), right_memory}, ResultRole::output, tolerance));
  // An API that one framework does not differentiate at all promises no gradient.
  const bool both = left_reply.differentiable() && right_reply.differentiable();
  Comparisons gradients;
  if (both) {
    ASSAY_TRY(gradients,
              compare(builder, {left_reply.gradients(), left_memory},
                      {right_reply.gradients(), right_memory}, ResultRole::gradient, tolerance));
  }
  const auto output_vector = builder.CreateVector(outputs);
  const auto gradient_vector = builder.CreateVector(gradients);
  return wire::CreatePair(builder, left, right, output_vector, gradient_vector, both);
}

// Every run against every later one, where both came to results.
Result<Offset<wire::Trial>> make_trial(FlatBufferBuilder& builder, const SlotConfig& config,
                                       const std::vector<Ending>& endings) {
  std::vector<LaneRun> runs;
  for (std::size_t lane = 0; lane < endings.size(); ++lane) {
    for (LaneRun& run : runs_of(config.lanes[lane], endings[lane])) runs.push_back(std::move(run));
  }
  std::vector<Offset<wire::LaneRecord>> lanes;
  std::vector<Offset<wire::Pair>> pairs;
  const wire::Reply* first = endings.front().reply;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    lanes.push_back(
        lane_record(builder, runs[run], run > 0 && first != nullptr ? first->inputs() : nullptr));
  }
  for (std::size_t left = 0; left < runs.size(); ++left) {
    for (std::size_t right = left + 1; right < runs.size(); ++right) {
      if (!has_outputs(runs[left]) || !has_outputs(runs[right])) continue;
      ASSAY_TRY(const Offset<wire::Pair> pair,
                compare_runs(builder, config.settings, runs, static_cast<std::uint8_t>(left),
                             static_cast<std::uint8_t>(right)));
      pairs.push_back(pair);
    }
  }
  const auto lane_vector = builder.CreateVector(lanes);
  const auto pair_vector = builder.CreateVector(pairs);
  return wire::CreateTrial(builder, builder.CreateString("usual"), lane_vector, pair_vector);
}

}  // namespace

Result<wire::Bytes> make_record(const SlotConfig& config, const SlotJob& job, bool fresh,
                                const std::vector<Ending>& endings) {
  FlatBufferBuilder builder(4096);
  ASSAY_TRY(const Offset<wire::Trial> trial, make_trial(builder, config, endings));
  const auto trials = builder.CreateVector(std::vector<Offset<wire::Trial>>{trial});
  builder.Finish(wire::CreateRecord(builder, wire::kVersion, job.id, job.attempt, fresh,
                                    config.index, trials, config.settings.atol,
                                    config.settings.rtol));
  const auto bytes = wire::bytes_of(builder);
  return wire::Bytes(bytes.begin(), bytes.end());
}

}  // namespace assay
