#include "cli/full/chain_remote.h"

#include "base/process.h"
#include "campaign/remote.h"

namespace assay::cli::full {

CLI::App* add_remote(CLI::App& chain, RemoteArguments& arguments) {
  CLI::App* app = chain.add_subcommand(
      "remote", "Run one model of a campaign on this machine (`assay run` starts it)");
  app->add_option("--lost-limit", arguments.lost,
                  "Seconds without a byte on stdin after which the model is ended (default 15)");
  app->add_option("WORDS", arguments.words, "After --: run FILE MODE …")->required();
  return app;
}

Result<int> remote(const RemoteArguments& arguments) {
  ASSAY_TRY(const std::string self, own_executable());
  return campaign::run_remote(self, arguments.words, arguments.lost);
}

}  // namespace assay::cli::full
