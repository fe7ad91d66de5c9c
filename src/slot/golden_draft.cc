#include <algorithm>
#include <cmath>
#include <cstring>

#include "fill/fill.h"
#include "slot/arbiter.h"
#include "slot/digest.h"
#include "slot/golden.h"
#include "slot/golden_packing.h"
#include "slot/record.h"
#include "verdict/bar.h"

namespace assay {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

constexpr std::uint64_t kAlignment = 64;
constexpr int kTruthBits = 12;  // of the truth, beyond those of the result

std::uint64_t aligned(std::uint64_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

bool has_parts(const ComplexValues& values) {
  return std::any_of(values.begin(), values.end(), [](auto value) { return value.imag() != 0; });
}

// The trailing bits of a double that the truth of a result can lack: those that all results lack
// too, so that the truth stays exact where it is a value of the dtype, infinite or NaN.
int dropped_bits(DType dtype, const std::vector<double>& results) {
  const double ulp = ulp_of(dtype, 1);
  if (ulp == 0) return 0;
  const int drop = std::max(0, 52 - kTruthBits + std::ilogb(ulp));
  const std::uint64_t mask = (std::uint64_t{1} << drop) - 1;
  const bool narrow = std::all_of(results.begin(), results.end(),
                                  [mask](double result) { return (bits_of(result) & mask) == 0; });
  return narrow ? drop : 0;
}

// The elements from which the judge takes the scale of the tensor, whether the reference is exact,
// and by how many error bars (`units`) it is off.
std::vector<std::uint64_t> landmarks_of(const BarInput& input, const ComplexValues& results,
                                        const std::vector<double>& units) {
  const auto largest = [&](const auto& value) {
    std::uint64_t found = 0;
    for (std::uint64_t i = 1; i < units.size(); ++i) {
      if (value(i) > value(found)) found = i;
    }
    return found;
  };
  const auto size = [&](std::size_t i) {
    const double magnitude = std::abs(input.truth[i]);
    return std::isfinite(magnitude) ? magnitude : 0;
  };
  // The error of the reference in such units; infinite if only one of it and the truth is finite.
  const auto off = [&](std::size_t i, double unit) {
    const double apart = std::abs(results[i] - input.truth[i]);
    if (apart == 0) return 0.0;
    return std::isfinite(apart) ? apart / unit : INFINITY;
  };
  return {largest(size),
          largest([&](std::size_t i) { return off(i, ulp_of(input.dtype, size(i))); }),
          largest([&](std::size_t i) {
            const double errors = off(i, units[i]);
            return std::isfinite(errors) ? errors : 0;
          }),
          largest([&](std::size_t i) { return needs_float64(input.truth[i]) ? 1 : 0; })};
}

// The error that each element of a right result may have, against this reference, from its error
// bars.
std::vector<double> allowed_errors(const BarInput& input, const ComplexValues& results,
                                   std::vector<double> errors) {
  std::vector<double> own;
  double most = 0;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const double apart = std::abs(results[i] - input.truth[i]);
    own.push_back(std::isfinite(apart) ? apart : INFINITY);
    if (errors[i] > 0 && std::isfinite(own[i])) most = std::max(most, own[i] / errors[i]);
  }
  for (std::size_t i = 0; i < errors.size(); ++i) {
    errors[i] = errors[i] * std::max(kBarUnits, kBarFactor * most) + own[i];
  }
  return errors;
}

}  // namespace

GoldenDraft::Trial& GoldenDraft::trial_of(const std::string& values) {
  for (Trial& trial : trials_) {
    if (trial.values == values) return trial;
  }
  trials_.emplace_back().values = values;
  return trials_.back();
}

Result<bool> GoldenDraft::add(const SlotConfig& config, const wire::JobT& entry,
                              const LaneResult& ending) {
  Trial& trial = trial_of(entry.trial.values);
  if (entry.trial.perturbations > 0) {
    // If the truth cannot be had, for want of float64 perhaps, the results stay alone.
    if (ending.reply == nullptr || !has_outputs(*ending.reply)) return false;
    trial.has_evidence = true;
    ASSAY_CHECK(keep_evidence(ending, false, trial));
    ASSAY_CHECK(keep_evidence(ending, true, trial));
    return false;
  }
  trial = Trial();
  trial.values = entry.trial.values;
  if (ending.reply == nullptr) {
    trial.blame = *ending.blame;
    trial.exit = ending.exit;
    trial.reason = ending.reason;
    return false;
  }
  if (const Status kept = keep_results(ending, trial); !kept) {
    trial = Trial();
    trial.values = entry.trial.values;
    trial.blame = wire::Status::absent;
    trial.reason = "not recorded: " + kept.error().message;
    return false;
  }
  return has_outputs(*ending.reply) && is_judged_by_truth(config, entry);
}

