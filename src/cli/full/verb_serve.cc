#include "cli/full/verb_serve.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include "cli/exit_code.h"
#include "serve/server.h"
#include "store/open_store.h"

namespace assay::cli::full {
namespace {

constexpr const char* kServeExamples = R"(Examples:
  assay serve postgresql://assay@db/runs
  assay serve assay-runs/night --port=8080
It only reads. On an address other than loopback, each request needs a token: that of the environment
variable ASSAY_SERVE_TOKEN, or a new one that is printed.)";

std::string new_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

Result<int> run_serve(ServeOptions options) {
  if (has_password(options.where)) {
    fmt::print(
        "note: every user of this machine can read the password in the address from the list of "
        "processes; put it into ~/.pgpass (PGPASSFILE) instead\n");
  }
  const char* token = std::getenv("ASSAY_SERVE_TOKEN");
  if (token != nullptr && *token != '\0') options.token = token;
  if (options.token.empty() && !is_loopback(options.host)) options.token = new_token();
  const std::atomic<bool> stop = false;
  const auto listening = [&](std::uint16_t port) {
    const bool six = options.host.find(':') != std::string::npos;
    fmt::print("http://{}:{}/{}\n", six ? "[" + options.host + "]" : options.host, port,
               options.token.empty() ? "" : "?token=" + options.token);
    std::fflush(stdout);
  };
  ASSAY_CHECK(serve_run(options, listening, stop));
  return kAllGood;
}

}  // namespace

Verb add_serve_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("serve", "Show a run in a browser, while it runs");
  auto options = std::make_shared<ServeOptions>();
  app->add_option("RUN", options->where, "Folder of a run, or postgresql://…")->required();
  app->add_option("--host", options->host, "Address of this machine to listen on")
      ->capture_default_str();
  app->add_option("--port", options->port, "Port; 0: any free one")->capture_default_str();
  app->footer(kServeExamples);
  return {app, [options] { return run_serve(*options); }};
}

}  // namespace assay::cli::full
