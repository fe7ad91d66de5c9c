#pragma once

// Recognises the commands of a suite's script as stages of a chain.

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "chain/plan/plan.h"

namespace assay::chain::script {

// One command that the script started.
struct Command {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value", what the script has set or changed
  std::string folder;                    // working folder, relative to the project; "": the project
  std::string log;                       // file that its output goes to; "": none or a pipe
  std::vector<std::string> outputs;      // files and folders that it writes
};

// A line of the params file whose value may be a command.
struct CommandLine {
  std::string key;
  std::vector<std::string> words;
};
std::vector<CommandLine> command_lines(const std::string& params_text);
// The first word of the value; "" if there is no such line.
std::string value_of(const std::vector<CommandLine>& lines, std::string_view key);

// What a script has set or changed in its environment, sorted; `before` is what it was given.
std::vector<std::string> set_by_script(const std::vector<std::string>& environment,
                                       const std::set<std::string>& before);

class Recogniser {
 public:
  explicit Recogniser(const std::string& params_text) : lines_(command_lines(params_text)) {}

  // The stage of the script's next command. A command belongs to the params line whose value its
  // words begin with, after the interpreter and the launcher, else to its program's name. It needs
  // the last stage before it that makes what it reads.
  plan::Stage take(const Command& command);

 private:
  std::vector<std::size_t> needs_of(plan::StageKind kind) const;

  std::vector<CommandLine> lines_;
  std::vector<plan::StageKind> kinds_;  // of the stages so far
  std::map<std::string, int> named_;
};

}  // namespace assay::chain::script
