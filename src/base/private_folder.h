#pragma once

// A temporary folder that no other user can enter (mode 0700, a random name). It goes with this
// object. A process that is killed leaves it, without its lock; the next one removes it.

#include <filesystem>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace assay {

class PrivateFolder {
 public:
  PrivateFolder() = default;
  // Makes assay-PURPOSE-… in `parent` (default: the folder for temporary files), after removing
  // folders of that purpose that our user's killed processes have left.
  static Result<PrivateFolder> make(std::string_view purpose, std::filesystem::path parent = {});

  PrivateFolder(PrivateFolder&& other) noexcept { swap(other); }
  PrivateFolder& operator=(PrivateFolder&& other) noexcept {
    swap(other);
    return *this;
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  void swap(PrivateFolder& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(opened_, other.opened_);
  }

  std::filesystem::path path_;
  Fd opened_;  // of the folder, locked
};

}  // namespace assay
