// assay: tests deep-learning frameworks the way they are used. See docs/ARCHITECTURE.md.

#include <csignal>

#include "cli/command_line.h"
#include "cli/verb.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a peer that dies is an error where it is written to
  return assay::run_guarded([&] { return assay::run_command_line(argc, argv); });
}
