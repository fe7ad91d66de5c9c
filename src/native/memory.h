#pragma once

// What a case leaves behind in its lane's memory.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/fd.h"

namespace assay::native {

// Whether malloc writes over what it gives out and takes back, so that nobody takes it for a
// result. Lanes begin with that (fork_server.cc); it touches memory that may never be used.
void scramble_memory(bool on);

class MemoryWatch {
 public:
  // After the fork: the file that it opens belongs to this process.
  void open();

  // Lets this process have so many bytes of memory more than it has, whether it touches them or not
  // (RLIMIT_DATA): what is beyond them fails where it is asked for. Otherwise a kernel that is
  // short of memory ends some process, after minutes of clearing pages. What malloc keeps is not
  // counted.
  void bound(std::uint64_t more) const;

  // Anonymous memory of this process in kB now: the arena, which is file-backed, is left out.
  std::int64_t resident_kb() const;

  struct Growth {
    std::uint64_t resident_kb = 0;
    std::int64_t grown_kb = 0;  // what stays in use of what this case added
  };
  // To be called when a case has ended; `lent` bytes of it are in use until the next one begins.
  // Gives memory back to the system where much of it is held.
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
  std::int64_t resident_kb_ = 0;  // after the case before
  std::uint64_t used_bytes_ = 0;  // of malloc, when it was last counted; 0 before
  std::uint64_t live_bytes_ = 0;  // of those, not lent
  std::int64_t asked_ns_ = 0;     // when the machine was last asked for what it has left
  std::int64_t asked_at_kb_ = 0;  // what this process had then
};

}  // namespace assay::native
