#include "slot/golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fill/fill.h"
#include "slot/digest.h"
#include "slot/golden_packing.h"
#include "slot/record.h"

namespace assay {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

// An arena gives back memory beyond this after each trial.
constexpr std::uint64_t kGoldenArenaKeep = std::uint64_t{1} << 28;

std::span<const std::uint8_t> span_of(const flatbuffers::Vector<std::uint8_t>* bytes) {
  if (bytes == nullptr) return {};
  return {bytes->data(), bytes->size()};
}

bool have_one_shape(const wire::Leaf& left, const wire::Leaf& right) {
  const auto* a = left.shape();
  const auto* b = right.shape();
  return a != nullptr && b != nullptr && std::equal(a->begin(), a->end(), b->begin(), b->end());
}

// Makes the leaf a tensor of so many elements that lie there.
void shrink_to(wire::Leaf& leaf, std::uint64_t count, std::uint64_t at) {
  auto* shape = leaf.mutable_shape();
  for (flatbuffers::uoffset_t i = 0; i < shape->size(); ++i) {
    shape->Mutate(i, i == 0 ? static_cast<std::int64_t>(count) : 1);
  }
  leaf.mutate_bytes(count * size_of(static_cast<DType>(leaf.dtype())));
  leaf.mutate_offset(at);
}

// An element of a flag that shows a difference: NaN, or all bits for a dtype without NaN.
void set_flag(std::byte* element, DType dtype) {
  const bool whole =
      info(dtype).kind == DTypeClass::boolean || info(dtype).kind == DTypeClass::integer;
  std::memset(element, whole ? 1 : 0xFF, dtype == DType::boolean ? 1 : size_of(dtype));
}

}  // namespace

Result<GoldenLane> GoldenLane::open(const wire::LaneSpecT& spec,
                                    const wire::CaseSettingsT& settings) {
  ASSAY_TRY(GoldenFolder folder, GoldenFolder::open(spec.goldens, spec.goldens_url));
  ASSAY_TRY(wire::Arena arena, wire::Arena::create());
  GoldenLane lane(std::move(folder), std::make_shared<wire::Arena>(std::move(arena)));
  const nlohmann::json& facts = lane.folder_.facts();
  lane.recorded_by_ = "assay " + facts.value("version.assay", "");
  lane.seed_ = settings.seed;
  const std::string seed = facts.value("seed", "");
  if (seed != std::to_string(settings.seed)) {
    lane.refusal_ = fmt::format("the goldens were recorded with --random_seed={}, this run has {}",
                                seed, settings.seed);
  }
  return lane;
}

Result<LaneResult> GoldenLane::ending_of(const wire::JobT& entry, LaneResult& test) {
  arena_->clear();
  arena_->trim(kGoldenArenaKeep);
  std::string why = refusal_;
  if (why.empty()) {
    auto found = recorded(entry, test);
    if (found && *found) return std::move(**found);
    why = found ? fmt::format("the goldens lack this case under {} values", entry.trial.values)
                : found.error().message;
  }
  LaneResult absent;
  absent.blame = wire::Status::absent;
  absent.reason = std::move(why);
  return absent;
}

Result<std::optional<LaneResult>> GoldenLane::recorded(const wire::JobT& entry, LaneResult& test) {
  ASSAY_TRY(const std::vector<GoldenBytes> recordings, folder_.find(entry.test_case.id));
  for (const GoldenBytes& bytes : recordings) {
    const auto golden = wire::open<wire::Golden>(bytes);
    if (!golden) return fail("a golden is damaged; record this case again");
    for (const wire::GoldenTrial* trial : *(*golden)->trials()) {
      if (flatbuffers::GetStringView(trial->values()) != entry.trial.values) continue;
      const bool with_evidence = entry.trial.perturbations > 0;
      ASSAY_TRY(LaneResult ending, unpack(*trial, with_evidence));
      if (ending.reply != nullptr) ASSAY_CHECK(digest(*trial, ending, test));
      if (ending.reply != nullptr && with_evidence) ASSAY_CHECK(unpack_evidence(*trial, ending));
      return std::optional<LaneResult>(std::move(ending));
    }
  }
  return std::optional<LaneResult>();
}

