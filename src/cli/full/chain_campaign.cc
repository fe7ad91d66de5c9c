#include "cli/full/chain_campaign.h"

#include <fmt/format.h>

#include "base/process.h"
#include "base/terminal.h"
#include "base/text.h"
#include "chain/campaign/campaign.h"
#include "chain/campaign/formats.h"
#include "chain/campaign/remote.h"
#include "cli/exit_code.h"

namespace assay::cli::full {

namespace campaign = chain::campaign;

namespace {

std::string size_of(const campaign::Campaign& campaign) {
  return fmt::format("{} on {}\n", count_of(campaign.models.size(), "model"),
                     count_of(campaign.seats.size(), "seat"));
}

}  // namespace

Result<int> run_chain_campaign(const campaign::Campaign& campaign,
                               const std::function<void(std::string_view)>& show,
                               const std::function<void()>& started) {
  campaign::RunnerOptions options;
  ASSAY_TRY(options.self, own_executable());
  options.history = std::filesystem::path(".run") / (campaign.name + ".history.json");
  options.started = started;
  options.show = show;
  show(size_of(campaign));
  ASSAY_TRY(const campaign::Findings findings, campaign::run_campaign(campaign, options));
  show(campaign::matrix_text(findings, false));
  show(fmt::format("results: {}\n", (campaign.log_dir / "index.html").string()));
  if (findings.interrupted) return kInterrupted;
  if (findings.count("not_run") > 0) return kTrouble;  // no host is left
  return findings.new_failures() > 0 ? kSomeFailed : kAllGood;
}

Result<int> print_chain_campaign(const campaign::Campaign& campaign) {
  ASSAY_TRY(const std::string self, own_executable());
  for (const campaign::Model& model : campaign.models) {
    std::vector<std::string> words = campaign::model_words(campaign, model, campaign.seats.front());
    words.insert(words.begin(), {self, "chain"});
    show(stdout, "{}\n", shell_line(words));
  }
  show(stdout, "{}", size_of(campaign));
  return kAllGood;
}

void show_chain_progress(const campaign::Campaign& campaign) {
  int all = 0;
  std::string text;
  for (const auto& [state, count] : campaign::count_ends(campaign.log_dir)) {
    all += count;
    text += fmt::format("{} {} {}", text.empty() ? ":" : ",", count, state);
  }
  show(stdout, "  {} of {} ended{}\n", all, count_of(campaign.models.size(), "model"), text);
}

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
