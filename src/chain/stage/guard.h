#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace assay::chain::stage {

// A small process that ends the stages of this process when it ends for any reason. A stage's first
// process dies with its parent (PDEATHSIG), but its own children, such as the workers of a
// launcher, would live on and hold their GPUs.
class Guard {
 public:
  // Forks, so call it before a second thread exists.
  static Result<Guard> start();
  Guard(Guard&& other) noexcept;
  Guard& operator=(Guard&&) = delete;
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard();

  // watch() guards a group, and the next function releases it.
  void watch(pid_t group) { tell(group); }
  void forget(pid_t group) { tell(-group); }
  // What the marks of its stages start with (leftovers.h).
  const std::string& mark() const { return mark_; }

 private:
  Guard(Fd socket, pid_t process, std::string mark)
      : socket_(std::move(socket)), process_(process), mark_(std::move(mark)) {}
  void tell(pid_t word);

  Fd socket_;
  pid_t process_;
  std::string mark_;
};

}  // namespace assay::chain::stage
