#include "base/private_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/secret.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// The folder, locked, if it is our user's alone and no process uses it. A link is not followed.
Fd open_unused(const fs::path& folder, bool is_new = false) {
  Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts {};
  if (!opened || ::fstat(opened.get(), &facts) != 0 || !is_ours_alone(facts)) return {};
  // Some file systems lock no folders; nobody removes a folder of another process there.
  const bool locked = ::flock(opened.get(), LOCK_EX | LOCK_NB) == 0;
  return locked || (is_new && errno != EWOULDBLOCK) ? std::move(opened) : Fd();
}

// By its descriptor, so that nobody can put another folder in its place meanwhile.
void remove(const fs::path& folder, const Fd& opened) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/self/fd/{}", opened.get()),
                                                  fs::directory_options::none, error)) {
    fs::remove_all(entry.path(), error);
  }
  ::rmdir(folder.c_str());
}

void remove_unused(const fs::path& temporary, const std::string& prefix) {
  std::error_code error;
  for (auto entry = fs::directory_iterator(temporary, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(prefix)) continue;
    if (const Fd opened = open_unused(entry->path())) remove(entry->path(), opened);
  }
}

}  // namespace

Result<PrivateFolder> PrivateFolder::make(std::string_view purpose, fs::path parent) {
  constexpr int kTries = 10;  // another process may remove the folder before we have locked it
  std::error_code error;
  if (parent.empty()) parent = fs::temp_directory_path(error);
  if (error) return fail("there is no folder for temporary files: " + error.message());
  const std::string prefix = fmt::format("assay-{}-", purpose);
  remove_unused(parent, prefix);
  for (int tries = 0; tries < kTries; ++tries) {
    std::string name = parent / (prefix + "XXXXXX");
    if (::mkdtemp(name.data()) == nullptr) return errno_error("cannot make " + name);
    PrivateFolder made;
    made.opened_ = open_unused(name, true);
    made.path_ = name;
    struct stat facts {};
    if (made.opened_ && ::fstat(made.opened_.get(), &facts) == 0 && facts.st_nlink > 0) return made;
  }
  return fail("cannot lock a folder in " + parent.string());
}

PrivateFolder::~PrivateFolder() {
  if (opened_) remove(path_, opened_);
}

}  // namespace assay
