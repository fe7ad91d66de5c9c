#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <span>

#include "base/atomic_file.h"
#include "base/nearest.h"
#include "base/table.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/api_config.h"
#include "cli/api_options.h"
#include "cli/api_progress.h"
#include "cli/choices.h"
#include "cli/fresh_folder.h"
#include "cli/mutation_cases.h"
#include "cli/verbs.h"
#include "engine/engine.h"
#include "report/relations.h"
#include "report/run_report.h"
#include "store/open_store.h"

namespace assay {
namespace {

constexpr const char* kRelationsExamples = R"(Examples:
  assay relations --api_config_file=cases.txt
  assay relations --api_config_file=cases.txt --relations=rows,halves --against=last/relations.json
  assay relations --require=rows=bits,chunks=bits llm.txt
Exit code: 0 all that held before holds, 1 something does not, 2 usage, 3 the engine or the machine failed,
130 interrupted.)";

// One way to compute a call, and the plain way that it is compared with.
struct Relation {
  std::string_view name;
  std::string_view test;   // execution
  std::string_view plain;  // execution; empty: eager
  bool backward = true;
  double tolerance = 0;  // 0: bit for bit, or else within the error bar of the reference
};

// Central differences in float64 have about ten digits.
constexpr double kOfDifferences = 1e-5;
constexpr std::array<Relation, 10> kRelations{{
    {"repeated", "", ""},
    {"rows", "relation=rows", ""},
    {"halves", "relation=halves", ""},
    {"permuted", "relation=permuted", ""},
    {"strided", "relation=strided", ""},
    {"in_place", "relation=in_place", ""},
    {"out", "relation=out", "", false},
    {"threads", "threads=4", ""},
    {"differences", "relation=differences", "", true, kOfDifferences},
    {"double_backward", "relation=gradient+relation=differences", "relation=gradient", true,
     kOfDifferences},
}};

struct RelationsOptions {
  ApiOptions api;
  std::string require;
  std::string relations;
  std::string against;
  std::uint32_t cases = 4;
};

Result<std::vector<Relation>> chosen_relations(const std::string& names) {
  std::vector<Relation> chosen;
  std::vector<std::string> known;
  known.reserve(kRelations.size());
  for (const Relation& each : kRelations) known.emplace_back(each.name);
  for (const std::string& name : split_at(names, ',')) {
    const auto found = std::ranges::find(kRelations, name, &Relation::name);
    if (found == kRelations.end()) {
      return usage_error(fmt::format("--relations: none is called {}; known: {}{}", name,
                                     fmt::join(known, ","), suggest(name, known)));
    }
    chosen.push_back(*found);
  }
  if (chosen.empty()) chosen.assign(kRelations.begin(), kRelations.end());
  return chosen;
}

// An execution inside another: the lane's own one first.
std::string around(const std::string& own, std::string_view execution) {
  if (execution.empty()) return own;
  return own == "eager" ? std::string(execution) : fmt::format("{}+{}", own, execution);
}

struct Ended {
  Outcome outcome = Outcome::skip;
  std::uint8_t mismatch = 0;
};
using Outcomes = std::map<std::string, Ended>;  // by the case's text

// The runs of one call of `assay relations`, each in a folder of its own.
class Runs {
 public:
  Runs(const RunConfig& base, RelationTable& table) : base_(base), table_(table) {}

  bool interrupted() const { return interrupted_; }

  // Compares each case's relation with its plain form, and counts it.
  Status compare(const Relation& relation, const std::vector<std::string>& cases);

 private:
  RunConfig by_plain(const Relation& relation) const;
  RunConfig by_bar(std::string_view execution) const;
  Result<Outcomes> run(RunConfig config, const std::string& name,
                       const std::vector<std::string>& cases);
  Status within_rounding(const Relation& relation, const Outcomes& left);

  const RunConfig& base_;
  RelationTable& table_;
  bool interrupted_ = false;
};

RunConfig Runs::by_plain(const Relation& relation) const {
  RunConfig config = base_;
  config.settings.error_bar = false;
  config.settings.atol = config.settings.rtol = relation.tolerance;
  config.settings.backward = relation.backward;
  config.reference = config.test;
  config.reference.label = "plain";
  config.reference.reference_functions = false;
  config.reference.execution = around(base_.test.execution, relation.plain);
  config.test.execution = around(base_.test.execution, relation.test);
  return config;
}

RunConfig Runs::by_bar(std::string_view execution) const {
  RunConfig config = base_;
  config.test.execution = around(base_.test.execution, execution);
  return config;
}

Result<Outcomes> Runs::run(RunConfig config, const std::string& name,
                           const std::vector<std::string>& cases) {
  Outcomes found;
  if (cases.empty() || interrupted_) return found;
  config.folder = base_.folder / name;
  const FreshFolder folder(config.folder);
  ASSAY_CHECK(use_cases(cases, config));
  ApiProgress progress(config, true);
  ASSAY_TRY(const RunSummary summary, run_in(folder, config, progress.observer()));
  interrupted_ = summary.ending == RunEnding::interrupted;
  for (const ServerInfo& each : summary.frameworks) table_.build[each.framework] = each.version;
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(config.folder, StoreMode::existing));
  ASSAY_CHECK(store->each({.records = false}, [&found](const FinishedCase& finished) -> Status {
    found[std::string(finished.text)] = {finished.verdict.outcome, finished.verdict.mismatch};
    return {};
  }));
  return found;
}

