#pragma once

#include <sys/types.h>

#include "base/fd.h"
#include "base/result.h"

namespace assay::chain::stage {

// A small process that outlives this one for a moment: when we are gone, however that came, it ends
// the process groups that still ran. A stage's first process dies with us by itself (PDEATHSIG),
// but what that one had started, the workers of a launcher say, would go on and hold its GPUs.
class Guard {
 public:
  // Forks; to be called before there is a second thread.
  static Result<Guard> start();
  Guard(Guard&& other) noexcept;
  Guard& operator=(Guard&&) = delete;
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard();

  // From here on a group is ended with us; from here on it is not.
  void watch(pid_t group) { tell(group); }
  void forget(pid_t group) { tell(-group); }

 private:
  Guard(Fd socket, pid_t process) : socket_(std::move(socket)), process_(process) {}
  void tell(pid_t word);

  Fd socket_;
  pid_t process_;
};

}  // namespace assay::chain::stage
