#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/process.h"
#include "base/result.h"
#include "base/text.h"
#include "base/values.h"
#include "cli/api_config.h"
#include "cli/api_options.h"
#include "cli/api_progress.h"
#include "cli/choices.h"
#include "cli/fresh_folder.h"
#include "cli/mutation_cases.h"
#include "cli/verbs.h"
#include "engine/engine.h"
#include "lane/python_command.h"
#include "report/run_report.h"
#include "store/open_store.h"
#include "store/store.h"
#include "verdict/mutants.h"
#include "wire/frame.h"
#include "wire/settings.h"

namespace assay {
namespace {

// In the order of Fate.
constexpr std::array<std::string_view, 5> kFates{"killed", "survived", "equivalent", "inapplicable",
                                                 "unjudged"};

using Json = nlohmann::ordered_json;

constexpr int kMutantsVersion = 1;

std::string line_of(std::string_view text, const Mutant& mutant) {
  Json line;
  line["case"] = text;
  line["fault"] = mutant.fault;
  line["values"] = mutant.values;
  line["fate"] = kFates[static_cast<std::size_t>(mutant.fate)];
  if (mutant.weak) line["weak"] = true;
  if (!mutant.planted.empty()) line["planted"] = mutant.planted;
  if (!mutant.message.empty()) line["message"] = mutant.message;
  return dumped(line) + "\n";
}

// All planted faults of the run, for python/assay/mutation/score.py. The first line is
// {"version": 1, "properties": {…}}; the others are
// {"case": …, "fault": …, "values": …, "fate": "killed", "weak": true, "planted": …, "message": …}.
Status write_mutants(Store& store, const Policies& policies, const std::filesystem::path& file) {
  ASSAY_TRY(const auto properties, store.properties());
  ASSAY_TRY(wire::CaseSettingsT settings, wire::settings_of(properties));
  ASSAY_TRY(const Rules rules, Rules::of(std::move(settings)));
  ASSAY_TRY(AtomicFile out, AtomicFile::create(file));
  ASSAY_CHECK(
      out.write(dumped(Json{{"version", kMutantsVersion}, {"properties", properties}}) + "\n"));
  const Status written = store.each_finished([&](const FinishedCase& finished) -> Status {
    const auto record = wire::open<wire::Record>(finished.record);
    if (!record) return {};
    for (const Mutant& mutant : judge_mutants(**record, policies.of_case(finished.text), rules)) {
      ASSAY_CHECK(out.write(line_of(finished.text, mutant)));
    }
    return {};
  });
  return written ? out.commit() : written;
}

constexpr const char* kMutateExamples = R"(Examples:
  assay mutate --api_config_file=cases.txt
  assay mutate --api_config_file='a.txt,b.txt' --operators=off_8_ulp,ties --sample=1/10
  assay mutate --api_config_file=cases.txt --judge=mine.toml --markdown=score.md
It measures how sharp the judge is: each fault that changes a bit should make its case fail.)";

struct MutateOptions {
  ApiOptions api;
  std::string operators = "all";
  std::string sample = "1/1";
  std::string markdown;
  std::string judge;  // a file of policies
  std::uint32_t cases = 2;
};

Status choose_faults(const MutateOptions& options, wire::CaseSettingsT& settings) {
  settings.mutants =
      options.operators == "all" ? std::string(wire::kAllMutants) : options.operators;
  const std::vector<std::string> known = split_at(wire::kAllMutants, ',');
  for (const std::string& name : split_at(settings.mutants, ',')) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return usage_error(fmt::format("--operators: no fault is called {}; known: {}{}", name,
                                     wire::kAllMutants, suggest(name, known)));
    }
  }
  const std::string_view text = options.sample;
  if (text.starts_with("1/") && read_number(text.substr(2), settings.mutants_share) &&
      settings.mutants_share > 0) {
    return {};
  }
  return usage_error("--sample takes a share such as 1/10, not " + options.sample);
}

// The chosen cases become the run's corpus.
Status choose_cases(const MutateOptions& options, RunConfig& config) {
  ASSAY_TRY(const std::vector<std::string> chosen,
            choose_cases_of_apis(config.sources.patterns, config.settings.seed, options.cases));
  return use_cases(chosen, config);
}

