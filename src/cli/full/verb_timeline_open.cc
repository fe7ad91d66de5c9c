#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/terminal.h"
#include "cli/full/verbs.h"
#include "http/server.h"

namespace assay::cli::full {
namespace {

constexpr std::uint16_t kPerfettoPort = 9001;  // the only port that the Perfetto UI fetches from
constexpr const char* kTracePath = "/trace";

struct OpenOptions {
  std::filesystem::path trace;
  http::Options http{.port = kPerfettoPort};
};

// The Perfetto UI with the trace. It shows groups of tracks closed; the command opens those of a
// pipeline:
// [{"id":"dev.perfetto.ExpandTracksByRegex","args":["^(pipeline|machine )"]}]
std::string perfetto_address(const std::string& trace) {
  return fmt::format(
      "https://ui.perfetto.dev/#!/?url={}&startupCommands="
      "%5B%7B%22id%22%3A%22dev.perfetto.ExpandTracksByRegex%22%2C"
      "%22args%22%3A%5B%22%5E(pipeline%7Cmachine%20)%22%5D%7D%5D",
      trace);
}

Result<int> run_open(OpenOptions options) {
  if (::access(options.trace.c_str(), R_OK) != 0)
    return usage_error(fmt::format("cannot read {}", options.trace.string()));
  options.http.token = http::new_token();
  const auto handler = [&](std::string_view path) -> http::Response {
    Fd file;
    if (path == kTracePath) file = Fd(::open(options.trace.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return {.status = 404, .body = "not found\n"};
    return {.type = "application/octet-stream",
            .file = std::move(file),
            .allow_origin = "https://ui.perfetto.dev"};
  };
  const auto listening = [&](std::uint16_t port) {
    show(stdout, "open {}\nCtrl-C ends\n",
         perfetto_address(http::address(options.http, port, kTracePath + 1)));
    std::fflush(stdout);
  };
  ASSAY_CHECK(http::serve(options.http, handler, listening, std::atomic<bool>(false)));
  return kAllGood;
}

}  // namespace

Verb add_timeline_open(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("open", "Show a trace in the Perfetto UI");
  const auto options = std::make_shared<OpenOptions>();
  app->add_option("FILE", options->trace, "The trace")->required()->check(CLI::ExistingFile);
  app->add_option("--port", options->http.port, "Port (the Perfetto UI fetches from 9001 only)")
      ->capture_default_str();
  return {app, [options] { return run_open(*options); }};
}

}  // namespace assay::cli::full
