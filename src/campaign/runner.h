#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "campaign/campaign.h"

namespace assay {

struct RunnerOptions {
  std::vector<std::string> program;            // words before the flags: {"…/assay", "api"}
  std::vector<std::string> arguments;          // words after the flags of every round
  std::function<void()> started;               // called when the first round runs
  std::function<void(std::string_view)> show;  // gets a copy of the log; may be empty
};

// The command line of one round.
std::vector<std::string> round_words(const Campaign& campaign, const RunnerOptions& options,
                                     const std::string& input, const std::string& input_value,
                                     const std::string& log_dir);

// Runs round after round until the last one has ended, one could not run, or SIGTERM or SIGINT
// arrives; the running round gets the signal too. Returns the worst exit code of the rounds, or 130
// after a signal. Holds the pid file and writes LOG_DIR/campaign.json. If a framework has been
// rebuilt since the last time, the rounds get new folders (LOG_DIR_build2, …). A usage error if the
// campaign is running already. Blocks signals, so no other thread may run.
Result<int> run_campaign(const Campaign& campaign, const RunnerOptions& options);

// Runs a campaign in a child process with a session of its own, which survives a logout. `run` gets
// a function to call once the campaign runs. Returns the child's id at that time, or the error.
using DetachedRun = std::function<Result<int>(const std::function<void()>& started)>;
Result<pid_t> run_in_background(const DetachedRun& run);

// The contents of campaign.json, or null if there is none.
nlohmann::json read_progress(const Campaign& campaign);
// A log for a campaign that starts now.
std::filesystem::path new_log(const std::filesystem::path& log_dir);
// The newest log, or an empty path if there is none.
std::filesystem::path latest_log(const std::filesystem::path& log_dir);

}  // namespace assay
