#pragma once

// Finds the files that a stage made. A file counts if it did not exist before the stage, or if its
// size, ctime or inode changed. So a stale checkpoint never counts.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace assay::chain::stage {

struct FileMark {
  std::uint64_t size = 0;
  std::int64_t changed_ns = 0;
  std::uint64_t inode = 0;
  bool operator==(const FileMark&) const = default;
};

// Files by path.
using FileMarks = std::map<std::string, FileMark>;

// Returns every file whose path starts with `prefix` (a folder, a file, or a file's name without
// extension), recursively. A relative prefix starts at `folder`.
FileMarks mark_files(const std::string& folder, const std::string& prefix);

// Returns the files of `after` that are new or changed since `before`.
FileMarks made_between(const FileMarks& before, const FileMarks& after);

// Returns the files that match a path with `*` in its parts, newest last.
std::vector<std::string> files_like(const std::string& pattern);

// Converts to text for the store and back. Damaged text gives no files.
std::string marks_to_json(const FileMarks& marks);
FileMarks marks_from_json(const std::string& text);

}  // namespace assay::chain::stage
