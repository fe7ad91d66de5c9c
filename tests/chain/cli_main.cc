// `chain_cli chain …`: the chain verb alone, so that these tests build nothing but the chain.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>

#include "cli/full/verb_chain.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app{"chain tests"};
  const assay::Verb verb = assay::cli::full::add_chain_verb(app);
  CLI11_PARSE(app, argc, argv);
  const auto code = verb.run();
  if (code) return *code;
  fmt::print(stderr, "{}\n", code.error().message);
  return code.error().kind == assay::ErrorKind::usage ? 2 : 3;
}
