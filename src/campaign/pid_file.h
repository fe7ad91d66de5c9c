#pragma once

// The pid file of a campaign has the process id. The process holds a lock of the file: a file
// without a lock names no process, though another one may have been given the same id.

#include <sys/types.h>

#include <filesystem>
#include <optional>

#include "base/fd.h"
#include "base/result.h"

namespace assay::campaign {

// Writes the file for this process and locks it. A usage error if the process that the file names
// is alive. Keep the descriptor, which has the lock, and remove the file at the end.
Result<Fd> take_pid_file(const std::filesystem::path& path);

struct RunningProcess {
  pid_t pid = -1;
  double seconds = 0;  // since the file was written
};

// The process that the file names, or nothing if there is no file or the process has ended.
std::optional<RunningProcess> running_process(const std::filesystem::path& path);

// Sends a signal to the process that the file names. False: there is no such process.
Result<bool> signal_process(const std::filesystem::path& path, int signal);

}  // namespace assay::campaign