// A relation is between runs of one function.
bool passes(Outcome outcome) { return outcome == Outcome::pass || outcome == Outcome::self_only; }

bool only_gradient(const Ended& found) {
  return found.outcome == Outcome::mismatch && (found.mismatch & ~kGradient) == 0;
}

Status Runs::compare(const Relation& relation, const std::vector<std::string>& cases) {
  const std::string name(relation.name);
  ASSAY_TRY(const Outcomes found, run(by_plain(relation), name, cases));
  const Held agrees = relation.tolerance > 0 ? Held::rounding : Held::bits;
  Outcomes left;
  for (const auto& [text, each] : found) {
    RelationCell& cell = table_.apis[std::string(api_of(text))][name];
    const bool judged = info(each.outcome).failed || passes(each.outcome);
    if (!judged) {
      ++cell.skipped;
    } else if (passes(each.outcome)) {
      cell.add(agrees, relation.backward ? agrees : Held::nothing, text);
    } else if (relation.tolerance > 0 || relation.test.empty()) {
      cell.add(only_gradient(each) ? agrees : Held::no, Held::no, text);
    } else {
      left.emplace(text, each);
    }
  }
  return within_rounding(relation, left);
}

// Cases that differ in bits: whether the relation's results are right within the error bar. If the
// plain call is not, the case says nothing.
Status Runs::within_rounding(const Relation& relation, const Outcomes& left) {
  const std::string name(relation.name);
  std::vector<std::string> texts;
  for (const auto& each : left) texts.push_back(each.first);
  RunConfig config = by_bar(relation.test);
  config.settings.backward = relation.backward;
  ASSAY_TRY(const Outcomes found, run(config, name + "-bar", texts));
  std::vector<std::string> wrong;
  for (const auto& [text, each] : found) {
    if (info(each.outcome).failed) wrong.push_back(text);
  }
  config = by_bar("");
  config.settings.backward = relation.backward;
  ASSAY_TRY(const Outcomes plain, run(config, name + "-plain", wrong));
  for (const auto& [text, each] : found) {
    RelationCell& cell = table_.apis[std::string(api_of(text))][name];
    const auto eager = plain.find(text);
    const bool told = eager == plain.end() || !info(eager->second.outcome).failed;
    if (!told || (!info(each.outcome).failed && !passes(each.outcome))) {
      ++cell.skipped;
      continue;
    }
    const Held result = only_gradient(left.at(text)) ? Held::bits : Held::rounding;
    const bool passed = passes(each.outcome);
    const Held gradient = passed ? Held::rounding : Held::no;
    cell.add(passed || only_gradient(each) ? result : Held::no,
             relation.backward ? gradient : Held::nothing, text);
  }
  return {};
}

// Prints how many APIs have each relation, and what was lost.
int print_table(const RelationTable& table, const std::filesystem::path& folder,
                const std::vector<std::string>& lost) {
  Table shown({"relation", ">bits", ">rounding", ">no", ">nothing"});
  for (const std::string& relation : table.relations) {
    std::array<std::size_t, 4> counts{};
    for (const auto& [api, cells] : table.apis) {
      const auto cell = cells.find(relation);
      if (cell == cells.end()) continue;
      const RelationCell& each = cell->second;
      const Held worst =
          each.gradient == Held::nothing ? each.result : std::min(each.result, each.gradient);
      ++counts.at(static_cast<std::size_t>(worst));
    }
    shown.row(relation, counts[3], counts[2], counts[1], counts[0]);
  }
  show_text(stdout, shown.text());
  for (const std::string& line : lost) show_text(stdout, "lost: " + line + "\n");
  show_text(stdout, fmt::format("{} APIs; table: {}/relations.md, relations.json\n",
                                table.apis.size(), folder.string()));
  return lost.empty() ? kAllGood : kSomeFailed;
}

