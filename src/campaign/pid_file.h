#pragma once

// Which process runs a campaign, as others can ask: its number, when it started and since which
// start of the machine. So another process that has got the same number is not taken for it.

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/fd.h"
#include "base/result.h"

namespace assay {

// Written for this process, and removed with it. While it lives it holds a lock on the file, so
// that of two who start at once one is refused.
class PidFile {
 public:
  static Result<PidFile> take(const std::filesystem::path& path);
  PidFile(PidFile&& other) noexcept;
  PidFile& operator=(PidFile&&) = delete;
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;
  ~PidFile();

 private:
  explicit PidFile(Fd locked) : locked_(std::move(locked)) {}
  Fd locked_;
  std::filesystem::path path_;  // empty: nothing is removed
};

struct RunningProcess {
  pid_t pid = -1;
  double seconds = 0;  // since it started
};

// The process of the file; nothing: there is no file, or its process has ended.
std::optional<RunningProcess> running_process(const std::filesystem::path& path);

// Signals that process. False: it has ended.
Result<bool> signal_process(const std::filesystem::path& path, int signal);

}  // namespace assay
