#include "cli/verb_slot.h"

#include <memory>

#include "cli/exit_code.h"
#include "slot/slot.h"

namespace assay {
namespace {
constexpr int kSupervisorFd = 3;
}

Verb add_slot_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("slot", "(internal)");
  app->group("");  // not in --help
  auto json = std::make_shared<std::string>();
  app->add_option("config", *json)->required();
  return {app, [json]() -> Result<int> {
            ASSAY_TRY(SlotConfig config, SlotConfig::from_json(*json));
            Slot slot(std::move(config), Fd(kSupervisorFd));
            ASSAY_CHECK(slot.run());
            return kAllGood;
          }};
}

}  // namespace assay
