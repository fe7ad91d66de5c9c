#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/values.h"
#include "case/canonical.h"
#include "case/parser.h"
#include "cli/settings.h"
#include "cli/shrinking.h"
#include "cli/verbs.h"
#include "report/issue.h"
#include "report/scripts.h"
#include "report/shrunk.h"
#include "store/open_store.h"

namespace assay {
namespace {

struct FindingOptions {
  std::string run;
  std::string which;  // a number or a digest
  std::string script;
  bool no_run = false;
  std::string budget = "20s";
  std::string paddle_python;
  std::string torch_python;
  std::string settings_file;
};

constexpr int kScriptLimit = 90;  // seconds

// The interpreter of the lane on this machine. What the run says of it is not believed.
FrameworkConfig interpreter(const Settings& settings, const FindingOptions& options,
                            const std::map<std::string, std::string>& properties,
                            const std::string& role) {
  const std::string framework = value_at(properties, role + ".framework");
  const std::string& python = framework == "torch" ? options.torch_python : options.paddle_python;
  const std::string label = value_at(properties, role + ".lane");
  if (settings.lanes.contains(label)) return settings.lane(label, python).framework;
  return settings.framework(framework, python);
}

// Looks for a smaller case, unless there is one already or this one has one element.
Status shrink(const FindingOptions& options, const Finding& finding) {
  ASSAY_TRY(const ShrunkCases known, read_shrunk(options.run));
  Case parsed;
  const bool small = parse_case(finding.text, parsed) && parsed.total_elements() <= 1;
  const Outcome outcome = finding.key.outcome;
  if (small || known.contains(finding.id) || outcome == Outcome::timeout) return {};
  ShrinkOptions how{.budget = options.budget};
  auto& programs = how.programs.emplace();
  const auto take = [&](const char* flag, const std::string& value) {
    if (!value.empty()) programs[flag] = value;
  };
  take("paddle_python", options.paddle_python);
  take("torch_python", options.torch_python);
  take("settings", options.settings_file);
  ASSAY_TRY([[maybe_unused]] const ShrunkCases found,
            shrink_stored(options.run, {finding.id}, how, [](const std::string&) {}));
  return {};
}

// The smallest case known that shows the finding.
Result<FoundCase> shown_case(const std::string& folder, RunReader& run, const Finding& finding) {
  ASSAY_TRY(const ShrunkCases shrunk, read_shrunk(folder));
  if (const auto smaller = shrunk.find(finding.id); smaller != shrunk.end()) {
    const ShrunkCase& found = smaller->second;
    return FoundCase{found.id, found.text, found.verdict, found.record};
  }
  ASSAY_TRY(FoundCase found, find_case(run, format_case_id(finding.id)));
  return found;
}

Result<int> run_finding(const FindingOptions& options) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(options.run, StoreMode::read));
  ASSAY_TRY(const auto properties, store->properties());
  ASSAY_TRY(const std::vector<Finding> findings, findings_of(*store, nullptr));
  auto found = std::ranges::find_if(
      findings, [&](const Finding& each) { return each.key.digest() == options.which; });
  std::size_t number = 0;
  if (found == findings.end() && read_number(options.which, number) && number > 0 &&
      number <= findings.size()) {
    found = findings.begin() + static_cast<std::ptrdiff_t>(number - 1);
  }
  if (found == findings.end()) {
    return usage_error(fmt::format("the run has {} findings; assay report {} lists them",
                                   findings.size(), options.run));
  }
  const Finding& finding = *found;
  if (finding.key.outcome == Outcome::invalid) {
    return usage_error(fmt::format("finding {} is no call that runs: correct the corpus: {}",
                                   options.which, finding.message));
  }
  if (!options.no_run && options.budget != "0" && !is_store_address(options.run)) {
    if (const auto tried = shrink(options, finding); !tried) {
      show(stderr, "note: not shrunk: {}\n", one_line(tried.error().message));
    }
  }
  ASSAY_TRY(const FoundCase shown, shown_case(options.run, *store, finding));
  ASSAY_TRY(const Settings settings, load_settings(options.settings_file));
  ASSAY_TRY(nlohmann::json request, issue_request(properties, finding, shown));
  request["limit"] = kScriptLimit;
  request["run"] = !options.no_run;
  const FrameworkConfig python =
      interpreter(settings, options, properties, text_of(request, "role"));
  ASSAY_TRY(const std::vector<nlohmann::json> answers, ask_scripts(python, {request}));
  const nlohmann::json& issue = answers.front();
  if (issue.contains("error")) return fail(text_of(issue, "error"));
  show(stdout, "{}", text_of(issue, "text"));
  if (options.script.empty()) return kAllGood;
  const std::string script = text_of(issue, "script");
  if (script.empty()) return usage_error("--script: there is none: " + text_of(issue, "why"));
  ASSAY_CHECK(write_file(options.script, script));
  return kAllGood;
}

}  // namespace

Verb add_finding_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("finding", "A finding of a run as a text for an issue");
  auto options = std::make_shared<FindingOptions>();
  app->add_option("DIR", options->run, "The run's folder (--log_dir)")->required();
  app->add_option("N", options->which, "Its number in the list of assay report, or its digest")
      ->required();
  app->add_option("--script", options->script, "Write its script to this file as well");
  app->add_flag("--no-run", options->no_run,
                "Do not look for a smaller case, and do not run the script to see whether the "
                "fault shows");
  app->add_option("--budget", options->budget,
                  "Time for the search for a smaller case: 20s, 2m; 0: none")
      ->capture_default_str();
  app->add_option("--paddle_python", options->paddle_python, "Python interpreter that has Paddle");
  app->add_option("--torch_python", options->torch_python, "Python interpreter that has PyTorch");
  app->add_option("--settings", options->settings_file,
                  "Settings file (default: assay.toml in this folder)");
  return {app, [options] { return run_finding(*options); }};
}

}  // namespace assay