Result<LaneResult> GoldenLane::unpack(const wire::GoldenTrial& trial, bool with_evidence) {
  LaneResult ending;
  ending.goldens = recorded_by_;
  if (trial.reply() == nullptr || (with_evidence && !trial.has_evidence())) {
    ending.blame = trial.reply() == nullptr ? trial.blame() : wire::Status::skipped;
    ending.reason = flatbuffers::GetString(trial.reason());
    ending.exit.signal = trial.signal();
    ending.exit.oom_killed = trial.oom_killed();
    return ending;
  }
  const auto reply_bytes = span_of(trial.reply());
  ending.bytes.assign(reply_bytes.begin(), reply_bytes.end());
  ASSAY_TRY(ending.reply, wire::open<wire::Reply>(ending.bytes));
  wire::Reply& reply = *flatbuffers::GetMutableRoot<wire::Reply>(ending.bytes.data());
  const auto data = span_of(trial.data());
  ASSAY_TRY(const std::vector<Segment> segments, segments_of(reply));
  const auto is_digested = [&](const Segment& segment) {
    if (trial.digests() == nullptr || segment.parameter != nullptr) return false;
    return std::any_of(trial.digests()->begin(), trial.digests()->end(), [&](const auto* one) {
      return flatbuffers::GetStringView(one->path()) ==
                 flatbuffers::GetStringView(segment.leaf->path()) &&
             one->gradient() == is_among(reply.gradients(), segment.leaf);
    });
  };
  for (const Segment& segment : segments) {
    if (is_digested(segment)) continue;
    if (segment.offset() > data.size() || segment.bytes() > data.size() - segment.offset()) {
      return fail("a golden is damaged; record this case again");
    }
    ASSAY_TRY(const std::uint64_t at, arena_->reserve(segment.bytes()));
    from_planes(data.data() + segment.offset(), size_of(static_cast<DType>(segment.dtype())),
                {arena_->data() + at, segment.bytes()});
    segment.move_to(at);
  }
  ending.arena = arena_;
  return ending;
}

// Copies the results of a lane to the memory of the goldens.
Status GoldenLane::move_here(LaneResult& ending) {
  const LaneMemory memory = memory_of(ending);
  wire::Reply& reply = *flatbuffers::GetMutableRoot<wire::Reply>(ending.bytes.data());
  ASSAY_TRY(const std::vector<Segment> segments, segments_of(reply));
  for (const Segment& segment : segments) {
    ASSAY_TRY(Tensor tensor, Tensor::of(*segment.leaf, memory));
    ASSAY_TRY(const TensorBytes bytes, tensor.bytes());
    ASSAY_TRY(const std::uint64_t at, arena_->reserve(segment.bytes()));
    std::copy(bytes.bytes.begin(), bytes.bytes.end(), arena_->data() + at);
    segment.move_to(at);
  }
  ending.arena = arena_;
  ending.lender = nullptr;
  ending.shared = nullptr;
  return {};
}

// Reduces the tensors of both sides where the golden is a digest. Tensors of another shape stay:
// their values are not compared.
Status GoldenLane::digest(const wire::GoldenTrial& trial, LaneResult& recorded, LaneResult& test) {
  if (trial.digests() == nullptr || trial.digests()->size() == 0) return {};
  if (test.reply != nullptr) ASSAY_CHECK(move_here(test));
  for (const wire::Digest* one : *trial.digests()) {
    const auto leaf_of = [&](LaneResult& side) -> wire::Leaf* {
      if (side.reply == nullptr) return nullptr;
      const auto* leaves = one->gradient() ? side.reply->gradients() : side.reply->outputs();
      const std::string_view path = flatbuffers::GetStringView(one->path());
      // The reply lies in bytes of this ending.
      return const_cast<wire::Leaf*>(leaf_at(leaves, path));  // NOLINT(*-const-cast)
    };
    wire::Leaf* const of_golden = leaf_of(recorded);
    if (of_golden == nullptr) return fail("a golden is damaged; record this case again");
    ASSAY_CHECK(reduce(*one, *of_golden, leaf_of(test)));
  }
  return {};
}

