#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "base/terminal.h"
#include "base/text.h"
#include "case/canonical.h"
#include "cli/shrinking.h"
#include "cli/verbs.h"
#include "report/repro.h"
#include "store/open_store.h"

namespace assay {
namespace {

struct ShrinkVerbOptions {
  std::string run;
  std::string wanted;
  ShrinkOptions shrink;
};

Result<std::vector<std::uint64_t>> chosen_cases(const ShrinkVerbOptions& options) {
  std::vector<std::uint64_t> ids;
  if (options.wanted.empty()) return ids;
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(options.run, StoreMode::existing));
  ASSAY_TRY(const FoundCase found, find_case(*store, options.wanted));
  ids.push_back(found.id);
  return ids;
}

Result<int> run_shrink_verb(const ShrinkVerbOptions& options) {
  ASSAY_TRY(const std::vector<std::uint64_t> ids, chosen_cases(options));
  const auto note = [](const std::string& line) { show(stderr, "note: {}\n", line); };
  ASSAY_TRY(const ShrunkCases found, shrink_stored(options.run, ids, options.shrink, note));
  for (const auto& [id, shrunk] : found) {
    show(stdout, "{} after {} cases{}:\n  {}\n  {} {}\n", format_case_id(id), shrunk.tried,
         shrunk.whole ? "" : ", when the budget ran out", one_line(shrunk.text),
         name(shrunk.verdict.outcome), one_line(shrunk.verdict.message));
  }
  for (const std::uint64_t id : ids) {
    if (!found.contains(id)) {
      show(stdout, "{} did not fail again in the same way, so there is nothing to shrink\n",
           format_case_id(id));
    }
  }
  return ids.empty() || !found.empty() ? kAllGood : kSomeFailed;
}

}  // namespace

Verb add_shrink_verb(CLI::App& parent) {
  CLI::App* app =
      parent.add_subcommand("shrink", "Find the smallest case that still fails in the same way");
  auto options = std::make_shared<ShrinkVerbOptions>();
  app->add_option("DIR", options->run, "The run's folder (--log_dir)")->required();
  app->add_option("ID", options->wanted,
                  "The failure: its id, the start of its id, or a part of its text (default: one "
                  "case of each finding)");
  add_shrink_options(*app, options->shrink);
  return {app, [options] { return run_shrink_verb(*options); }};
}

}  // namespace assay
