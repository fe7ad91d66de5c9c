#pragma once

// What a run is to do, as the command line and assay.toml say it.

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

// The tables' reference functions are written in it: a lane of this framework calls those.
inline constexpr const char* kTablesFramework = "torch";

// A lane's device before its slot has a seat: that slot's GPU, or the one after it.
inline constexpr std::string_view kAnyGpu = "gpu";
inline constexpr std::string_view kNextGpu = "gpu:next";

// What stands behind a role: which framework, where, how.
struct LaneConfig {
  FrameworkConfig framework;
  std::string label;   // its name in logs and records; empty: the framework's
  std::string device;  // "cpu", "gpu:0", kAnyGpu; empty: the CPU, unless the run takes GPUs
  std::string execution = "eager";  // around which the mode's own is put
  bool reference_functions = false;
};

struct RunConfig {
  Sources sources;
  wire::CaseSettingsT settings;
  LaneConfig test;
  LaneConfig reference;  // for modes that have such a lane
  std::filesystem::path folder;
  std::string store;  // address of a database instead of the folder's own file
  std::uint32_t slots = 1;
  std::vector<int> gpus;         // as CUDA counts; slots take turns on them
  std::uint64_t gpu_budget = 0;  // bytes on each of them, for all of its slots together
  int spares = 0;                // lanes forked ahead, of each server on each GPU
  int spares_after_a_fault = 0;  // as many from the first fault of a GPU on
  // The tool of compute-sanitizer that the lane under test runs under; empty: none.
  std::string sanitizer;
  bool mps = false;                         // lanes share the GPUs by NVIDIA's MPS where it starts
  std::optional<std::uint64_t> timeout_ms;  // instead of the limits by size
  std::uint64_t memory_budget = 0;          // bytes for all slots together
  std::vector<Outcome> retest;              // outcomes that are run again
  std::optional<Shard> shard;               // only this part of the cases
  std::shared_ptr<const EarlierCosts> earlier;  // what cases took before; null: estimates alone
  bool exit_on_error = false;
  std::int64_t silence_ms = 60'000;     // a slot or fork server without a sign of life hangs
  std::int64_t claim_again_ms = 1'000;  // between claims while others hold cases
  bool amp = false;                     // all lanes under automatic mixed precision
  std::string dump_dir;  // where lanes write what goes into cases and comes out; empty: nowhere
  // Flags that verdicts should not hang on, and that a rerun of a case repeats all the same, with
  // their values: interpreters, devices, a time limit. Named as the store's properties
  // (kRerunFlag).
  std::map<std::string, std::string> rerun_flags;
};

// Where the run's store is: an address of a database, or the folder.
std::filesystem::path store_of(const RunConfig& config);
// Whether it plans nothing, and works on what others have planned in the database.
bool joins(const RunConfig& config);

const ModeInfo& mode_of(const RunConfig& config);
// Where a lane of the mode sits, and in which framework.
const LaneConfig& lane_config(const RunConfig& config, const ModeLane& lane);

// Counted as verdicts come in.
struct Totals {
  std::array<std::uint64_t, kOutcomes.size()> outcomes{};
  std::uint64_t finished = 0;  // in this session
  std::uint64_t planned = 0;   // still to run when the session began
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

// Told as things happen, on the engine's thread.
struct RunObserver {
  std::function<void(const Totals&)> planned;
  std::function<void(const FinishedCase&, const Totals&)> finished;
  std::function<void(const std::string&)> note;  // a line for people: a lane was replaced, …
  // Every case has its verdict, which the store has: to be read while slots and servers end.
  std::function<void(RunReader&)> complete;
};

}  // namespace assay