Status GoldenLane::reduce(const wire::Digest& kept, wire::Leaf& recorded, wire::Leaf* test) {
  const auto damaged = [] { return fail("a golden is damaged; record this case again"); };
  if (!DigestPlan::is_for(recorded)) return damaged();
  if (test != nullptr && !have_one_shape(*test, recorded)) return {};
  const std::size_t size = size_of(static_cast<DType>(recorded.dtype()));
  std::vector<std::uint64_t> landmarks;
  if (const auto* places = kept.landmarks()) landmarks.assign(places->begin(), places->end());
  const bool beyond = std::any_of(landmarks.begin(), landmarks.end(),
                                  [&](std::uint64_t at) { return at >= recorded.bytes() / size; });
  if (beyond || landmarks.size() > kDigestSamples) return damaged();
  const DigestPlan plan = plan_of(recorded, seed_, landmarks);
  const auto samples = span_of(kept.samples());
  if (samples.size() != kDigestSamples * size) return damaged();
  ASSAY_TRY(const std::uint64_t at, arena_->reserve(plan.reduced() * size));
  std::memset(arena_->data() + at, 0, plan.reduced() * size);
  std::memcpy(arena_->data() + at, samples.data(), samples.size());
  if (test != nullptr) {
    const auto dtype = static_cast<DType>(test->dtype());
    const std::span<const std::byte> tensor(arena_->data() + test->offset(), test->bytes());
    const DigestPlan of_test(dtype, tensor.size() / size_of(dtype), recorded.equality(), seed_,
                             flatbuffers::GetStringView(recorded.path()), landmarks);
    const std::vector<std::byte> found = of_test.samples(tensor);
    ASSAY_TRY(const std::uint64_t to, arena_->reserve(plan.reduced() * size_of(dtype)));
    std::byte* const elements = arena_->data() + to;
    std::memset(elements, 0, plan.reduced() * size_of(dtype));
    std::copy(found.begin(), found.end(), elements);
    const auto flag = [&](std::uint64_t number) {
      set_flag(elements + (kDigestSamples + number) * size_of(dtype), dtype);
    };
    // Of another dtype, the samples tell enough beside the mismatch of dtypes.
    if (dtype == static_cast<DType>(recorded.dtype()) && plan.exact()) {
      if (checksum(tensor) != kept.checksum()) flag(0);
    } else if (dtype == static_cast<DType>(recorded.dtype())) {
      const auto* sums = kept.sums();
      const auto* tolerances = kept.tolerances();
      if (sums == nullptr || tolerances == nullptr || sums->size() != kDigestBlocks ||
          tolerances->size() != kDigestBlocks) {
        return damaged();
      }
      const std::vector<double> of_tensor = plan.sums(tensor);
      for (flatbuffers::uoffset_t i = 0; i < kDigestBlocks; ++i) {
        if (std::abs(of_tensor[i] - sums->Get(i)) > tolerances->Get(i)) flag(i);
      }
    }
    shrink_to(*test, plan.reduced(), to);
  }
  shrink_to(recorded, plan.reduced(), at);
  return {};
}

