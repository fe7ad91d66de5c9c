#include "store/past_folders.h"

#include <algorithm>

#include "store/folder_watch.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// A larger file takes too long to read for one row of a table.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{2} << 30;

}  // namespace

std::vector<RunFolder> runs_in(const fs::path& folder) {
  std::vector<RunFolder> found;
  std::error_code error;
  for (const auto& each : fs::directory_iterator(folder, error)) {
    const fs::path file = each.path() / SqliteStore::kFileName;
    if (each.is_symlink(error) || !fs::is_regular_file(file, error)) continue;
    const auto log = fs::last_write_time(file.string() + "-wal", error);  // the least time if none
    found.push_back(
        {each.path(), std::max(fs::last_write_time(file, error), log), fs::file_size(file, error)});
  }
  std::ranges::sort(found, {},
                    [](const RunFolder& run) { return std::pair(run.written, run.path); });
  return found;
}

std::vector<RunTotals> runs_beside(const fs::path& folder) {
  std::error_code error;
  const fs::path own = fs::canonical(folder, error);
  std::vector<RunFolder> found = runs_in(own.parent_path());
  std::erase_if(found,
                [&](const RunFolder& run) { return run.path == own || run.bytes > kMostBytes; });
  if (found.size() > kPastRuns) found.erase(found.begin(), found.end() - kPastRuns);
  std::vector<RunTotals> runs;
  for (const RunFolder& run : found) {
    auto totals = totals_of_folder(run.path);
    if (totals) runs.push_back(std::move(*totals));
  }
  return runs;
}

std::string folder_name(const fs::path& folder) {
  std::error_code error;
  return fs::canonical(folder, error).filename();
}

}  // namespace assay
