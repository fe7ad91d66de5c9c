#pragma once

// Records as slots send them, for tests: lanes in any state, results that are really measured.

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "measure/measure.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

namespace assay::testing {

struct LaneParts {
  wire::Status status = wire::Status::ok;
  std::string phase;
  std::string error;
  std::vector<std::uint64_t> checksums{7};
  std::vector<std::vector<double>> values;  // of its inputs, listed; or filled by the default rule
  int signal = 0;
  std::int64_t grown_kb = 0;
  bool left_running = false;
  bool changed_state = false;
  bool self_only = false;
  bool oom_killed = false;
  std::string goldens;  // recorded by
};

struct LeafParts {
  DType left_dtype = DType::float32;
  DType right_dtype = DType::float32;
  std::vector<std::int64_t> left_shape;
  std::vector<std::int64_t> right_shape;
  wire::LeafKind left_kind = wire::LeafKind::tensor;
  wire::LeafKind right_kind = wire::LeafKind::tensor;
  bool left_missing = false;
  bool right_missing = false;
  bool scalar_equal = true;
  wire::Equality equality = wire::Equality::value;
  std::string path = "[0]";
  std::string left_text;
  bool measured = false;
  Measurement measurement;
  std::string broken_distribution;  // what a distribution that does not hold says
  double apart = std::numeric_limits<double>::infinity();  // in units of what rounding can do
};

struct RecordParts {
  LaneParts test;
  LaneParts reference;
  bool two_lanes = true;
  std::vector<LeafParts> outputs;
  std::vector<LeafParts> gradients;
  Tolerance tolerance{0.01, 0.01};
  std::uint64_t id = 1;
};

template <typename T>
std::span<const std::byte> raw(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

// Two tensors of one dtype and shape, measured.
template <typename T>
LeafParts measured_leaf(DType dtype, const std::vector<T>& left, const std::vector<T>& right,
                        Tolerance tolerance = {0.01, 0.01}) {
  LeafParts leaf;
  leaf.left_dtype = leaf.right_dtype = dtype;
  leaf.left_shape = leaf.right_shape = {static_cast<std::int64_t>(left.size())};
  leaf.measured = true;
  leaf.measurement = measure(dtype, raw(left), raw(right), tolerance);
  return leaf;
}

inline flatbuffers::Offset<wire::Offender> add_offender(flatbuffers::FlatBufferBuilder& builder,
                                                        const Offender& offender) {
  if (!offender) return 0;
  return wire::CreateOffender(builder, offender.index, offender.left[0], offender.left[1],
                              offender.right[0], offender.right[1]);
}

inline flatbuffers::Offset<wire::Measurement> add_measurement(
    flatbuffers::FlatBufferBuilder& builder, const Measurement& m) {
  const auto first = add_offender(builder, m.first);
  const auto worst = add_offender(builder, m.worst);
  const auto needed = builder.CreateVector(m.atol_needed.data(), m.atol_needed.size());
  return wire::CreateMeasurement(builder, m.count, m.bit_equal, m.beyond, m.max_abs, m.max_rel,
                                 needed, 0, m.nan_left_only, m.nan_right_only, m.both_nan,
                                 m.inf_disagree, first, worst);
}

inline flatbuffers::Offset<wire::LaneRecord> add_lane(flatbuffers::FlatBufferBuilder& builder,
                                                      const LaneParts& lane, const char* framework,
                                                      wire::Role role) {
  std::vector<flatbuffers::Offset<wire::Filling>> inputs;
  for (const std::uint64_t checksum : lane.checksums) {
    inputs.push_back(wire::CreateFilling(builder, 0, 0, 1, 1, 0, checksum));
  }
  if (!lane.values.empty()) inputs.clear();
  for (const std::vector<double>& values : lane.values) {
    const auto literal = builder.CreateVector(values);
    inputs.push_back(wire::CreateFilling(builder, 0, 0, 1, 1, literal, 7));
  }
  const auto name = builder.CreateString(framework);
  const auto phase = builder.CreateString(lane.phase);
  const auto error = builder.CreateString(lane.error);
  const auto fillings = builder.CreateVector(inputs);
  return wire::CreateLaneRecord(builder, name, lane.status, phase, error, fillings, 0, lane.signal,
                                0, lane.grown_kb, lane.oom_killed, role, 0, false, 0,
                                lane.left_running,
                                lane.goldens.empty() ? 0 : builder.CreateString(lane.goldens), 0,
                                lane.self_only, lane.changed_state);
}

inline flatbuffers::Offset<wire::Side> add_side(flatbuffers::FlatBufferBuilder& builder,
                                                DType dtype, const std::vector<std::int64_t>& shape,
                                                wire::LeafKind kind, bool missing,
                                                const std::string& value = "") {
  const auto extents = builder.CreateVector(shape);
  const auto text = builder.CreateString(value);
  return wire::CreateSide(builder, static_cast<std::uint8_t>(dtype), extents, kind, text, missing);
}

inline flatbuffers::Offset<wire::Comparison> add_leaf(flatbuffers::FlatBufferBuilder& builder,
                                                      const LeafParts& leaf) {
  const auto path = builder.CreateString(leaf.path);
  const auto left = add_side(builder, leaf.left_dtype, leaf.left_shape, leaf.left_kind,
                             leaf.left_missing, leaf.left_text);
  const auto right =
      add_side(builder, leaf.right_dtype, leaf.right_shape, leaf.right_kind, leaf.right_missing);
  flatbuffers::Offset<wire::Measurement> measurement;
  if (leaf.measured) measurement = add_measurement(builder, leaf.measurement);
  flatbuffers::Offset<wire::DrawMeasurement> distribution;
  if (!leaf.broken_distribution.empty()) {
    const auto name = builder.CreateString("kept");
    const auto statement = builder.CreateString(leaf.broken_distribution);
    distribution = wire::CreateDrawMeasurement(builder, name, 1, false, statement);
  }
  return wire::CreateComparison(builder, path, left, right, leaf.equality, measurement,
                                distribution, leaf.scalar_equal, 0, leaf.apart);
}

// As a slot decides whether there is something to compare.
inline bool has_results(const LaneParts& lane) {
  return lane.status == wire::Status::ok || lane.phase == "backward";
}

inline wire::Bytes make_record(const RecordParts& parts) {
  flatbuffers::FlatBufferBuilder builder;
  const auto test = add_lane(builder, parts.test, "paddle", wire::Role::test);
  flatbuffers::Offset<wire::LaneRecord> reference;
  if (parts.two_lanes)
    reference = add_lane(builder, parts.reference, "torch", wire::Role::reference);
  std::vector<flatbuffers::Offset<wire::Comparison>> outputs;
  std::vector<flatbuffers::Offset<wire::Comparison>> gradients;
  for (const LeafParts& leaf : parts.outputs) outputs.push_back(add_leaf(builder, leaf));
  for (const LeafParts& leaf : parts.gradients) gradients.push_back(add_leaf(builder, leaf));
  const auto output_vector = builder.CreateVector(outputs);
  const auto gradient_vector = builder.CreateVector(gradients);
  std::vector<flatbuffers::Offset<wire::Pair>> pairs;
  if (parts.two_lanes && has_results(parts.test) && has_results(parts.reference)) {
    pairs.push_back(
        wire::CreatePair(builder, 0, 1, output_vector, gradient_vector, !gradients.empty()));
  }
  std::vector<flatbuffers::Offset<wire::LaneRecord>> lanes{test};
  if (parts.two_lanes) lanes.push_back(reference);
  const auto lane_vector = builder.CreateVector(lanes);
  const auto pair_vector = builder.CreateVector(pairs);
  const auto values = builder.CreateString("usual");
  const auto trials = builder.CreateVector(std::vector<flatbuffers::Offset<wire::Trial>>{
      wire::CreateTrial(builder, values, lane_vector, pair_vector)});
  builder.Finish(wire::CreateRecord(builder, wire::kVersion, parts.id, 1, false, 0, trials,
                                    parts.tolerance.atol, parts.tolerance.rtol));
  const auto bytes = wire::bytes_of(builder);
  return {bytes.begin(), bytes.end()};
}

}  // namespace assay::testing
