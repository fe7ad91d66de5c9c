#pragma once

// A run on disk, made without an engine, and programs that look at what reports make of it.

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "../store/folder.h"
#include "base/fd.h"
#include "base/process.h"
#include "case/canonical.h"
#include "case/parser.h"
#include "fill/fill.h"
#include "store/open_store.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

namespace assay::testing {

// How a lane would have filled a tensor: by rule, or with these values.
struct InputParts {
  FillRule rule;
  std::vector<double> literal;
  bool dropped = false;  // the record has an empty list in place of the values
};

class StoredRun {
 public:
  StoredRun() : store_(must(open_store(folder_.path(), StoreMode::create))) {}

  Store& store() { return *store_; }
  const Folder& folder() const { return folder_; }

  std::uint64_t add(const std::string& text, const Verdict& verdict,
                    std::span<const std::uint8_t> record = {}, std::uint64_t took_us = 0) {
    const std::uint64_t id = plan(text);
    FinishedCase finished;
    finished.id = id;
    finished.text = text;
    finished.verdict = verdict;
    finished.finished_ms = 1'700'000'000'000;
    finished.record.assign(record.begin(), record.end());
    finished.took_us = took_us;
    must(store_->finish(finished));
    return id;
  }

  std::uint64_t plan(const std::string& text) {
    const std::uint64_t id = case_id(text);
    must(store_->add_case(wire::planned_case(id, text)));
    return id;
  }

  // Elements of each tensor of the case as the inputs say, in memory.
  static std::vector<std::vector<std::byte>> elements(const std::string& text,
                                                      const std::vector<InputParts>& inputs,
                                                      std::uint64_t seed) {
    Case parsed;
    if (!parse_case(text, parsed)) throw std::runtime_error(text);
    std::vector<std::vector<std::byte>> made;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const TensorSpec spec = parsed.tensor(i);
      std::vector<std::byte> bytes(spec.bytes());
      if (inputs[i].literal.empty()) {
        fill(inputs[i].rule, {seed, case_id(text), static_cast<std::uint32_t>(i)}, spec.dtype,
             bytes);
      }
      for (std::size_t k = 0; k < inputs[i].literal.size(); ++k) {
        const double value = inputs[i].literal[k];
        const std::size_t size = size_of(spec.dtype);
        fill({FillKind::constant, value, value, 0}, {}, spec.dtype,
             std::span(bytes).subspan(k * size, size));
      }
      made.push_back(std::move(bytes));
    }
    return made;
  }

  // A finished case with a record that tells how its inputs were filled, and a trial that was
  // skipped.
  std::uint64_t add_filled(const std::string& text, const std::vector<InputParts>& inputs,
                           std::uint64_t seed = 0, std::uint64_t spoil = 0) {
    const auto bytes = elements(text, inputs, seed);
    flatbuffers::FlatBufferBuilder builder;
    std::vector<flatbuffers::Offset<wire::Filling>> fillings;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const FillRule& rule = inputs[i].rule;
      const auto literal = inputs[i].literal.empty() && !inputs[i].dropped
                               ? 0
                               : builder.CreateVector(inputs[i].literal);
      fillings.push_back(wire::CreateFilling(builder, static_cast<std::uint8_t>(rule.kind),
                                             rule.low, rule.high, rule.extent, literal,
                                             checksum(bytes[i]) ^ spoil));
    }
    const auto name = builder.CreateString("paddle");
    const auto filled = builder.CreateVector(fillings);
    wire::LaneRecordBuilder lane(builder);
    lane.add_name(name);
    lane.add_inputs(filled);
    const auto test = lane.Finish();
    const auto lanes =
        builder.CreateVector(std::vector<flatbuffers::Offset<wire::LaneRecord>>{test});
    const auto wide = builder.CreateString("wide");
    const auto reason = builder.CreateString("integers have no wide values");
    const auto trials = builder.CreateVector(std::vector{
        wire::CreateTrial(builder, 0, lanes), wire::CreateTrial(builder, wide, 0, 0, reason)});
    wire::RecordBuilder record(builder);
    record.add_version(wire::kVersion);
    record.add_id(case_id(text));
    record.add_trials(trials);
    builder.Finish(record.Finish());
    return add(text, {Outcome::mismatch, kValue, 0, "", "differs"}, wire::bytes_of(builder));
  }

  template <typename T>
  static T must(Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message);
    if constexpr (!std::is_void_v<T>) return std::move(*result);
  }

 private:
  Folder folder_;
  std::unique_ptr<Store> store_;
};

struct Ran {
  ExitStatus status;
  std::string output;  // stdout and stderr
};

inline Ran run_program(const Folder& folder, const std::vector<std::string>& argv) {
  const std::filesystem::path log = folder / "output.txt";
  std::filesystem::remove(log);
  Ran ran;
  {
    const Fd out = StoredRun::must(open_for_append(log));
    SpawnOptions options;
    options.argv = argv;
    options.fds = {{out.get(), 1}, {out.get(), 2}};
    Process process = StoredRun::must(Process::spawn(options));
    ran.status = StoredRun::must(process.wait());
  }
  ran.output = StoredRun::must(read_file(log));
  return ran;
}

}  // namespace assay::testing
