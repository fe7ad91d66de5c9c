#pragma once

// What a campaign knows of its units: how each ended, which failures are known, and how often a
// model failed before.

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/result.h"
#include "chain/run/runner.h"

namespace assay::campaign {

struct StageEnd {
  std::string name;
  std::string kind;   // "train", "eval", …
  std::string state;  // "passed", "not_made", …
  std::string detail;
  double seconds = 0;
};

// How a unit ended: a model, or a round.
struct UnitEnd {
  std::string key;  // "FILE MODE", "round 2/crash"
  // Of a model: passed; failed: a stage did not pass; refused: the file or a flag is wrong;
  // trouble: assay or the machine failed; timed_out; lost: its hosts vanished; not_run.
  std::string state = "not_run";
  std::string detail;
  std::string host;
  std::string log;     // relative to the campaign's folder
  double seconds = 0;  // of its last try
  int tries = 0;
  std::vector<StageEnd> stages;
  ExitStatus exit;
  bool passed() const { return state == "passed"; }
};

// Prefix of the line with which `assay chain run --report-line` reports its stages.
inline constexpr std::string_view kModelWord = "assay-model: ";
std::string model_line(const chain::run::RunResult& result);
// The stages of such a line, or nothing for another line.
std::optional<std::vector<StageEnd>> read_model_line(std::string_view line);

nlohmann::json json_of(const UnitEnd& end);

// The models that have ended so far, one per line of LOG_DIR/models.jsonl, for `assay status`.
Status begin_ends(const std::filesystem::path& log_dir);
Status append_end(const std::filesystem::path& log_dir, const UnitEnd& end);
std::map<std::string, int> count_ends(const std::filesystem::path& log_dir);  // by state

// A failure, as a list of known ones names it.
struct Failure {
  std::string model;   // its key
  std::string stage;   // "": the model as a whole
  std::string state;   // "": any
  std::string detail;  // of this campaign
  std::string reason;  // of the list, as the next two
  std::string owner;
  std::string upstream;
  bool known = false;
};

// Reads a list of known failures: TOML, `version = 1`, [[failure]] with model, stage, state,
// reason, owner, upstream. A missing file is an empty list.
Result<std::vector<Failure>> read_known(const std::filesystem::path& file);
std::string known_text(const std::vector<Failure>& failures);

// What a campaign has found.
struct Findings {
  std::vector<UnitEnd> models;
  std::vector<Failure> failures;  // by model; `known` if the list has them
  std::vector<Failure> fixed;     // known ones whose model ended without them
  bool interrupted = false;
  std::size_t count(std::string_view state) const;
  std::size_t new_failures() const;
};

// A stage that was only blocked by another one is no failure of its own.
Findings judged(std::vector<UnitEnd> models, const std::vector<Failure>& known);

// "498 passed, 2 failed: 1 new failure, 1 known".
std::string summary_line(const Findings& findings);
// Models × kinds of stages, with the failures below. `all` shows models that passed, too.
std::string matrix_text(const Findings& findings, bool all);
// A job summary in GitHub's Markdown.
std::string markdown(const std::string& name, const Findings& findings);
// JUnit XML: a test suite per model with a test case per stage. Known failures are skipped.
std::string junit(const std::string& name, const Findings& findings);
nlohmann::json json_report(const std::string& name, const Findings& findings);
// A page with the matrix and links to the logs and pages of models, which lie beside it.
Result<std::string> html(const std::string& name, const Findings& findings);

// How a model did in earlier campaigns of the same name.
struct Past {
  int failed = 0;      // campaigns in a row
  double seconds = 0;  // of its longest run
};
using History = std::map<std::string, Past>;  // by key
History read_history(const std::filesystem::path& file);
Status write_history(const std::filesystem::path& file, History history,
                     const std::vector<UnitEnd>& models);

}  // namespace assay::campaign
