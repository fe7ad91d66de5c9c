#pragma once

// Reads the run of a page: from a database while claimers work on it, or from a folder.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "serve/case_list.h"

namespace assay {

// The data of a page, which grow with each poll(). Used by one thread.
class RunSource {
 public:
  RunSource() = default;
  RunSource(const RunSource&) = delete;
  RunSource& operator=(const RunSource&) = delete;
  virtual ~RunSource() = default;

  // Reads what is new. True if there is more to read at once. The page shows an error; the next
  // poll() tries again.
  virtual Result<bool> poll() = 0;
  // The data so far: those of LiveRun::json(), and "version", "planned", "unfinished", ….
  virtual nlohmann::json json() const = 0;
  // The parts of the list of cases.
  virtual Result<std::vector<CaseList::Part>> parts() = 0;
};

inline constexpr int kPageVersion = 3;

// Opens the run at an address (postgresql://…) or in a folder, without writing there. Another
// process may be working on it. An error if there is no run.
Result<std::unique_ptr<RunSource>> open_source(const std::string& where);

}  // namespace assay