// Runs each case in the execution `require`, and prints which of them are not invariant.
Result<int> run_required(const RelationsOptions& options) {
  ApiOptions api = options.api;
  api.modes["paddle_only"] = true;
  std::vector<std::string> notes;
  ASSAY_TRY(RunConfig config, make_run_config(api, notes));
  config.test.execution = around(config.test.execution, "require=" + options.require);
  const FreshFolder folder(config.folder);
  ApiProgress progress(config, true);
  ASSAY_TRY(const RunSummary summary, run_in(folder, config, progress.observer()));
  if (summary.ending == RunEnding::interrupted) return kInterrupted;
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(config.folder, StoreMode::existing));
  std::array<std::size_t, 3> counts{};  // that hold, do not, and have nothing to compare
  ASSAY_CHECK(store->each({.records = false}, [&](const FinishedCase& finished) -> Status {
    const Outcome outcome = finished.verdict.outcome;
    const bool failed = info(outcome).failed;
    ++counts.at(passes(outcome) ? 0 : failed ? 1 : 2);
    if (passes(outcome)) return {};
    show_text(stdout, fmt::format("{:<8} {}\n         {}\n", failed ? "fails" : "nothing",
                                  one_line(finished.text), one_line(finished.verdict.message)));
    return {};
  }));
  const auto [kept, broken, left] = counts;
  if (broken > 0) {
    show_text(stdout, fmt::format("a script: {} finding {} 1 --script=FILE.py\n", own_command(),
                                  shell_word(config.folder.string())));
  }
  show_text(stdout, fmt::format("{} cases hold {}, {} do not, {} have nothing to compare\n", kept,
                                options.require, broken, left));
  return broken > 0 ? kSomeFailed : kept > 0 ? kAllGood : kNothingJudged;
}

Result<int> run_relations(const RelationsOptions& options) {
  if (!options.require.empty()) return run_required(options);
  if (!options.api.api_config.empty() || !options.api.files.empty()) {
    return usage_error("--api_config and files belong to --require; otherwise --api_config_file");
  }
  ASSAY_TRY(const std::vector<Relation> relations, chosen_relations(options.relations));
  RelationTable before;
  if (!options.against.empty()) {
    auto read = RelationTable::read(options.against);
    if (!read) return usage_error("--against: " + read.error().message);
    before = *std::move(read);
  }
  std::vector<std::string> notes;
  ASSAY_TRY(const RunConfig base, make_run_config(options.api, notes));
  ASSAY_TRY(const std::vector<std::string> cases,
            choose_cases_of_apis(base.sources.patterns, base.settings.seed, options.cases));
  for (const std::string& note : notes) show_text(stderr, "note: " + note + "\n");
  RelationTable table;
  Runs runs(base, table);
  for (const Relation& each : relations) {
    table.relations.emplace_back(each.name);
    ASSAY_CHECK(runs.compare(each, cases));
    if (runs.interrupted()) return kInterrupted;
  }
  ASSAY_CHECK(table.write(base.folder / "relations.json"));
  ASSAY_CHECK(write_file(base.folder / "relations.md", table.markdown()));
  return print_table(table, base.folder, lost_relations(before, table));
}

}  // namespace

Verb add_relations_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "relations", "Compute calls in other ways and compare: rows of a batch, in place, …");
  auto options = std::make_shared<RelationsOptions>();
  ApiOptions& api = options->api;
  api.values = "usual";
  app->add_option("--api_config_file", api.api_config_file_pattern,
                  "Files with a case on each line, separated by commas");
  add_files(*app, api);
  app->add_option("--api_config", api.api_config, "One case, for --require");
  app->add_option("--require", options->require,
                  "Batch invariance as a gate: rows=bits,batches=bits,position=bits,padding=bits,"
                  "chunks=bits,cache=bits (or =rounding). Exit code 1 if a case does not hold");
  add_named_kernel(*app, api.kernel);
  app->add_option("--relations", options->relations,
                  "Names of relations, separated by commas (default: all)");
  app->add_option("--cases", options->cases, "Most cases of each API")->capture_default_str();
  app->add_option("--against", options->against,
                  "relations.json of an earlier run: what held there must hold");
  app->add_option("--random_seed", api.settings.seed, "Seed of all input values and choices")
      ->check(whole_number())
      ->capture_default_str();
  app->add_option("--num_gpus", api.num_gpus, "GPUs; 0: none, -1: all")->capture_default_str();
  app->add_option("--num_workers", api.num_workers_per_gpu, "Workers; -1: as many as are useful");
  app->add_option("--test-lane", api.test_lane,
                  "The lane whose calls are compared (default: the framework of the first case)");
  app->add_option("--paddle_python", api.paddle_python, "Python interpreter that has Paddle");
  app->add_option("--torch_python", api.torch_python, "Python interpreter that has PyTorch");
  app->add_option("--settings", api.settings_file,
                  "Settings file (default: assay.toml in the working folder, if it exists)");
  app->add_option("--log_dir", api.log_dir,
                  "Folder of the runs (default: a new dated folder under assay-runs/)");
  app->footer(kRelationsExamples);
  return {app, [options] { return run_relations(*options); }};
}

}  // namespace assay
