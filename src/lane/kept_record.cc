#include "lane/kept_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "base/secret.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// systemd's folder of the user; else one of our own in the folder for temporary files.
Result<fs::path> secrets_folder() {
  std::error_code ignored;
  fs::path folder;
  if (const char* named = std::getenv("XDG_RUNTIME_DIR"); named != nullptr && *named == '/') {
    folder = fs::path(named) / "assay";
  } else {
    folder = fs::temp_directory_path(ignored) / fmt::format("assay-{}", ::geteuid());
  }
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return errno_error("cannot make " + folder.string());
  }
  struct stat facts {};
  if (::lstat(folder.c_str(), &facts) != 0) return errno_error("cannot read " + folder.string());
  if (!S_ISDIR(facts.st_mode) || !is_ours_alone(facts)) {
    return fail(fmt::format("{} is open to other users; remove it", folder.string()));
  }
  return folder;
}

// Whether the open file is still the one at the path: a server that ends removes its file.
bool is_still_at(const fs::path& path, const struct stat& opened) {
  struct stat there {};
  return ::lstat(path.c_str(), &there) == 0 && there.st_ino == opened.st_ino &&
         there.st_dev == opened.st_dev;
}

// Removes the records of servers that were killed: a server that ends by itself removes its own.
void forget_killed(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    const Fd file(::open(entry.path().c_str(), kFlags));
    if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;  // a run is using it
    const auto record = read_kept_record(entry.path());
    const char state = record ? process_state(record->pid) : 0;
    if (state == 0 || state == 'Z') fs::remove(entry.path(), error);
  }
}

}  // namespace

char process_state(pid_t pid) {
  const std::string stat = read_file(fmt::format("/proc/{}/stat", pid)).value_or("");
  const std::size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && name_end + 2 < stat.size() ? stat[name_end + 2] : 0;
}

std::optional<KeptRecord> read_kept_record(const fs::path& file) {
  const auto text = read_file(file);
  if (!text) return std::nullopt;
  KeptRecord record;
  std::string word;
  std::istringstream words(*text);
  if (!(words >> record.secret >> record.pid)) return std::nullopt;
  record.ready = (words >> word) && word == "ready";
  return record;
}

Result<KeptFile> KeptFile::lock(const std::string& name, std::chrono::milliseconds limit) {
  constexpr std::chrono::milliseconds kPause{10};
  ASSAY_TRY(const fs::path folder, secrets_folder());
  forget_killed(folder);
  const auto give_up = std::chrono::steady_clock::now() + limit;
  while (true) {
    KeptFile file;
    file.path_ = folder / name;
    file.fd_ = Fd(::open(file.path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
                         S_IRUSR | S_IWUSR));
    if (!file.fd_) return errno_error("cannot open " + file.path_.string());
    struct stat facts {};
    if (::fstat(file.fd_.get(), &facts) != 0 || !S_ISREG(facts.st_mode) || !is_ours_alone(facts)) {
      return fail(fmt::format("{} is open to other users; remove it", file.path_.string()));
    }
    const bool locked = ::flock(file.fd_.get(), LOCK_EX | LOCK_NB) == 0;
    if (locked && is_still_at(file.path_, facts)) return file;
    if (std::chrono::steady_clock::now() > give_up) {
      return fail(fmt::format("another run holds {}", file.path_.string()));
    }
    if (!locked) std::this_thread::sleep_for(kPause);
  }
}

Status KeptFile::write(const KeptRecord& record) const {
  const std::string text = fmt::format("{} {}\n", record.secret, record.pid);
  if (::ftruncate(fd_.get(), 0) != 0 ||
      ::pwrite(fd_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return errno_error("cannot write " + path_.string());
  }
  return {};
}

}  // namespace assay
