#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "base/fd.h"
#include "base/interruption.h"
#include "base/table.h"
#include "base/terminal.h"
#include "cli/full/verbs.h"
#include "http/server.h"
#include "serve/nights.h"
#include "store/folder_watch.h"
#include "store/open_store.h"
#include "store/past_folders.h"
#include "verdict/outcome.h"

namespace assay::cli::full {
namespace {

constexpr const char* kServeExamples = R"(Examples:
  assay serve postgresql://assay@db/runs
  assay serve assay-runs/night --port=8080
  assay serve nights                          # all runs in the folders of nights

It prints an address with a token; only who knows the token sees the run. The environment variable
ASSAY_SERVE_TOKEN sets the token, else each start makes a new one. It never writes to the run.)";

struct ServeOptions {
  std::string where;
  http::Options http;
};

Result<int> run_serve(ServeOptions options) {
  if (has_password(options.where)) {
    show(stdout,
         "note: every user of this machine can read the password in the address; put it into "
         "~/.pgpass "
         "(PGPASSFILE) instead\n");
  }
  const char* token = std::getenv("ASSAY_SERVE_TOKEN");
  options.http.token = token != nullptr && *token != '\0' ? token : http::new_token();
  options.http.open_paths = RunPage::file_paths();
  std::optional<Nights> nights;
  std::optional<RunPage> page;
  if (is_store_address(options.where) || has_store(options.where) ||
      runs_in(options.where).empty()) {
    ASSAY_TRY(auto source, open_source(options.where));
    page.emplace(std::move(source), options.where);
  } else {
    nights.emplace(options.where);
  }
  const auto handler = [&](std::string_view path) -> http::Response {
    auto reply = nights ? nights->reply(path) : page->reply(path);
    if (!reply) return {.status = 404, .body = "not found\n"};
    return {.type = std::move(reply->type), .body = std::move(reply->body)};
  };
  const auto listening = [&](std::uint16_t port) {
    show(stdout, "{}\n", http::address(options.http, port));
    std::fflush(stdout);
  };
  const Status served = http::serve(options.http, handler, listening, std::atomic<bool>(false));
  interrupt_sockets();  // the page's reader may wait for its database
  ASSAY_CHECK(served);
  return kAllGood;
}

namespace fs = std::filesystem;

struct RunsOptions {
  std::string folder = "assay-runs";
  std::size_t keep = 0;
  bool dry_run = false;
};

void add_row(const RunFolder& run, Table& table) {
  const std::string name = run.path.filename();
  const auto totals = totals_of_folder(run.path);
  if (!totals) return table.row(name, totals.error().message, "", "", "");
  std::uint64_t failed = 0;
  std::uint64_t all = 0;
  for (const auto& [outcome, cases] : totals->outcomes) {
    const auto known = find_outcome(outcome);
    failed += known && info(*known).failed ? cases : 0;
    all += cases;
  }
  table.row(name, fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(totals->last_ms / 1000)), failed,
            all, fmt::format("{} min", totals->duration_ms / kMinuteMs));
}

Result<std::vector<RunFolder>> found_in(const RunsOptions& options) {
  std::vector<RunFolder> runs = runs_in(options.folder);
  if (runs.empty()) return usage_error(options.folder + " holds no folder with a run.db");
  return runs;
}

Result<int> list(const RunsOptions& options) {
  ASSAY_TRY(const std::vector<RunFolder> runs, found_in(options));
  Table table({"run", "last result, UTC", ">failed", ">cases", ">took"});
  for (const RunFolder& run : runs) add_row(run, table);
  show_text(stdout, table.text());
  return kAllGood;
}

// Why a run may not be deleted; empty if it may.
std::string kept_because(const fs::path& run) {
  constexpr std::array<std::string_view, 4> kMade{"lanes", "failed_tests", "dump_case", "goldens"};
  std::error_code error;
  for (const auto& each : fs::directory_iterator(run, error)) {
    const std::string name = each.path().filename();
    if (each.is_directory(error) && !name.starts_with("repro_") &&
        std::ranges::find(kMade, name) == kMade.end()) {
      return fmt::format("its folder {} is none of assay's", name);
    }
  }
  const Fd file(::open((run / SqliteStore::kFileName).c_str(), O_RDONLY | O_CLOEXEC));
  struct flock lock {};
  lock.l_type = F_WRLCK;
  if (!file || ::fcntl(file.get(), F_GETLK, &lock) != 0) return "its run.db cannot be read";
  return lock.l_type == F_UNLCK ? "" : "a program is using it";
}

Result<int> prune(const RunsOptions& options) {
  ASSAY_TRY(std::vector<RunFolder> runs, found_in(options));
  runs.resize(runs.size() - std::min(options.keep, runs.size()));
  int code = kAllGood;
  for (const RunFolder& run : runs) {
    std::string why = kept_because(run.path);
    std::error_code error;
    if (why.empty() && !options.dry_run && fs::remove_all(run.path, error) && error) {
      why = error.message();
    }
    if (!why.empty()) code = kTrouble;
    show(stdout, "{} {}{}{}\n",
         !why.empty()      ? "kept"
         : options.dry_run ? "would delete"
                           : "deleted",
         run.path.string(), why.empty() ? "" : ": ", why);
  }
  return code;
}

}  // namespace

Verb add_serve_verb(CLI::App& parent) {
  CLI::App* app =
      parent.add_subcommand("serve", "Show a run, or all runs of a folder, in a browser");
  auto options = std::make_shared<ServeOptions>();
  app->add_option("RUN", options->where, "Folder of a run, or of several runs, or postgresql://…")
      ->required();
  app->add_option("--host", options->http.host,
                  "Address of this machine to listen on; 0.0.0.0: all of them")
      ->capture_default_str();
  app->add_option("--port", options->http.port, "Port; 0: any free one")->capture_default_str();
  app->footer(kServeExamples);
  return {app, [options] { return run_serve(*options); }};
}

Verb add_runs_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("runs", "List the runs of a folder, and delete old ones");
  auto options = std::make_shared<RunsOptions>();
  CLI::App* listed = app->add_subcommand("list", "The runs, oldest first");
  CLI::App* pruned = app->add_subcommand("prune", "Delete all but the newest runs");
  for (CLI::App* verb : {listed, pruned}) {
    verb->add_option("FOLDER", options->folder, "The folder whose folders hold runs")
        ->capture_default_str();
  }
  pruned->add_option("--keep", options->keep, "How many of the newest runs stay")
      ->required()
      ->check(CLI::PositiveNumber);
  pruned->add_flag("--dry-run", options->dry_run, "Print what would be deleted");
  pruned->footer("Example:\n  assay runs prune nights --keep 30");
  return one_of(*app, {{listed, [options] { return list(*options); }},
                       {pruned, [options] { return prune(*options); }}});
}

}  // namespace assay::cli::full