// Prints the table. Python makes it, because it knows the families of the APIs.
Result<int> print_score(const MutateOptions& options, const RunConfig& config) {
  ASSAY_TRY(const LanePackage package, LanePackage::find());
  SpawnOptions child;
  child.argv = python_command(config.reference.framework.python, "assay.mutation.score");
  child.argv.push_back(config.folder.string());
  if (!options.markdown.empty()) child.argv.push_back(options.markdown);
  child.environment = {fmt::format("PYTHONPATH={}", package.python_path.string())};
  ASSAY_TRY(Process process, Process::spawn(child));
  ASSAY_TRY(const ExitStatus status, process.wait());
  return status.signal == 0 ? status.code : kTrouble;
}

Result<Policies> chosen_policies(const MutateOptions& options,
                                 const wire::CaseSettingsT& settings) {
  if (options.judge.empty()) return load_policies(settings);
  const auto text = read_file(options.judge);
  if (!text) return usage_error("--judge: " + text.error().message);
  return Policies::parse(*text, options.judge, {settings.atol, settings.rtol, true, {}});
}

Result<int> run_mutate(const MutateOptions& options) {
  std::vector<std::string> notes;
  ASSAY_CHECK(check_links(options.markdown));
  if (!options.markdown.empty() &&
      !Fd(::open(options.markdown.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644))) {
    return usage_error(errno_error("--markdown=" + options.markdown).value().message);
  }
  ASSAY_TRY(RunConfig config, make_run_config(options.api, notes));
  ASSAY_CHECK(choose_faults(options, config.settings));
  ASSAY_TRY(const Policies policies, chosen_policies(options, config.settings));
  const FreshFolder folder(config.folder);
  ASSAY_CHECK(choose_cases(options, config));
  ApiProgress progress(config, true);
  for (const std::string& note : notes) progress.note(note);
  ASSAY_TRY(const RunSummary summary, run_in(folder, config, progress.observer()));
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(config.folder, StoreMode::existing));
  ASSAY_CHECK(write_mutants(*store, policies, config.folder / "mutants.jsonl"));
  if (summary.ending == RunEnding::interrupted) return kInterrupted;
  return print_score(options, config);
}

}  // namespace

Verb add_mutate_verb(CLI::App& parent) {
  CLI::App* app =
      parent.add_subcommand("mutate", "Plant faults in results and count how many are found");
  auto options = std::make_shared<MutateOptions>();
  ApiOptions& api = options->api;
  api.num_gpus = 0;  // faults are planted in host memory
  app->add_option("--api_config_file", api.api_config_file_pattern,
                  "Files with a case on each line, separated by commas")
      ->required();
  app->add_option("--operators", options->operators, "Names of faults, separated by commas")
      ->capture_default_str();
  app->add_option("--seed", api.settings.seed, "Seed of all input values and choices")
      ->capture_default_str();
  app->add_option("--sample", options->sample, "The share of mutants that is made")
      ->capture_default_str();
  app->add_option("--cases", options->cases, "Most cases of each API")->capture_default_str();
  app->add_option("--values", api.values, "Value regimes, as in assay api")->capture_default_str();
  app->add_option("--num_workers", api.num_workers_per_gpu, "Workers on the CPU; -1: one per core");
  app->add_option(
      "--test-lane", api.test_lane,
      "The lane in which faults are planted (default: the framework of the first case)");
  app->add_option("--reference-lane", api.reference_lane, "The lane that it is compared with")
      ->capture_default_str();
  app->add_option("--paddle_python", api.paddle_python, "Python interpreter that has Paddle");
  app->add_option("--torch_python", api.torch_python, "Python interpreter that has PyTorch");
  app->add_option("--settings", api.settings_file,
                  "Settings file (default: assay.toml in the working folder, if it exists)");
  app->add_option("--log_dir", api.log_dir,
                  "Folder of the run (default: a new dated folder under assay-runs/)");
  app->add_option("--markdown", options->markdown, "Write the table to this file, too");
  app->add_option("--judge", options->judge,
                  "Judge by the tolerances of this file of policies, instead of assay's own")
      ->check(not_empty());
  app->footer(kMutateExamples);
  return {app, [options] { return run_mutate(*options); }};
}

}  // namespace assay
