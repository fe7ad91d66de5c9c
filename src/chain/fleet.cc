#include "chain/fleet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay {

StageCommand fleet_command(const Stage& stage, const std::vector<std::string>& driver,
                           const Limits& limits) {
  StageCommand command;
  command.argv = driver;
  command.argv.push_back("--hosts");
  command.argv.push_back(fmt::format("{}", fmt::join(stage.hosts, ",")));
  command.argv.push_back("--silence");
  command.argv.push_back(fmt::format("{:g}", limits.idle.count()));
  if (stage.on_cpu) command.argv.emplace_back("--gloo");
  for (const std::string& entry : stage.environment) {
    command.argv.push_back("--env");
    command.argv.push_back(entry);
  }
  command.argv.emplace_back("--");
  command.argv.insert(command.argv.end(), stage.argv.begin(), stage.argv.end());
  command.environment = stage.environment;
  command.directory = stage.directory;
  command.log = stage.log;
  return command;
}

}  // namespace assay