// Makes a reply with the evaluations that the judge reads: the truth, and one with perturbed inputs
// that lies as far from it as the farthest one did. The latter stands twice, because some regimes
// do not count odd perturbations.
Status GoldenLane::unpack_evidence(const wire::GoldenTrial& trial, LaneResult& ending) {
  FlatBufferBuilder builder;
  std::vector<Offset<wire::Leaf>> truths[2];
  std::vector<Offset<wire::Leaf>> perturbed[2];
  for (flatbuffers::uoffset_t i = 0; trial.evidence() != nullptr && i < trial.evidence()->size();
       ++i) {
    const wire::Evidence& one = *trial.evidence()->Get(i);
    const auto* leaves = one.gradient() ? ending.reply->gradients() : ending.reply->outputs();
    const std::string_view path = flatbuffers::GetStringView(one.path());
    const wire::Leaf* leaf = nullptr;
    for (flatbuffers::uoffset_t k = 0; leaves != nullptr && k < leaves->size(); ++k) {
      const bool same = flatbuffers::GetStringView(leaves->Get(k)->path()) == path;
      if (same && needs_truth(*leaves->Get(k))) leaf = leaves->Get(k);
    }
    const auto truth = span_of(one.truth());
    const auto moved = span_of(one.moved());
    if (leaf == nullptr || truth.empty() || moved.empty() || truth[0] > 52) {
      return fail("a golden is damaged; record this case again");
    }
    const bool complex = moved[0] != 0;
    const std::span<const std::byte> bytes(arena_->data() + leaf->offset(), leaf->bytes());
    const std::vector<double> results = parts_of(results_of(*leaf, bytes), complex);
    const std::size_t parts = complex ? 2 : 1;
    if (truth.size() != 1 + 8 * results.size() || moved.size() != 1 + 8 * results.size() / parts) {
      return fail("a golden is damaged; record this case again");
    }
    const std::vector<std::uint64_t> steps = numbers_in(*one.truth());
    const std::vector<std::uint64_t> distances = numbers_in(*one.moved());
    const std::uint64_t size = results.size() * sizeof(double);
    ASSAY_TRY(const std::uint64_t truth_at, arena_->reserve(size));
    ASSAY_TRY(const std::uint64_t moved_at, arena_->reserve(size));
    for (std::size_t k = 0; k < results.size(); ++k) {
      const double value = step_from(results[k], steps[k], truth[0]);
      const double far = k % parts == 0 ? at_distance(value, distances[k / parts]) : value;
      std::memcpy(arena_->data() + truth_at + k * sizeof value, &value, sizeof value);
      std::memcpy(arena_->data() + moved_at + k * sizeof far, &far, sizeof far);
    }
    const auto dtype = static_cast<std::uint8_t>(complex ? DType::complex128 : DType::float64);
    const auto leaf_at = [&](std::uint64_t at) {
      const auto path_offset = builder.CreateString(one.path());
      const auto shape = builder.CreateVector(leaf->shape()->data(), leaf->shape()->size());
      return wire::CreateLeaf(builder, path_offset, wire::LeafKind::tensor, dtype, shape, at, size);
    };
    const std::size_t role = one.gradient() ? 1 : 0;
    truths[role].push_back(leaf_at(truth_at));
    perturbed[role].push_back(leaf_at(moved_at));
  }
  const auto evaluation = [&](const auto& leaves) {
    const auto outputs = builder.CreateVector(leaves[0]);
    const auto gradients = builder.CreateVector(leaves[1]);
    return wire::CreateEvaluation(builder, outputs, gradients);
  };
  const auto truth = evaluation(truths);
  const auto moved = evaluation(perturbed);
  const auto evaluations =
      builder.CreateVector(std::vector<Offset<wire::Evaluation>>{truth, moved, moved});
  wire::ReplyBuilder reply(builder);
  reply.add_evaluations(evaluations);
  builder.Finish(reply.Finish());
  const auto bytes = wire::bytes_of(builder);
  ending.evidence_bytes.assign(bytes.begin(), bytes.end());
  ending.evidence = flatbuffers::GetRoot<wire::Reply>(ending.evidence_bytes.data());
  return {};
}

}  // namespace assay
