#pragma once

// Which files a stage has made. A file counts as made when it was not there before the stage, or is
// another one since (size, time of change or inode differ): a stale checkpoint never does.

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

// Every file whose path starts with `prefix` (a folder, a file, or a file's name without its
// ending), folders walked down; relative prefixes are taken from `folder`.
FileMarks mark_files(const std::string& folder, const std::string& prefix);

// Those of `after` that `before` has not, or has otherwise.
FileMarks made_between(const FileMarks& before, const FileMarks& after);

// The files that a path with `*` in its parts matches, the newest last.
std::vector<std::string> files_like(const std::string& pattern);

// As text for the store, and back; text that is none gives no files.
std::string marks_to_json(const FileMarks& marks);
FileMarks marks_from_json(const std::string& text);

}  // namespace assay::chain::stage
