#pragma once

// The task of a run, from the command line and assay.toml.

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "case/name_filter.h"
#include "engine/changed_apis.h"
#include "lane/fork_server.h"
#include "schedule/shards.h"
#include "store/store.h"
#include "verdict/judge.h"
#include "wire/settings_generated.h"

namespace assay {

class EarlierCosts;

struct Sources {
  std::vector<std::string> configs;       // single cases
  std::vector<std::string> patterns;      // corpus files, or glob patterns of them
  std::optional<ChangedApis> only = {};   // cases of other APIs are left out
  std::optional<NameFilter> filter = {};  // likewise: -k

  bool selects(std::string_view api) const {
    return (!only || only->have(api)) && (!filter || filter->matches(api));
  }
};

// The framework of the tables' reference functions. A lane of this framework calls them.
inline constexpr const char* kTablesFramework = "torch";

// A lane's device until a slot is assigned: the slot's GPU, or the next one.
inline constexpr std::string_view kAnyGpu = "gpu";
inline constexpr std::string_view kNextGpu = "gpu:next";

// The property with the label of the reference lane.
inline constexpr const char* kReferenceLane = "reference.lane";
// The property of a run that records: "true" if its framework cannot differentiate.
inline constexpr const char* kNoGradients = "reference.no_gradients";

// The lane of a role: framework, device, execution.
struct LaneConfig {
  FrameworkConfig framework;
  std::string label;   // its name in logs and records; empty: the framework's
  std::string device;  // "cpu", "gpu:0", kAnyGpu; empty: the CPU, unless the run uses GPUs
  std::string execution = "eager";  // the mode's own execution goes inside
  // Whether it calls the tables' reference functions. By default a reference lane of their
  // framework does, and a test lane of it that has another reference lane than plain `torch`.
  std::optional<bool> reference_functions = {};
};

// Results that stand for the reference lane (src/goldens).
struct GoldensConfig {
  std::string folder;                        // absolute; a copy, if there is an address
  std::string url;                           // empty: `folder` itself is meant
  std::map<std::string, std::string> facts;  // properties of the run that recorded them
};
// The fact with this key; empty if there is none.
std::string fact_of(const GoldensConfig& goldens, const std::string& key);

struct RunConfig {
  Sources sources;
  wire::CaseSettingsT settings;
  LaneConfig test;
  LaneConfig reference;  // for modes with such a lane
  // The reference lane runs alone, and its results are recorded in the folder of the run.
  bool records = false;
  bool digest = false;  // … as digests, if they are large
  std::optional<GoldensConfig> goldens = {};
  std::filesystem::path folder;
  std::string store;  // address of a database; empty: the folder's own file
  std::uint32_t slots = 1;
  std::vector<int> gpus;         // CUDA's numbers; slots are dealt out over them in turn
  std::uint64_t gpu_budget = 0;  // bytes on each GPU, for all of its slots together
  std::uint64_t gpu_alone = 0;   // bytes for one lane of a GPU while the others idle
  std::uint64_t gpu_bytes = 0;   // memory of the smallest of these GPUs
  int spares = 0;                // lanes forked ahead, by each server for each GPU
  int spares_after_a_fault = 0;  // the same after the first fault of a GPU
  // The tool of compute-sanitizer for the test lane; empty: none.
  std::string sanitizer;
  bool mps = false;  // lanes share the GPUs through NVIDIA's MPS, if it starts
  std::optional<std::uint64_t> timeout_ms;  // replaces the limits by size
  std::uint64_t memory_budget = 0;          // bytes for all slots together
  std::vector<Outcome> retest;              // outcomes to run again
  bool rerun = false;          // with `retest` of all outcomes: whatever build finished them before
  std::optional<Shard> shard;  // only this part of the cases
  std::shared_ptr<const EarlierCosts> earlier;  // times of an earlier run; null: estimates only
  bool exit_on_error = false;
  std::uint64_t most_failures = 0;  // stop after so many; 0: never
  std::int64_t silence_ms =
      60'000;  // a slot or fork server is hung after this time without a sign of life
  std::int64_t claim_again_ms = 1'000;  // pause between claims while others hold cases
  bool amp = false;                     // all lanes use automatic mixed precision
  std::string dump_dir;  // lanes write inputs and results of each case there; empty: nowhere
  // Flags that should not change a verdict but are repeated in a rerun, with their values:
  // interpreters, devices, a time limit. Named like the store's properties (kRerunFlag).
  std::map<std::string, std::string> rerun_flags;
};

// Where the run's store is: the address of a database, or the folder.
std::filesystem::path store_of(const RunConfig& config);
// Whether the run plans nothing and works on cases that others have planned in the database.
bool joins(const RunConfig& config);

const ModeInfo& mode_of(const RunConfig& config);
// The device and framework of a lane of the mode.
const LaneConfig& lane_config(const RunConfig& config, const ModeLane& lane);

// Counts while verdicts come in.
struct Totals {
  std::array<std::uint64_t, kOutcomes.size()> outcomes{};
  std::uint64_t finished = 0;  // in this session
  std::uint64_t planned = 0;   // to run at the start of the session
  std::uint64_t earlier = 0;   // finished in earlier sessions
  std::uint64_t invalid_lines = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t other_apis = 0;  // cases that Sources::selects leaves out
};

enum class RunEnding { complete, interrupted, stopped_on_error };

struct RunSummary {
  Totals totals;
  std::vector<ServerInfo> frameworks;
  RunEnding ending = RunEnding::complete;
};

// Called as things happen, on the engine's thread.
struct RunObserver {
  std::function<void(const Totals&)> planned;
  std::function<void(const FinishedCase&, const Totals&)> finished;
  std::function<void(const std::string&)> note;  // a line for people: a lane was replaced, …
  // The store's run was begun with another build of a framework; the run ends with that error.
  std::function<void()> another_build;
  // Every case has its verdict in the store. Called while slots and servers end.
  std::function<void(RunReader&)> complete;
};

}  // namespace assay
