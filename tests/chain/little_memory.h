#pragma once

// A control group with little memory, of version 1 or 2.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "cli_run.h"

namespace assay::chain {

class LittleMemory {
 public:
  explicit LittleMemory(const std::string& bytes) {
    const std::string name = "assay-test-" + std::to_string(::getpid());
    for (const auto& [tree, file] : {std::pair{"/sys/fs/cgroup/memory/", "memory.limit_in_bytes"},
                                     std::pair{"/sys/fs/cgroup/", "memory.max"}}) {
      group_ = tree + name;
      std::error_code error;
      if (!std::filesystem::create_directory(group_, error)) continue;
      if (std::filesystem::exists(group_ / file)) {
        std::ofstream(group_ / file) << bytes;
        if (slurp(group_ / file) == bytes + "\n") return;
      }
      ::rmdir(group_.c_str());
    }
    group_.clear();
  }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;
  ~LittleMemory() {
    if (!group_.empty()) comes_true([&] { return ::rmdir(group_.c_str()) == 0; });
  }

  // Why there is none here, or "".
  std::string why_not() const {
    return group_.empty() ? "needs a control group for memory that this user may make" : "";
  }
  // The command that runs inside of it.
  std::vector<std::string> inside(const std::vector<std::string>& argv) const {
    std::vector<std::string> all{"sh", "-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"",
                                 group_.string()};
    all.insert(all.end(), argv.begin(), argv.end());
    return all;
  }

 private:
  std::filesystem::path group_;
};

}  // namespace assay::chain
