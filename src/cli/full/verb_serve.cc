#include "cli/full/verb_serve.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/interruption.h"
#include "base/terminal.h"
#include "cli/exit_code.h"
#include "http/server.h"
#include "serve/run_page.h"
#include "store/open_store.h"

namespace assay::cli::full {
namespace {

constexpr const char* kServeExamples = R"(Examples:
  assay serve postgresql://assay@db/runs
  assay serve assay-runs/night --port=8080

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
  ASSAY_TRY(auto source, open_source(options.where));
  const RunPage page(std::move(source), options.where);
  const auto handler = [&](std::string_view path) -> http::Response {
    auto reply = page.reply(path);
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

}  // namespace

Verb add_serve_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("serve", "Show a run in a browser while it goes on");
  auto options = std::make_shared<ServeOptions>();
  app->add_option("RUN", options->where, "Folder of a run, or postgresql://…")->required();
  app->add_option("--host", options->http.host,
                  "Address of this machine to listen on; 0.0.0.0: all of them")
      ->capture_default_str();
  app->add_option("--port", options->http.port, "Port; 0: any free one")->capture_default_str();
  app->footer(kServeExamples);
  return {app, [options] { return run_serve(*options); }};
}

}  // namespace assay::cli::full
