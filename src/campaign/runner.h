#pragma once

// Runs a campaign: round after round of `assay api`, each with its own folder, and a log of all
// they say.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "campaign/campaign.h"

namespace assay {

struct RunnerOptions {
  std::vector<std::string> program;            // words before the flags: {"…/assay", "api"}
  std::vector<std::string> arguments;          // behind the flags of every round
  std::function<void()> started;               // the pid file is there and the first round runs
  std::function<void(std::string_view)> show;  // what goes into the log; empty: nobody looks
};

// The words of one round.
std::vector<std::string> round_words(const Campaign& campaign, const RunnerOptions& options,
                                     const std::string& input, const std::string& input_value,
                                     const std::string& log_dir);

// Until the last round has ended, one of them is in trouble, or SIGTERM or SIGINT comes: the round
// that runs is told, and no other begins. Gives the exit code of the worst round, 130 when it was
// told to stop. While it runs it holds the pid file, and LOG_DIR/campaign.json says how far it is.
// One that runs already is a usage error. To be called where no other thread runs.
Result<int> run_campaign(const Campaign& campaign, const RunnerOptions& options);

// The same in a session of its own, which outlives who started it. Comes back when the first round
// runs; gives the number of the process.
Result<pid_t> run_in_background(const Campaign& campaign, const RunnerOptions& options);

// What campaign.json says; null: there is none.
nlohmann::json read_progress(const Campaign& campaign);
// The log that is being written, or was last; empty: there is none.
std::filesystem::path latest_log(const Campaign& campaign);

}  // namespace assay
