#pragma once

// Artificial records and runs.

#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "store/store.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

namespace assay::testing {

// A record of one trial in two lanes, with the nanoseconds of building, forward, copying and
// backward. With a reason, the trial did not run in this value regime.
inline std::vector<std::uint8_t> record_of(const std::vector<std::uint64_t>& test_ns,
                                           const std::vector<std::uint64_t>& reference_ns,
                                           const std::string& values, const std::string& skipped) {
  flatbuffers::FlatBufferBuilder builder;
  const auto lane = [&](wire::Role role, const char* label, const std::vector<std::uint64_t>& ns) {
    const auto name = builder.CreateString(label);
    const auto times = builder.CreateVector(ns);
    wire::LaneRecordBuilder made(builder);
    made.add_role(role);
    made.add_name(name);
    made.add_nanoseconds(times);
    return made.Finish();
  };
  const std::vector<flatbuffers::Offset<wire::LaneRecord>> both{
      lane(wire::Role::test, "paddle", test_ns),
      lane(wire::Role::reference, "torch", reference_ns)};
  const auto lanes = builder.CreateVector(both);
  const auto values_text = builder.CreateString(values);
  const auto skipped_text = builder.CreateString(skipped);
  wire::TrialBuilder trial(builder);
  trial.add_values(values_text);
  trial.add_lanes(lanes);
  trial.add_skipped(skipped_text);
  const auto trials =
      builder.CreateVector(std::vector<flatbuffers::Offset<wire::Trial>>{trial.Finish()});
  wire::RecordBuilder record(builder);
  record.add_version(wire::kVersion);
  record.add_trials(trials);
  builder.Finish(record.Finish());
  const auto bytes = wire::bytes_of(builder);
  return {bytes.begin(), bytes.end()};
}

// The text of a case of one of a few APIs.
inline std::string made_text(std::uint64_t id) {
  return "paddle.f" + std::to_string(id % 7) + "(Tensor([" + std::to_string(id) + "], \"" +
         (id % 2 == 0 ? "float32" : "int8") + "\"))";
}

// The sums of a run, counted case by case.
inline Tally counted(RunReader& run) {
  Tally tally;
  const Status read = run.each_finished([&](const FinishedCase& finished) -> Status {
    tally.add(traits_of(finished.text), finished);
    return {};
  });
  if (!read) throw std::runtime_error(read.error().message);
  return tally;
}

// A random fault.
inline Fault made_fault(Outcome outcome, std::mt19937_64& random) {
  Fault fault;
  fault.outcome = outcome;
  fault.values = random() % 2 == 0 ? "usual" : "nan";
  fault.gradient = random() % 2 == 0;
  fault.leaf = "[" + std::to_string(random() % 3) + "]";
  fault.kinds = random() % 3 == 0 ? 0 : kValue;
  fault.special = random() % 2 == 0;
  fault.error = static_cast<double>(random() % 1000) / 7;
  fault.lane = "paddle";
  fault.raised = "an error,\twith a tab";
  fault.message = "off by \n 7";
  return fault;
}

// Finishes the case with a random verdict.
inline Result<bool> finish_somehow(RunClaims& store, std::uint64_t id, std::mt19937_64& random,
                                   std::uint64_t epoch = 1) {
  constexpr std::array kEnds{Outcome::pass, Outcome::pass, Outcome::mismatch, Outcome::crash,
                             Outcome::no_kernel};
  const std::vector<std::uint64_t> ns{random() % 1000, random() % 1000, random() % 1000, 1};
  const auto record = record_of(ns, ns, "wide", random() % 3 == 0 ? "too large" : "");
  FinishedCase made;
  made.id = id;
  made.text = made_text(id);
  made.epoch = epoch;
  made.verdict.outcome = kEnds[random() % kEnds.size()];
  made.verdict.flags = static_cast<std::uint8_t>(random() % 4 == 0 ? random() % 16 : 0);
  if (info(made.verdict.outcome).failed) {
    for (std::size_t i = random() % 4; i > 0; --i) {
      made.verdict.faults.push_back(made_fault(made.verdict.outcome, random));
    }
  }
  made.finished_ms = static_cast<std::int64_t>(random() % 600'000);
  made.took_us = random() % 10'000;
  if (random() % 5 != 0) made.record = record;
  return store.finish(made);
}

}  // namespace assay::testing
