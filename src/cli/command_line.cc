#include "cli/command_line.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <csignal>
#include <vector>

#include "cli/exit_code.h"

namespace assay {
namespace {

int run_command_line(int argc, char** argv, std::span<const AddVerb> known) {
  CLI::App app("Tests deep-learning frameworks the way they are used.", "assay");
  app.set_version_flag("--version", "assay " ASSAY_VERSION);
  app.require_subcommand(1);
  std::vector<Verb> verbs;
  for (const AddVerb add : known) verbs.push_back(add(app));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kAllGood : kUsage;
  }
  for (const Verb& verb : verbs) {
    if (verb.app->parsed()) return run_verb(verb);
  }
  return kUsage;
}

}  // namespace

int run_program(int argc, char** argv, std::span<const AddVerb> verbs) {
  std::signal(SIGPIPE, SIG_IGN);  // a peer that dies is an error where it is written to
  return run_guarded([&] { return run_command_line(argc, argv, verbs); });
}

}  // namespace assay
