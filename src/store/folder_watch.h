#pragma once

// Follows a run's SQLite file while another process writes it.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "sqlite/database.h"
#include "store/run_totals.h"
#include "store/sqlite_store.h"

namespace assay {

// What FolderWatch::news() returns.
struct RunNews {
  std::map<std::string, std::string> properties;
  StoreCounts counts;
  std::vector<FinishedCase> cases;
  bool begun_again = false;  // results were removed: the caller must forget all earlier cases
};

// Follows a run's folder: each call of news() reads the cases that finished since the last one.
class FolderWatch {
 public:
  // Reads the records of failed and flagged cases, and of one in `sampled` other cases.
  FolderWatch(const std::filesystem::path& folder, int sampled)
      : file_(folder / SqliteStore::kFileName), sampled_(sampled) {}

  // The run's properties, its counts, and up to `most` cases that finished since the last call, in
  // the order in which they finished. An error if the folder holds no readable run.
  Result<RunNews> news(std::size_t most);
  // The next call of news() starts with the first case.
  void begin_again() { place_ = Place(); }
  // The invalid lines of the corpus.
  Result<std::vector<InvalidLine>> invalid() const;

 private:
  struct Place {
    std::int64_t sequence = 0;  // of the last case that was read
    std::int64_t id = 0;        // likewise
    std::int64_t at_ms = 0;     // likewise
    std::uint64_t cases = 0;    // read so far
  };
  Status read(Database& database, std::size_t most, Place& place, RunNews& news) const;

  std::filesystem::path file_;
  int sampled_;
  Place place_;
};

// The totals of the run in this folder, under the folder's name. An error if it cannot be read.
Result<RunTotals> totals_of_folder(const std::filesystem::path& folder);

}  // namespace assay
