#pragma once

// `assay run` for a campaign of chains, and the verb that it starts on other machines.

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chain/campaign/campaign_file.h"

namespace assay::cli::full {

// Runs it and prints the models that failed. `show` gets each line of progress; `started` is called
// once the campaign runs. Returns the exit code.
Result<int> run_chain_campaign(const chain::campaign::Campaign& campaign,
                               const std::function<void(std::string_view)>& show,
                               const std::function<void()>& started = {});
// Prints the commands.
Result<int> print_chain_campaign(const chain::campaign::Campaign& campaign);
// Prints how many models have ended, and how.
void show_chain_progress(const chain::campaign::Campaign& campaign);

struct RemoteArguments {
  double lost = 15;
  std::vector<std::string> words;
};
CLI::App* add_remote(CLI::App& chain, RemoteArguments& arguments);
Result<int> remote(const RemoteArguments& arguments);

}  // namespace assay::cli::full
