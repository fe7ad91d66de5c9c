#include "cli/verb.h"

#include <poll.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <utility>

#include "base/terminal.h"

namespace assay {
namespace {

int trouble(const char* what, const char* advice) {
  show(stderr, "assay: {}{}\n", what, advice);
  return kTrouble;
}

}  // namespace

Verb one_of(CLI::App& app, std::vector<Verb> verbs) {
  app.require_subcommand(1);
  return {&app, [verbs = std::move(verbs)] {
            const auto parsed = [](const Verb& verb) { return verb.app->parsed(); };
            return std::ranges::find_if(verbs, parsed)->run();
          }};
}

int run_verb(const Verb& verb) {
  const Result<int> code = verb.run();
  return code ? *code : report_error(code.error());
}

int report_error(const Error& error) {
  show(stderr, "assay: {}\n", error.message);
  return error.kind == ErrorKind::usage ? kUsage : kTrouble;
}

namespace {

// Whether a pipe's reader has gone, as that of `assay report DIR | head`.
bool has_no_reader(int fd) {
  pollfd pipe{fd, POLLOUT, 0};
  return ::poll(&pipe, 1, 0) == 1 && (pipe.revents & POLLERR) != 0;
}

// `code`, unless text for stdout was lost.
int flushed(int code) {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written || has_no_reader(STDOUT_FILENO)) return code;
  return trouble("cannot write to the standard output", ": is the disk full?");
}

}  // namespace

int run_guarded(const std::function<int()>& body) {
  try {
    return flushed(body());
  } catch (const std::bad_alloc&) {
    return trouble("out of memory", ": use fewer workers or a larger machine");
  } catch (const std::filesystem::filesystem_error& error) {
    return trouble(error.path1().c_str(), (": " + error.code().message()).c_str());
  } catch (const std::exception& error) {
    return trouble(error.what(), " (a bug in assay: please report it with the command line)");
  } catch (...) {
    return trouble("an unknown exception",
                   " (a bug in assay: please report it with the command line)");
  }
}

CLI::Option* pass_option(CLI::App& app, std::vector<std::string>& words, const std::string& flag,
                         const std::string& help) {
  const std::string name = flag.substr(flag.rfind(',') + 1);
  return app.add_option_function<std::string>(
      flag, [&words, name](const std::string& value) { words.push_back(name + "=" + value); },
      help);
}

void pass_flag(CLI::App& app, std::vector<std::string>& words, const std::string& flag,
               const std::string& help) {
  app.add_flag_callback(
      flag, [&words, flag] { words.push_back(flag); }, help);
}

}  // namespace assay
