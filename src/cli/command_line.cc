#include "cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "base/terminal.h"
#include "cli/flag_spelling.h"
#include "cli/verb.h"

namespace assay {
namespace {

// Prints help or the version and gives 0, or prints the error in one line and gives kUsage.
int stop_parsing(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {
    app.exit(error);
    return kAllGood;
  }
  std::string words = "assay";
  for (const CLI::App* verb = &app; !verb->get_subcommands().empty();) {
    verb = verb->get_subcommands().front();
    words += " " + verb->get_name();
  }
  show(stderr, "assay: {}; `{} --help` describes all flags\n", error.what(), words);
  return kUsage;
}

std::string footer_of(std::span<const std::string_view> elsewhere) {
  std::string footer = "`assay help VERB` describes a verb and its flags.";
  if (elsewhere.empty()) return footer;
  return footer +
         fmt::format("\n`make build` builds the other verbs: {}.", fmt::join(elsewhere, ", "));
}

constexpr std::string_view kHelp = "help";

void add_help(CLI::App& app) {
  app.add_subcommand(std::string(kHelp), "Describe a verb and its flags: assay help api");
}

// `assay help VERB` is `assay VERB --help`.
std::vector<std::string> without_help_verb(std::vector<std::string> words) {
  if (words.front() != kHelp) return words;
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

int run_command_line(int argc, char** argv, std::span<const AddVerb> known,
                     std::span<const std::string_view> elsewhere) {
  CLI::App app("Tests deep-learning frameworks the way they are used.", "assay");
  app.set_version_flag("--version", "assay " ASSAY_VERSION, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(1);
  app.footer(footer_of(elsewhere));
  std::vector<Verb> verbs;
  for (const AddVerb add : known) verbs.push_back(add(app));
  add_help(app);
  if (argc < 2) {
    show(stdout, "{}", app.help());
    return kUsage;
  }
  auto words = spelled_words(app, without_help_verb({argv + 1, argv + argc}), elsewhere);
  if (!words) return report_error(words.error());
  std::ranges::reverse(*words);  // CLI11 takes the last word first
  try {
    app.parse(std::move(*words));
  } catch (const CLI::ParseError& error) {
    return stop_parsing(app, error);
  }
  for (const Verb& verb : verbs) {
    if (verb.app->parsed()) return run_verb(verb);
  }
  return kUsage;
}

}  // namespace

int run_program(int argc, char** argv, std::span<const AddVerb> verbs,
                std::span<const std::string_view> elsewhere) {
  std::signal(SIGPIPE, SIG_IGN);  // writing to a closed pipe becomes an error of write()
  std::signal(SIGXFSZ, SIG_IGN);  // as does writing beyond `ulimit -f`
  return run_guarded([&] { return run_command_line(argc, argv, verbs, elsewhere); });
}

}  // namespace assay
