#include "cli/trust.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/fd.h"
#include "base/text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrustVariable = "ASSAY_SAFE_FOLDER";

std::string user_name(uid_t user) {
  const passwd* const entry = ::getpwuid(user);
  return entry != nullptr ? entry->pw_name : std::to_string(user);
}

// Whether only our user is in the group: many systems give each user a group of their own.
bool is_private_group(gid_t group) {
  if (group == 0) return true;
  const passwd* const user = ::getpwuid(::geteuid());
  if (user == nullptr || user->pw_gid != group) return false;
  const std::string name = user->pw_name;  // getgrgid may overwrite it
  const ::group* const entry = ::getgrgid(group);
  return entry != nullptr && name == entry->gr_name;
}

// Why other users could change this file, folder or link; empty if only our user and root can.
std::string strangers_of(const struct stat& facts) {
  if (facts.st_uid != ::geteuid() && facts.st_uid != 0) {
    return fmt::format("belongs to user {}", user_name(facts.st_uid));
  }
  if (S_ISLNK(facts.st_mode)) return {};  // its mode says nothing
  if ((facts.st_mode & S_IWOTH) != 0) return "can be written by every user";
  if ((facts.st_mode & S_IWGRP) != 0 && !is_private_group(facts.st_gid)) {
    return fmt::format("can be written by group {}", facts.st_gid);
  }
  return {};
}

// In a sticky folder, other users can neither replace nor remove a file of ours.
std::string strangers_of_holder(const fs::path& folder) {
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0) return "cannot be read";
  if ((facts.st_mode & S_ISVTX) != 0) facts.st_mode &= ~static_cast<mode_t>(S_IWOTH | S_IWGRP);
  return strangers_of(facts);
}

// Whether ASSAY_SAFE_FOLDER names the folder: absolute paths separated by colons, or * for all, as
// git's safe.directory.
bool is_trusted(const fs::path& folder) {
  const char* trusted = std::getenv(kTrustVariable);
  if (trusted == nullptr) return false;
  for (const std::string& each : split_at(trusted, ':')) {
    std::error_code ignored;
    if (each == "*" || (!each.empty() && fs::equivalent(each, folder, ignored))) return true;
  }
  return false;
}

}  // namespace

Result<TrustedFile> read_trusted(const char* name) {
  std::error_code error;
  const fs::path here = fs::current_path(error);
  const auto refuse = [&](std::string_view what, const std::string& why) {
    return fail(fmt::format(
        "{} is not read: {} {}, and it names programs that run with your rights. If you trust it, "
        "name it (--settings={}) or its folder ({}={})",
        (here / name).string(), what, why, name, kTrustVariable, here.string()));
  };
  struct stat link {};
  if (::lstat(name, &link) != 0) {
    if (errno == ENOENT) return TrustedFile{};
    return errno_error(fmt::format("cannot read {}", name));
  }
  const bool trusted = is_trusted(here);
  if (const std::string why = strangers_of(link); !trusted && S_ISLNK(link.st_mode) && !why.empty())
    return refuse("the link", why);
  TrustedFile found{fs::canonical(name, error), {}};
  if (error) return fail(fmt::format("cannot read {}: {}", name, error.message()));
  const Fd file(::open(found.path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0) {
    return errno_error(fmt::format("cannot read {}", found.path.string()));
  }
  if (const std::string why = strangers_of(facts); !trusted && !why.empty()) {
    return refuse("it", why);
  }
  for (const fs::path& holder : {here, found.path.parent_path()}) {
    const std::string why = strangers_of_holder(holder);
    if (!trusted && !why.empty()) return refuse("its folder", why);
  }
  // Reads by descriptor, because another file may have replaced the checked one.
  ASSAY_TRY(found.text, read_file(fmt::format("/proc/self/fd/{}", file.get())));
  return found;
}

Status check_code_folder(const fs::path& folder, const std::string& named_by) {
  struct stat link {};
  struct stat facts {};
  if (::lstat(folder.c_str(), &link) != 0 || ::stat(folder.c_str(), &facts) != 0) return {};
  const std::string of_link = strangers_of(link);
  const std::string why = of_link.empty() ? strangers_of(facts) : of_link;
  if (why.empty() || is_trusted(folder)) return {};
  return usage_error(fmt::format(
      "{}: {} {}, and code of it would run with your rights; if you trust it, set {}={}", named_by,
      folder.string(), why, kTrustVariable, folder.string()));
}

}  // namespace assay
