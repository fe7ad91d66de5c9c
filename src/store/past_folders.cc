#include "store/past_folders.h"

#include <algorithm>

#include "store/folder_watch.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// A larger file takes too long to read for one row of a table.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{2} << 30;

}  // namespace

std::vector<RunTotals> runs_beside(const fs::path& folder) {
  std::error_code error;
  const fs::path own = fs::canonical(folder, error);
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  for (const auto& each : fs::directory_iterator(own.parent_path(), error)) {
    const fs::path file = each.path() / SqliteStore::kFileName;
    std::error_code none;
    if (each.path() == own || !fs::is_regular_file(file, none)) continue;
    if (fs::file_size(file, none) > kMostBytes) continue;
    found.emplace_back(fs::last_write_time(file, none), each.path());
  }
  std::sort(found.rbegin(), found.rend());
  if (found.size() > kPastRuns) found.resize(kPastRuns);
  std::vector<RunTotals> runs;
  std::reverse(found.begin(), found.end());  // oldest first
  for (const auto& [time, path] : found) {
    auto totals = totals_of_folder(path);
    if (totals) runs.push_back(std::move(*totals));
  }
  return runs;
}

std::string folder_name(const fs::path& folder) {
  std::error_code error;
  return fs::canonical(folder, error).filename();
}

}  // namespace assay
