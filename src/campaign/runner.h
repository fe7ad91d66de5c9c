#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "campaign/campaign.h"

namespace assay::campaign {

struct RunnerOptions {
  std::string self;                    // path of assay
  std::vector<std::string> arguments;  // words after the flags of every round
  std::function<void()> started;       // called once the campaign runs; may be empty
};

// Runs every unit, until no host is left or SIGTERM or SIGINT arrives. Shows the log, which is
// LOG_DIR/log_*.log, on stdout. Returns the exit code: for rounds the worst one, for chains 1 after
// a new failure; 130 after a signal. Holds the pid file. If a framework has been rebuilt since the
// last time, rounds get new folders (LOG_DIR_build2, …). A usage error if the campaign is running
// already. Blocks signals, so no other thread may run.
Result<int> run_campaign(const Campaign& campaign, const RunnerOptions& options);

// Runs a campaign in a child process with a session of its own, which survives a logout. Returns
// the child's id once the campaign runs, or the error.
Result<pid_t> run_in_background(const Campaign& campaign, RunnerOptions options);

// The newest log, or an empty path if there is none.
std::filesystem::path latest_log(const std::filesystem::path& log_dir);

// Appends to a log in several files: PATH is the newest, PATH.1 the one before it. Keeps `files`
// files of at most `file_bytes` bytes each; a longer line has a file of its own.
Status append_to_log(const std::filesystem::path& path, std::string_view text,
                     std::uint64_t file_bytes = 64U << 20U, int files = 8);

}  // namespace assay::campaign
