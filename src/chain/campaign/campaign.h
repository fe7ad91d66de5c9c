#pragma once

// Runs a campaign of chains: each model as an `assay chain run` on a seat.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chain/campaign/campaign_file.h"
#include "chain/campaign/results.h"

namespace assay::chain::campaign {

struct RunnerOptions {
  std::string self;                            // path of assay
  std::filesystem::path history;               // file of earlier campaigns of this name
  std::function<void()> started;               // called once the campaign runs; may be empty
  std::function<void(std::string_view)> show;  // gets a line for each model that ends
};

// The words of `assay chain run` for a model, after `assay chain`.
std::vector<std::string> model_words(const Campaign& campaign, const Model& model,
                                     const Seat& seat);

// Runs until every model has ended, no host is left, or SIGINT or SIGTERM arrives. Writes the
// results to the campaign's folder. Models keep their stages there that passed with the same
// identity. Blocks signals, so no other thread may run.
Result<Findings> run_campaign(const Campaign& campaign, const RunnerOptions& options);

}  // namespace assay::chain::campaign