Status GoldenDraft::keep_results(const LaneResult& ending, Trial& trial) {
  const LaneMemory memory = memory_of(ending);
  trial.reply = ending.bytes;
  wire::Reply& reply = *flatbuffers::GetMutableRoot<wire::Reply>(trial.reply.data());
  // What differs from run to run is of no use and compresses badly.
  reply.mutate_resident_kb(0);
  reply.mutate_grown_kb(0);
  if (auto* times = reply.mutable_nanoseconds(); times != nullptr) {
    for (flatbuffers::uoffset_t i = 0; i < times->size(); ++i) times->Mutate(i, 0);
  }
  ASSAY_TRY(const std::vector<Segment> segments, segments_of(reply));
  for (const Segment& segment : segments) {
    const std::uint64_t at = aligned(trial.data.size());
    trial.data.resize(at + segment.bytes());
    const std::span<std::byte> to(trial.data.data() + at, segment.bytes());
    if (segment.parameter == nullptr) {
      ASSAY_TRY(Tensor tensor, Tensor::of(*segment.leaf, memory));
      ASSAY_TRY(const TensorBytes bytes, tensor.bytes());
      std::copy(bytes.bytes.begin(), bytes.bytes.end(), to.begin());
    } else {
      if (!memory.arena->holds(segment.offset(), segment.bytes())) {
        return fail("a lane sent a parameter that lies outside its arena");
      }
      std::memcpy(to.data(), memory.arena->data() + segment.offset(), to.size());
    }
    segment.move_to(at);
  }
  return {};
}

// The results are those of the first run: a reference need not repeat itself bit for bit.
Status GoldenDraft::keep_evidence(const LaneResult& ending, bool gradients, Trial& trial) {
  const Truth truth = truth_of(*ending.reply, memory_of(ending), trial.values, gradients);
  const auto* reply = flatbuffers::GetRoot<wire::Reply>(trial.reply.data());
  const auto* leaves = gradients ? reply->gradients() : reply->outputs();
  for (flatbuffers::uoffset_t i = 0; leaves != nullptr && i < leaves->size(); ++i) {
    const wire::Leaf& leaf = *leaves->Get(i);
    if (!needs_truth(leaf)) continue;
    ASSAY_TRY(const std::vector<ComplexValues> values, evaluated(leaf, truth));
    if (values.empty()) continue;
    BarInput input = bar_of(leaf, truth);
    input.truth = values.front();
    input.moved.assign(values.begin() + 1, values.end());
    const ComplexValues results =
        results_of(leaf, std::span(trial.data).subspan(leaf.offset(), leaf.bytes()));
    const bool complex = is_complex(input.dtype) || has_parts(values.front()) || has_parts(results);
    const std::vector<double> of_results = parts_of(results, complex);
    const std::vector<double> of_truth = parts_of(values.front(), complex);
    const int drop = dropped_bits(input.dtype, of_results);
    Evidence& kept = trial.evidence.emplace_back();
    kept.gradient = gradients;
    kept.path = leaf.path()->str();
    kept.complex = complex;
    kept.drop = static_cast<std::uint8_t>(drop);
    for (std::size_t k = 0; k < of_truth.size(); ++k) {
      kept.steps.push_back(step_to(of_truth[k], of_results[k], drop));
    }
    for (const double distance : moved_distances(input)) {
      kept.moved.push_back(short_distance(distance));
    }
    std::vector<double> units = error_units(input);
    kept.landmarks = landmarks_of(input, results, units);
    kept.errors = allowed_errors(input, results, std::move(units));
  }
  return {};
}

// Packs one trial: `data` gets the tensors that are kept whole.
Offset<wire::GoldenTrial> GoldenDraft::pack(FlatBufferBuilder& builder, const Trial& trial,
                                            const wire::CaseSettingsT& settings, bool digest) {
  wire::Bytes reply = trial.reply;
  std::vector<std::uint8_t> data;
  std::vector<Offset<wire::Digest>> digests;
  std::vector<Offset<wire::Evidence>> evidence;
  std::vector<const wire::Leaf*> digested;
  if (!reply.empty()) {
    wire::Reply& root = *flatbuffers::GetMutableRoot<wire::Reply>(reply.data());
    // Checked by keep_results().
    const auto segments = segments_of(root);
    for (const Segment& segment : *segments) {
      const auto from = std::span(trial.data).subspan(segment.offset(), segment.bytes());
      if (digest && segment.parameter == nullptr && DigestPlan::is_for(*segment.leaf)) {
        const bool gradient = is_among(root.gradients(), segment.leaf);
        digests.push_back(pack_digest(builder, *segment.leaf, gradient, from, trial, settings));
        digested.push_back(segment.leaf);
        continue;
      }
      const std::uint64_t at = aligned(data.size());
      data.resize(at + from.size());
      to_planes(from, size_of(static_cast<DType>(segment.dtype())), data.data() + at);
      segment.move_to(at);
    }
    for (const Evidence& one : trial.evidence) {
      const wire::Leaf* leaf = leaf_at(one.gradient ? root.gradients() : root.outputs(), one.path);
      const bool part = std::find(digested.begin(), digested.end(), leaf) != digested.end();
      evidence.push_back(pack_evidence(builder, one, part ? leaf : nullptr, settings.seed));
    }
  }
  const auto values = builder.CreateString(trial.values);
  const auto reply_bytes = reply.empty() ? 0 : builder.CreateVector(reply);
  const auto data_bytes = builder.CreateVector(data);
  const auto evidence_vector = builder.CreateVector(evidence);
  const auto reason = builder.CreateString(trial.reason);
  const auto digest_vector = builder.CreateVector(digests);
  return wire::CreateGoldenTrial(builder, values, reply_bytes, data_bytes, evidence_vector,
                                 trial.has_evidence, trial.blame, trial.exit.signal,
                                 trial.exit.oom_killed, reason, digest_vector);
}

