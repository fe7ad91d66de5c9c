#pragma once

// A run's SQLite file, read while another process writes it and has it locked.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"
#include "store/run_totals.h"
#include "store/sqlite_store.h"

namespace assay {

// Calls `read` with the file as it stands at one moment, and again, from the beginning, where the
// writer has changed meanwhile what was being read: what an earlier call has gathered is void then.
// Nothing is written and nobody waits; an error says that the writer was busy all the time. Not for
// a process that has the file open itself: the system would take its lock away.
Status read_beside_writer(const std::filesystem::path& file,
                          const std::function<Status(Database&)>& read);

// A finished case that owns what it shows.
struct KeptCase {
  FinishedCase finished;  // its text and record are those below
  std::string text;
  std::vector<std::uint8_t> record;
};

// What is new in a run's folder.
struct RunNews {
  std::map<std::string, std::string> properties;
  StoreCounts counts;
  std::vector<KeptCase> cases;
  bool begun_again = false;  // results were taken back: what was known before is void
};

// Reads a run's folder piece by piece.
class FolderWatch {
 public:
  // Records are read of failed cases and of those that have a flag, and of one in `sampled` others.
  FolderWatch(const std::filesystem::path& folder, int sampled)
      : file_(folder / SqliteStore::kFileName), sampled_(sampled) {}

  // Up to `most` cases that have finished since the last call, in their order.
  Result<RunNews> news(std::size_t most);
  // The next call gives the first cases again.
  void begin_again() { place_ = Place(); }
  // The lines that are no cases.
  Result<std::vector<InvalidLine>> invalid() const;

 private:
  struct Place {
    std::int64_t sequence = 0;  // of the last case that was read
    std::int64_t id = 0;
    std::int64_t at_ms = 0;
    std::uint64_t cases = 0;
  };
  Status read(Database& database, std::size_t most, Place& place, RunNews& news) const;

  std::filesystem::path file_;
  int sampled_;
  Place place_;
};

// Its name is the folder's.
Result<RunTotals> totals_of_folder(const std::filesystem::path& folder);

}  // namespace assay
