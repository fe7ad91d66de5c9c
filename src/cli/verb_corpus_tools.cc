#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/terminal.h"
#include "base/text.h"
#include "case/corpus_tools.h"
#include "case/parser.h"
#include "cli/verbs.h"
#include "store/open_store.h"

namespace assay {
namespace {

struct ToolOptions {
  std::vector<std::string> files;
  std::string out;
  std::string expression;
  std::vector<std::string> globs;
  std::string dtypes;
  std::string outcomes;
  std::string run;
  CorpusFilter filter;
  std::size_t most = 20;
  double share = 0.1;
  std::string mutants;
};

// Collects text and writes it to a file, or to standard output.
class Output {
 public:
  static Result<Output> open(const std::string& path) {
    Output output;
    if (!path.empty()) {
      ASSAY_TRY(output.file_, AtomicFile::create(path));
    }
    return output;
  }
  Status write(std::string_view text) {
    buffer_ += text;
    return buffer_.size() < kBuffer ? Status() : flush();
  }
  Status close() {
    ASSAY_CHECK(flush());
    return file_ ? file_->commit() : Status();
  }

 private:
  static constexpr std::size_t kBuffer = 1 << 18;

  Status flush() {
    const std::string text = std::exchange(buffer_, {});
    if (file_) return file_->write(text);
    show_text(stdout, text);
    return {};
  }

  std::optional<AtomicFile> file_;
  std::string buffer_;
};

// Shows the lines that do not parse; they make the exit code 1.
int told(const CorpusReading& reading) {
  for (const std::string& each : reading.shown) show_text(stderr, each);
  if (reading.failed == 0) return kAllGood;
  show(stderr, "{} left out: they do not parse\n", count_of(reading.failed, "line"));
  return kSomeFailed;
}

Result<int> merge(const ToolOptions& options) {
  ASSAY_TRY(Output output, Output::open(options.out));
  ASSAY_TRY(const CorpusReading reading, merge_corpora(options.files, [&](std::string_view text) {
              return output.write(text);
            }));
  ASSAY_CHECK(output.close());
  return told(reading);
}

Result<int> diff(const ToolOptions& options) {
  if (options.files.size() != 2) return usage_error("corpus diff takes two files: OLD NEW");
  ASSAY_TRY(Output output, Output::open(options.out));
  ASSAY_TRY(const CorpusDifference found,
            diff_corpora(options.files[0], options.files[1],
                         [&](std::string_view text) { return output.write(text); }));
  ASSAY_CHECK(output.close());
  show(stderr, "{} in both, {} removed, {} added\n", count_of(found.common, "case"), found.removed,
       found.added);
  return found.removed + found.added == 0 ? kAllGood : kSomeFailed;
}

Status read_dtypes(const ToolOptions& options, CorpusFilter& filter) {
  std::vector<std::string> known;
  known.reserve(std::size(kDTypes));
  for (const DTypeInfo& dtype : kDTypes) known.emplace_back(dtype.name);
  for (const std::string& name : split_at(options.dtypes, ',')) {
    const std::optional<DType> dtype = find_dtype(name);
    if (!dtype) {
      return usage_error(
          fmt::format("--dtype: there is no dtype {}{}", name, suggest(name, known)));
    }
    filter.dtypes.push_back(*dtype);
  }
  return {};
}

// The cases of a run with these outcomes.
Status read_outcomes(const ToolOptions& options, CorpusFilter& filter) {
  if (options.outcomes.empty() != options.run.empty()) {
    return usage_error("--outcome and --run go together: --outcome=mismatch --run=DIR");
  }
  if (options.run.empty()) return {};
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(options.run, StoreMode::existing));
  filter.ids.emplace();
  for (const std::string& name : split_at(options.outcomes, ',')) {
    const std::optional<Outcome> outcome = find_outcome(name);
    if (!outcome) return usage_error("--outcome: there is no outcome " + name);
    const RunQuery query{.rows = RunQuery::Rows::outcome, .outcome = *outcome, .records = false};
    ASSAY_CHECK(store->each(query, [&](const FinishedCase& finished) -> Status {
      filter.ids->insert(finished.id);
      return {};
    }));
  }
  return {};
}

Result<int> filter(const ToolOptions& options) {
  CorpusFilter filter = options.filter;
  filter.globs = options.globs;
  if (!options.expression.empty()) {
    ASSAY_TRY(filter.names, NameFilter::parse(options.expression));
  }
  if (!options.dtypes.empty()) ASSAY_CHECK(read_dtypes(options, filter));
  ASSAY_CHECK(read_outcomes(options, filter));
  ASSAY_TRY(Output output, Output::open(options.out));
  ASSAY_TRY(const CorpusReading reading,
            filter_corpora(options.files, filter,
                           [&](std::string_view text) { return output.write(text); }));
  ASSAY_CHECK(output.close());
  return told(reading);
}

Result<int> stats(const ToolOptions& options) {
  ASSAY_TRY(const std::string page, corpus_page(options.files, options.most));
  ASSAY_TRY(Output output, Output::open(options.out));
  ASSAY_CHECK(output.write(page));
  ASSAY_CHECK(output.close());
  return kAllGood;
}

// Reads mutants.jsonl of `assay mutate`. A fault is known by its API, its name and the changed
// dtype.
Result<Kills> read_kills(const std::string& path) {
  Kills kills;
  if (path.empty()) return kills;
  std::ifstream file(path);
  if (!file) return usage_error("cannot read " + path);
  std::map<std::string, std::uint32_t> faults;
  Case parsed;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json mutant = parse_json(line);
    if (!mutant.is_object()) return usage_error(path + " is no file of `assay mutate`");
    const std::string text = text_of(mutant, "case");
    if (text_of(mutant, "fate") != "killed" || !parse_case(text, parsed)) continue;
    const std::string fault = fmt::format("{} {}", parsed.api(), text_of(mutant, "fault"));
    const auto number = static_cast<std::uint32_t>(faults.size());
    kills[case_id(canonical_text(parsed))].push_back(faults.emplace(fault, number).first->second);
  }
  return kills;
}

