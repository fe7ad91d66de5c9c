#include "cli/verb_slot.h"

#include <CLI/App.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "slot/slot.h"

namespace assay {
namespace {
constexpr int kSupervisorFd = 3;
}

Verb add_slot_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("slot", "(internal)");
  app->group("");  // not in --help
  // For people who look at a list of processes; what a slot is to do comes over its socket.
  auto shown = std::make_shared<std::vector<std::string>>();
  app->add_option("shown", *shown, "its number and the folder of its lanes' logs");
  return {app, [shown]() -> Result<int> {
            ASSAY_TRY(Slot slot, Slot::begin(Fd(kSupervisorFd)));
            ASSAY_CHECK(slot.run());
            return kAllGood;
          }};
}

}  // namespace assay
