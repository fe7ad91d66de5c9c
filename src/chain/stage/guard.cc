#include "chain/stage/guard.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "chain/stage/leftovers.h"

namespace assay::chain::stage {
namespace {

constexpr std::size_t kMaxGroups = 4096;  // stages at a time; further ones are not guarded

// The guard process. It uses only system calls, as required after a fork. Each word is the id of a
// group that runs, or its negative when it has ended.
[[noreturn]] void keep_guard(int words, std::string_view mark) {
  ::setsid();  // keeps the terminal's signals away
  ::prctl(PR_SET_NAME, "assay-guard");
  std::array<pid_t, kMaxGroups> groups{};
  pid_t word = 0;
  while (true) {
    const ssize_t got = ::read(words, &word, sizeof word);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof word) break;  // words are written atomically, so a partial one is the end
    const pid_t from = word > 0 ? 0 : -word;
    const auto place = std::find(groups.begin(), groups.end(), from);
    if (place != groups.end()) *place = word > 0 ? word : 0;
  }
  for (const pid_t group : groups) {
    if (group > 0) ::kill(-group, SIGKILL);
  }
  kill_marked(mark);
  ::_exit(0);
}

// Closes `first` and all descriptors above it. Uses only system calls, because the parent may have
// threads. close_range needs Linux 5.9.
void close_from(unsigned first) {
  if (::syscall(__NR_close_range, first, ~0U, 0U) == 0) return;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  for (rlim_t fd = first; fd < limit.rlim_cur; ++fd) ::close(static_cast<int>(fd));
}

}  // namespace

Result<Guard> Guard::start() {
  ASSAY_TRY(FdPair sockets, make_socket_pair());
  std::string mark = mark_of_run();
  const pid_t process = ::fork();
  if (process < 0) return errno_error("fork");
  if (process == 0) {
    // Closes everything else, so that no pipe or terminal is kept open.
    ::dup2(sockets.first.get(), 0);
    close_from(1);
    keep_guard(0, mark);
  }
  return Guard(std::move(sockets.second), process, std::move(mark));
}

Guard::Guard(Guard&& other) noexcept
    : socket_(std::move(other.socket_)),
      process_(std::exchange(other.process_, -1)),
      mark_(std::move(other.mark_)) {}

Guard::~Guard() {
  socket_.reset();
  while (process_ > 0 && ::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Guard::tell(pid_t word) {
  // Without a guard the stages still run.
  (void)::send(socket_.get(), &word, sizeof word, MSG_NOSIGNAL);
}

}  // namespace assay::chain::stage
