#pragma once

// Where a page gets a run from: a database in which others work, or the folder of a run.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "serve/case_list.h"

namespace assay {

// All that the page shows, grown poll by poll. Used by one thread.
class RunSource {
 public:
  RunSource() = default;
  RunSource(const RunSource&) = delete;
  RunSource& operator=(const RunSource&) = delete;
  virtual ~RunSource() = default;

  // Reads on where it stopped. True: there is more to read at once. An error is shown on the page,
  // and the next poll tries again.
  virtual Result<bool> poll() = 0;
  // What is known by now, "version" and "planned" and "unfinished" and LiveRun's among it.
  virtual nlohmann::json json() const = 0;
  // Of the list of cases to look at.
  virtual Result<std::vector<CaseList::Part>> parts() = 0;
};

inline constexpr int kPageVersion = 2;

// `where` is an address (postgresql://…) or a folder. Nothing is ever written there. A database
// must be there and hold a run; a folder's run is read also while another process works on it.
Result<std::unique_ptr<RunSource>> open_source(const std::string& where);

}  // namespace assay
