// `chain_cli chain …`: the chain verb alone, so that these tests build nothing but the chain; and
// `chain_cli campaign FILE`, a campaign of chains.

#include <fmt/format.h>

#include <csignal>

#include "base/process.h"
#include "campaign/campaign.h"
#include "campaign/runner.h"
#include "cli/full/verbs.h"

namespace {

assay::Result<int> run_campaign(const std::string& file) {
  ASSAY_TRY(const auto campaign, assay::campaign::read_campaign(file));
  ASSAY_TRY(const std::string self, assay::own_executable());
  return assay::campaign::run_campaign(campaign, {.self = self, .arguments = {}, .started = {}});
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app{"chain tests"};
  const assay::Verb verb = assay::cli::full::add_chain_verb(app);
  std::string file;
  CLI::App* campaign = app.add_subcommand("campaign");
  campaign->add_option("FILE", file)->required();
  CLI11_PARSE(app, argc, argv);
  const auto code = campaign->parsed() ? run_campaign(file) : verb.run();
  if (code) return *code;
  fmt::print(stderr, "{}\n", code.error().message);
  return code.error().kind == assay::ErrorKind::usage ? 2 : 3;
}
