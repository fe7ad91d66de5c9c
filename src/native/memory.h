#pragma once

// The memory that a case leaves behind in its lane.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/fd.h"

namespace assay::native {

// Whether malloc overwrites memory that it gives out and takes back, so that stale data is no
// result. Lanes start with that on (fork_server.cc). It touches memory that may never be used.
void scramble_memory(bool on);

class MemoryWatch {
 public:
  // Call it after the fork: the file that it opens belongs to this process.
  void open();

  // Allows this process this many bytes more than it has, touched or not (RLIMIT_DATA). An
  // allocation beyond them fails at once. Without a limit, a kernel short of memory kills some
  // process after minutes of clearing pages. Free memory that malloc keeps does not count.
  void bound(std::uint64_t more) const;

  // Anonymous memory of this process in kB. The arena, which is file-backed, is not counted.
  std::int64_t resident_kb() const;

  struct Growth {
    std::uint64_t resident_kb = 0;
    std::int64_t grown_kb = 0;  // what stays in use of the memory that this case added
  };
  // Call it when a case has ended; `lent` bytes stay in use until the next one starts. Gives memory
  // back to the system if the process holds much of it.
  Growth after_case(std::uint64_t lent);

 private:
  // "total resident shared text lib data", in pages.
  using Pages = std::array<std::int64_t, 6>;
  static constexpr std::size_t kResident = 1;
  static constexpr std::size_t kShared = 2;
  static constexpr std::size_t kData = 5;
  Pages pages() const;
  bool should_give_back(std::int64_t resident_kb);

  Fd statm_;
  std::int64_t resident_kb_ = 0;  // after the previous case
  std::uint64_t used_bytes_ = 0;  // by malloc at the last count; 0 before
  std::uint64_t live_bytes_ = 0;  // of these, without lent ones
  std::int64_t asked_ns_ = 0;     // time of the last look at the machine's memory
  std::int64_t asked_at_kb_ = 0;  // memory of this process at that time
};

}  // namespace assay::native
