#include "wire/arena.h"

#include <fcntl.h>  // fallocate
#include <unistd.h>

#include <new>

namespace assay::wire {

Result<Arena> Arena::create() {
  ASSAY_TRY(Fd file, make_memory_file("assay-arena"));
  if (::ftruncate(file.get(), static_cast<off_t>(kArenaBytes)) != 0) return errno_error("arena");
  ASSAY_TRY(Arena arena, map(std::move(file)));
  ::new (arena.data()) ArenaHeader{kIdle, 0, 0, 0, 0};
  return arena;
}

Result<Arena> Arena::map(Fd file) {
  ASSAY_TRY(Mapping mapping, Mapping::map(file.get(), kArenaBytes, /*writable=*/true));
  Arena arena;
  arena.file_ = std::move(file);
  arena.mapping_ = std::move(mapping);
  return arena;
}

bool Arena::holds(std::uint64_t offset, std::uint64_t bytes) const {
  return offset >= kFirst && bytes <= kArenaBytes && offset <= kArenaBytes - bytes;
}

Result<std::uint64_t> Arena::reserve(std::uint64_t bytes) {
  if (bytes > kArenaBytes - used_ - kArenaAlignment)
    return fail("the results do not fit the arena");
  const std::uint64_t offset = used_;
  used_ += (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  return offset;
}

void Arena::clear() { used_ = kFirst; }

void Arena::trim(std::uint64_t keep) {
  // A failure is harmless: the arena keeps its memory.
  (void)::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(keep), static_cast<off_t>(kArenaBytes - keep));
}

}  // namespace assay::wire
