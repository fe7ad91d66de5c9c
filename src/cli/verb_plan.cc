#include <fmt/format.h>

#include <memory>

#include "base/terminal.h"
#include "base/text.h"
#include "cli/api_config.h"
#include "cli/api_options.h"
#include "cli/verbs.h"
#include "engine/engine.h"

namespace assay {
namespace {

constexpr const char* kPlanExamples = R"(Examples:
  assay plan --store=postgresql://assay@db/runs 'corpus/*.txt' --accuracy=True
  assay plan --store=postgresql://assay@db/runs --retest=crash,timeout
Each run is a schema of the database. options=-csearch_path%3DNAME in the address names another one.)";

struct PlanOptions {
  ApiOptions api;
};

void print(const PlanSummary& plan) {
  const Totals& totals = plan.totals;
  for (const InvalidLine& line : plan.first_invalid) {
    show_line(stdout, fmt::format("invalid, {}: {}", line.where, line.message));
  }
  std::string line =
      fmt::format("{} to run, {} of them new", count_of(totals.planned, "case"), plan.added);
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) line += fmt::format("; {} {}", count, what);
  };
  add(totals.earlier, "finished in earlier sessions");
  add(totals.duplicates, "given more than once");
  add(totals.invalid_lines, totals.invalid_lines == 1 ? "invalid line" : "invalid lines");
  show(stdout, "{}\n", line);
}

Result<int> run_plan(const PlanOptions& options) {
  std::vector<std::string> notes;
  ASSAY_TRY(RunConfig config, make_plan_config(options.api, notes));
  for (const std::string& note : notes) show_line(stdout, "note: " + note);
  if (joins(config)) return usage_error("nothing to plan: name files of cases, or give --retest");
  ASSAY_TRY(const PlanSummary plan, plan_run(config));
  print(plan);
  return kAllGood;
}

}  // namespace

Verb add_plan_verb(CLI::App& parent) {
  CLI::App* app =
      parent.add_subcommand("plan", "Load a corpus into a database that many machines share");
  auto options = std::make_shared<PlanOptions>();
  add_files(*app, options->api);
  add_plan_options(*app, options->api);
  app->footer(kPlanExamples);
  return {app, [options] { return run_plan(*options); }};
}

}  // namespace assay
