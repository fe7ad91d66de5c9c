#pragma once

// A file that appears under its name only when it is complete. Until then it has no name, so a
// killed process leaves nothing behind. On a file system without nameless files it has a temporary
// name in the same folder; the destructor removes that file.

#include <filesystem>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace assay {

class AtomicFile {
 public:
  // Writes a device, a terminal or a pipe with a reader, such as /dev/stdout, in place. What else
  // has the name is replaced and never followed: links, and what another user has put there.
  static Result<AtomicFile> create(const std::filesystem::path& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  int fd() const { return fd_.get(); }
  Status write(std::string_view text);
  // Gives the file its name, in place of an earlier file. Call it once, after the last write.
  Status commit();

 private:
  AtomicFile() = default;
  Status name_unnamed();

  Fd fd_;
  bool in_place_ = false;
  std::filesystem::path path_;
  std::filesystem::path part_;  // empty: nothing to remove
};

// Writes a file atomically; replaces an earlier one.
Status write_file(const std::filesystem::path& path, std::string_view text);

// An error if the path or a folder on it is a link that neither our user nor root has made.
Status check_links(const std::filesystem::path& path);

// Makes the folder, and those above it, unless they are there. Checks the links first.
Status make_folder(const std::filesystem::path& folder);

}  // namespace assay
