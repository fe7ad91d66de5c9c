#include "chain/stage/artifacts.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/glob.h"
#include "base/json.h"

namespace assay::chain::stage {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFiles = 10'000;  // a training folder has tens

void mark(const fs::path& path, FileMarks& out) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || out.size() >= kMaxFiles) return;
  // Uses ctime instead of mtime, because a copy that preserves mtime is still a new file.
  out[path.string()] = {static_cast<std::uint64_t>(info.st_size),
                        info.st_ctim.tv_sec * 1'000'000'000LL + info.st_ctim.tv_nsec, info.st_ino};
}

void walk(const fs::path& path, FileMarks& out) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return mark(path, out);
  fs::recursive_directory_iterator walker(path, fs::directory_options::skip_permission_denied,
                                          error);
  while (!error && walker != fs::recursive_directory_iterator()) {
    mark(walker->path(), out);
    walker.increment(error);
  }
}

}  // namespace

FileMarks mark_files(const std::string& folder, const std::string& prefix) {
  FileMarks marks;
  if (prefix.empty()) return marks;
  fs::path start = fs::path(folder.empty() ? "." : folder) / prefix;
  start = start.lexically_normal();
  if (!start.has_filename()) start = start.parent_path();
  const std::string name = start.filename().string();
  std::error_code error;
  fs::directory_iterator siblings(start.parent_path().empty() ? "." : start.parent_path(), error);
  while (!error && siblings != fs::directory_iterator()) {
    if (siblings->path().filename().string().starts_with(name)) walk(siblings->path(), marks);
    siblings.increment(error);
  }
  return marks;
}

FileMarks made_between(const FileMarks& before, const FileMarks& after) {
  FileMarks made;
  for (const auto& [path, mark] : after) {
    const auto old = before.find(path);
    if (old == before.end() || old->second != mark) made.emplace(path, mark);
  }
  return made;
}

std::string marks_to_json(const FileMarks& marks) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [path, mark] : marks) {
    list.push_back(
        {{"path", path}, {"size", mark.size}, {"changed", mark.changed_ns}, {"inode", mark.inode}});
  }
  return dumped(list);
}

FileMarks marks_from_json(const std::string& text) {
  FileMarks marks;
  const nlohmann::json list = parse_json(text);
  if (!list.is_array()) return marks;
  for (const nlohmann::json& entry : list) {
    if (!entry.is_object() || !entry.contains("path")) return {};
    marks[entry.value("path", "")] = {entry.value("size", std::uint64_t{0}),
                                      entry.value("changed", std::int64_t{0}),
                                      entry.value("inode", std::uint64_t{0})};
  }
  return marks;
}

std::vector<std::string> files_like(const std::string& pattern) {
  std::vector<std::string> files = paths_like(pattern);
  const auto time_of = [](const std::string& path) {
    std::error_code error;
    return fs::last_write_time(path, error);
  };
  std::ranges::stable_sort(files, {}, time_of);
  return files;
}

}  // namespace assay::chain::stage