Result<int> slim(const ToolOptions& options) {
  if (!(options.share > 0 && options.share <= 1)) {
    return usage_error("--share takes a number above 0, up to 1");
  }
  ASSAY_TRY(const Kills kills, read_kills(options.mutants));
  ASSAY_TRY(Output output, Output::open(options.out));
  ASSAY_TRY(const SlimCorpus found,
            slim_corpora(options.files, options.share, kills,
                         [&](std::string_view text) { return output.write(text); }));
  ASSAY_CHECK(output.close());
  show(stderr, "{} of {} kept\n", found.kept, count_of(found.distinct, "case"));
  if (found.faults > 0) {
    show(stderr, "they show {} of {} planted faults that all cases show ({:.1f}%)\n", found.shown,
         found.faults,
         100.0 * static_cast<double>(found.shown) / static_cast<double>(found.faults));
  }
  return told(found.reading);
}

CLI::App* add_tool(CLI::App& corpus, const std::string& name, const std::string& summary,
                   ToolOptions& options) {
  CLI::App* app = corpus.add_subcommand(name, summary);
  app->add_option("FILE", options.files, "Files, or patterns of files such as 'corpus/*.txt'")
      ->required();
  app->add_option("--out", options.out, "Write to this file");
  return app;
}

void add_filter_flags(CLI::App& app, ToolOptions& options) {
  app.add_option("-k,--filter", options.expression,
                 "Only APIs whose name matches: 'softmax and not log'");
  app.add_option("--api", options.globs, "Only APIs of these patterns: 'torch.ops.aten.*'");
  app.add_option("--dtype", options.dtypes, "Only cases with a tensor of these dtypes");
  app.add_option("--max-elements", options.filter.most_elements,
                 "Only cases whose tensors have at most this many elements together");
  app.add_option("--min-elements", options.filter.least_elements, "… and at least this many");
  app.add_option("--outcome", options.outcomes, "Only cases with these outcomes in --run");
  app.add_option("--run", options.run, "The folder or database of a run");
}

}  // namespace

std::vector<Verb> add_corpus_tools(CLI::App& corpus) {
  std::vector<Verb> tools;
  const auto add =
      [&](const std::string& name, const std::string& summary,
          Result<int> (*run)(const ToolOptions&)) -> std::pair<CLI::App*, ToolOptions*> {
    auto options = std::make_shared<ToolOptions>();
    CLI::App* app = add_tool(corpus, name, summary, *options);
    tools.push_back({app, [options, run] { return run(*options); }});
    return {app, options.get()};
  };
  add("merge", "One corpus of several, each case once; the calls of captures are added up", merge);
  add("diff", "The cases that only one of two corpora has; exit code 1 if there are any", diff);
  const auto [filter_app, filter_options] = add("filter", "The cases that pass a filter", filter);
  add_filter_flags(*filter_app, *filter_options);
  const auto [slim_app, slim_options] =
      add("slim", "A share of the cases that finds almost what all of them find", slim);
  slim_app->add_option("--share", slim_options->share, "The share of the cases that is kept")
      ->capture_default_str();
  slim_app->add_option("--mutants", slim_options->mutants,
                       "mutants.jsonl of `assay mutate`: keep the cases that show its faults");
  const auto [stats_app, stats_options] =
      add("stats", "A page in Markdown: APIs, arguments, dtypes, sizes", stats);
  stats_app->add_option("--most", stats_options->most, "Rows of each table")->capture_default_str();
  return tools;
}

}  // namespace assay
