#pragma once

// The file that leads to a kept server (warm_interpreter.h). It lies in a folder that only our user
// can enter, and holds the server's secret, which is its address: another user can neither guess
// that nor listen there first.

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace assay {

struct KeptRecord {
  std::string secret;
  pid_t pid = 0;
  bool ready = false;  // it has imported its framework, and answers at once
};

// The letter of the process's state, such as 'T' (stopped) or 'Z' (ended, not reaped); 0: there is
// no such process.
char process_state(pid_t pid);

// What the file says; nullopt for a file without a record.
std::optional<KeptRecord> read_kept_record(const std::filesystem::path& file);

// The file, locked against other runs until this object goes. The server itself marks its record
// as ready, and removes the file when it ends (python/assay/warm_interpreter.py).
class KeptFile {
 public:
  // An error: the folder or the file is not our user's alone, or another run holds the lock for
  // longer than `limit`.
  static Result<KeptFile> lock(const std::string& name, std::chrono::milliseconds limit);

  const std::filesystem::path& path() const { return path_; }
  Status write(const KeptRecord& record) const;

 private:
  std::filesystem::path path_;
  Fd fd_;
};

}  // namespace assay
