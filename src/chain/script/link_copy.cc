#include "chain/script/link_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <string_view>
#include <system_error>
#include <vector>

namespace assay::chain::script {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kSmallFile = 64 << 10;
constexpr std::array<std::string_view, 7> kWritten{".sh",   ".txt", ".yml", ".yaml",
                                                   ".json", ".cfg", ".md5"};
constexpr std::size_t kLargeFolder = 2'000;  // a folder with more entries holds data
constexpr std::size_t kMostEntries = 50'000;

// A log or a result of an earlier run. A link to it would lead the script out of the copy when it
// writes there.
bool is_result(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::string folder = path.parent_path().filename().string();
  return name.ends_with(".log") || name.ends_with("_log") || name.ends_with("_speed") ||
         name.ends_with("_profiling") ||
         (folder == "test_tipc" && (name == "output" || name == "assay"));
}

struct Folder {
  fs::path from;
  fs::path to;
};

class LinkCopy {
 public:
  Status copy(const fs::path& from, const fs::path& to) {
    folders_.push_back({from, to});
    while (!folders_.empty()) {
      const Folder folder = std::move(folders_.front());
      folders_.pop_front();
      ASSAY_CHECK(copy_folder(folder));
    }
    return {};
  }

 private:
  // Near folders first, so that data deep below cannot use up the number of entries.
  Status copy_folder(const Folder& folder) {
    std::error_code error;
    std::vector<fs::directory_entry> entries;
    for (fs::directory_iterator it(folder.from, error); !error && it != fs::directory_iterator();
         it.increment(error)) {
      entries.push_back(*it);
      if (entries.size() > kLargeFolder) break;
    }
    entries_ += entries.size();
    if (entries.size() > kLargeFolder || entries_ > kMostEntries) {
      fs::create_symlink(folder.from, folder.to, error);
    } else {
      fs::create_directories(folder.to, error);
      for (const fs::directory_entry& entry : entries) copy_entry(entry, folder.to);
    }
    if (!error) return {};
    return fail(fmt::format("cannot write {}: {}", folder.to.string(), error.message()));
  }

  void copy_entry(const fs::directory_entry& entry, const fs::path& folder) {
    std::error_code error;
    const fs::path to = folder / entry.path().filename();
    if (is_result(entry.path())) return;
    if (entry.is_symlink(error)) {
      const fs::path target = fs::read_symlink(entry.path(), error);
      const bool stays = target.is_relative() && *target.begin() != "..";
      fs::create_symlink(stays ? target : fs::weakly_canonical(entry.path(), error), to, error);
    } else if (entry.is_directory(error)) {
      // TMPDIR may lie in the project, and the copy in it.
      const std::string name = to.filename();
      if (name != ".git" && !name.starts_with("assay-shim-")) {
        folders_.push_back({entry.path(), to});
      }
    } else if (is_written(entry)) {
      fs::copy_file(entry.path(), to, error);
      fs::permissions(to, fs::perms::owner_write, fs::perm_options::add, error);
    } else {
      fs::create_symlink(entry.path(), to, error);
    }
  }

  static bool is_written(const fs::directory_entry& entry) {
    std::error_code error;
    const std::string extension = entry.path().extension().string();
    return std::ranges::find(kWritten, extension) != kWritten.end() &&
           entry.is_regular_file(error) && entry.file_size(error) <= kSmallFile;
  }

  std::deque<Folder> folders_;
  std::size_t entries_ = 0;
};

}  // namespace

Status copy_with_links(const fs::path& from, const fs::path& to) {
  return LinkCopy().copy(from, to);
}

}  // namespace assay::chain::script
