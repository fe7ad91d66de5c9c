#include "chain/stage/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"

namespace assay::chain::stage {
namespace {

constexpr int kMostRounds = 100;  // processes may start others while they are killed
constexpr std::size_t kChunk = 1 << 14;
constexpr std::size_t kLongestMark = 128;

// Whether the file contains the mark.
bool has_mark(const char* path, std::string_view mark) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  std::array<char, kLongestMark + kChunk> text;
  std::size_t kept = 0;  // the end of the chunk before, in which a mark may begin
  bool found = false;
  while (!found) {
    const ssize_t got = ::read(file, text.data() + kept, kChunk);
    if (got <= 0) break;
    const std::size_t size = kept + static_cast<std::size_t>(got);
    found = std::string_view(text.data(), size).find(mark) != std::string_view::npos;
    kept = std::min(size, mark.size());
    std::memmove(text.data(), text.data() + size - kept, kept);
  }
  ::close(file);
  return found;
}

// The process id that a name in /proc is; 0 for other names.
pid_t id_of(const char* name) {
  pid_t id = 0;
  for (; *name != '\0'; ++name) {
    if (*name < '0' || *name > '9') return 0;
    id = id * 10 + (*name - '0');
  }
  return id;
}

bool kill_if_marked(const char* name, std::string_view mark) {
  const pid_t id = id_of(name);
  if (id <= 1 || id == ::getpid()) return false;
  std::array<char, 64> path{};
  const std::size_t length = std::min(std::strlen(name), std::size_t{20});
  std::memcpy(path.data(), "/proc/", 6);
  std::memcpy(path.data() + 6, name, length);
  std::memcpy(path.data() + 6 + length, "/environ", 9);
  return has_mark(path.data(), mark) && ::kill(id, SIGKILL) == 0;
}

bool kill_some(std::string_view mark) {
  const int folder = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  alignas(dirent64) std::array<char, 1 << 15> entries{};
  bool killed = false;
  while (true) {
    const long size = ::syscall(SYS_getdents64, folder, entries.data(), entries.size());
    if (size <= 0) break;
    for (long at = 0; at < size;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      killed = kill_if_marked(entry->d_name, mark) || killed;
      at += entry->d_reclen;
    }
  }
  ::close(folder);
  return killed;
}

}  // namespace

std::string mark_of_run() { return fmt::format("{}.{}.", ::getpid(), monotonic_ns()); }

std::string mark_of_stage(std::string_view run) {
  return fmt::format("{}{}.", run, monotonic_ns());
}

std::string environment_entry(std::string_view mark) {
  const char* const outer = std::getenv(std::string(kMarkVariable).c_str());
  return fmt::format("{}={}{}", kMarkVariable, outer != nullptr ? outer : "", mark);
}

bool is_mark(std::string_view entry) {
  return entry.starts_with(kMarkVariable) && entry.substr(kMarkVariable.size()).starts_with('=');
}

void kill_marked(std::string_view mark) noexcept {
  if (mark.empty() || mark.size() > kLongestMark) return;
  for (int round = 0; round < kMostRounds && kill_some(mark); ++round) continue;
}

}  // namespace assay::chain::stage
