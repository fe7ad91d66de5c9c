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

Offset<wire::LaneRecord> lane_record(FlatBufferBuilder& builder, const std::string& name,
                                     const Ending& ending, const Fillings* said) {
  const auto name_offset = builder.CreateString(name);
  if (ending.blame) {
    const auto reason = builder.CreateString(ending.reason);
    return wire::CreateLaneRecord(builder, name_offset, *ending.blame, 0, reason, 0, 0,
                                  ending.exit.signal, ending.exit.max_rss_kb, 0,
                                  ending.exit.oom_killed);
  }
  const wire::Reply& reply = *ending.reply;
  const auto phase = copy(builder, reply.phase());
  const auto error = copy(builder, reply.error());
  const auto inputs = copy_fillings(builder, reply.inputs(), said);
  const auto times = copy(builder, reply.nanoseconds());
  return wire::CreateLaneRecord(builder, name_offset, reply.status(), phase, error, inputs, times,
                                0, reply.resident_kb(), reply.grown_kb());
}

// Whether results came: also from a case that only could not be differentiated.
bool has_outputs(const Ending& ending) {
  if (ending.reply == nullptr) return false;
  const flatbuffers::String* phase = ending.reply->phase();
  return ending.reply->status() == wire::Status::ok ||
         (phase != nullptr && phase->string_view() == "backward");
}

LaneMemory memory_of(const Ending& ending) {
  LaneMemory memory{ending.arena.get(), nullptr};
  if (ending.lender != nullptr) {
    memory.read_lent = [lane = ending.lender](std::uint64_t address, std::span<std::byte> to) {
      return lane->read(address, to);
    };
  }
  return memory;
}

}  // namespace

Result<wire::Bytes> make_record(const SlotConfig& config, const SlotJob& job, bool fresh,
                                const std::vector<Ending>& endings) {
  FlatBufferBuilder builder(4096);
  const Ending& test = endings.front();
  const auto test_offset = lane_record(builder, config.test.framework, test, nullptr);
  Offset<wire::LaneRecord> reference_offset;
  Comparisons outputs;
  Comparisons gradients;
  bool gradients_compared = false;
  if (endings.size() > 1) {
    const Ending& reference = endings.back();
    reference_offset = lane_record(builder, config.reference->framework, reference,
                                   test.reply != nullptr ? test.reply->inputs() : nullptr);
    if (has_outputs(test) && has_outputs(reference)) {
      const Tolerance tolerance{config.atol, config.rtol};
      const Results left{test.reply->outputs(), memory_of(test)};
      const Results right{reference.reply->outputs(), memory_of(reference)};
      ASSAY_TRY(outputs, compare(builder, left, right, ResultRole::output, tolerance));
      // An API that one framework does not differentiate at all promises no gradient.
      gradients_compared = test.reply->differentiable() && reference.reply->differentiable();
      if (gradients_compared) {
        const Results left_gradients{test.reply->gradients(), left.memory};
        const Results right_gradients{reference.reply->gradients(), right.memory};
        ASSAY_TRY(gradients, compare(builder, left_gradients, right_gradients, ResultRole::gradient,
                                     tolerance));
      }
    }
  }
  const auto output_vector = builder.CreateVector(outputs);
  const auto gradient_vector = builder.CreateVector(gradients);
  builder.Finish(wire::CreateRecord(builder, wire::kVersion, job.id, job.attempt, fresh,
                                    test_offset, reference_offset, output_vector, gradient_vector,
                                    gradients_compared, config.atol, config.rtol, config.index));
  const auto bytes = wire::bytes_of(builder);
  return wire::Bytes(bytes.begin(), bytes.end());
}

}  // namespace assay