// Of a leaf with a digest (`digested`) only the evidence of its samples is kept; flags have none.
Offset<wire::Evidence> GoldenDraft::pack_evidence(FlatBufferBuilder& builder, const Evidence& one,
                                                  const wire::Leaf* digested, std::uint64_t seed) {
  std::vector<std::uint64_t> steps = one.steps;
  std::vector<std::uint64_t> moved = one.moved;
  if (digested != nullptr) {
    const DigestPlan plan = plan_of(*digested, seed, one.landmarks);
    const std::size_t parts = one.complex ? 2 : 1;
    steps.clear();
    moved.clear();
    for (std::uint64_t sample = 0; sample < kDigestSamples; ++sample) {
      const std::uint64_t at = plan.position(sample);
      moved.push_back(one.moved[at]);
      for (std::size_t k = 0; k < parts; ++k) steps.push_back(one.steps[at * parts + k]);
    }
    steps.resize(plan.reduced() * parts);
    moved.resize(plan.reduced());
  }
  const auto path = builder.CreateString(one.path);
  const auto truth_planes = builder.CreateVector(planes_of(steps, one.drop));
  const auto moved_planes = builder.CreateVector(planes_of(moved, one.complex ? 1 : 0));
  return wire::CreateEvidence(builder, one.gradient, path, truth_planes, moved_planes);
}

Offset<wire::Digest> GoldenDraft::pack_digest(FlatBufferBuilder& builder, const wire::Leaf& leaf,
                                              bool gradient, std::span<const std::byte> tensor,
                                              const Trial& trial,
                                              const wire::CaseSettingsT& settings) {
  const std::string path = flatbuffers::GetString(leaf.path());
  std::vector<std::uint64_t> landmarks;
  std::vector<double> errors;
  for (const Evidence& one : trial.evidence) {
    if (one.gradient != gradient || one.path != path) continue;
    landmarks = one.landmarks;
    errors = one.errors;
  }
  const DigestPlan plan = plan_of(leaf, settings.seed, landmarks);
  std::vector<std::uint8_t> samples;
  for (const std::byte byte : plan.samples(tensor)) {
    samples.push_back(static_cast<std::uint8_t>(byte));
  }
  std::vector<double> sums;
  std::vector<double> tolerances;
  if (!plan.exact()) {
    if (errors.empty()) {
      for (const std::complex<double>& value : results_of(leaf, tensor)) {
        const double size = std::isfinite(std::abs(value)) ? std::abs(value) : 0;
        errors.push_back(settings.atol + settings.rtol * size);
      }
    }
    sums = plan.sums(tensor);
    tolerances = plan.tolerances(errors);
  }
  const auto path_offset = builder.CreateString(path);
  const auto landmark_vector = builder.CreateVector(landmarks);
  const auto sample_bytes = builder.CreateVector(samples);
  const auto sum_vector = builder.CreateVector(sums);
  const auto tolerance_vector = builder.CreateVector(tolerances);
  return wire::CreateDigest(builder, gradient, path_offset, landmark_vector, sample_bytes,
                            sum_vector, tolerance_vector, plan.exact() ? checksum(tensor) : 0);
}

GoldenCase GoldenDraft::finish(const wire::CaseSettingsT& settings, bool digest) const {
  FlatBufferBuilder builder(4096);
  std::vector<Offset<wire::GoldenTrial>> trials;
  trials.reserve(trials_.size());
  for (const Trial& trial : trials_) trials.push_back(pack(builder, trial, settings, digest));
  const auto vector = builder.CreateVector(trials);
  builder.Finish(wire::CreateGolden(builder, wire::kMessageVersion, vector));
  const auto bytes = wire::bytes_of(builder);
  return {id_, GoldenBytes(bytes.begin(), bytes.end())};
}

}  // namespace assay
