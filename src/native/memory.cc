#include "native/memory.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/clock.h"
#include "base/system_memory.h"

namespace assay::native {
namespace {

// Below this growth malloc is not asked, because counting walks its free lists.
constexpr std::int64_t kAskAboveKb = 128 * 1024;
// Most free memory that malloc keeps for the next case, and most if the machine has less than half
// of its memory left.
constexpr std::int64_t kKeepKb = 5 * 1024 * 1024;
constexpr std::int64_t kKeepIfShortKb = 512 * 1024;
// The machine's memory is read after this time, or after this growth of the lane. A lane on a GPU
// always has more than kKeepIfShortKb, and reading it for each case took 6% of the lane's time.
constexpr std::int64_t kAskAfterNs = 100'000'000;
constexpr std::int64_t kAskAfterKb = 64 * 1024;

// Bytes that malloc has given out, if it was `before` at the last count. mallinfo2() needs glibc
// 2.33, but wheels support older ones. The counters of mallinfo() have 32 bits, so the difference
// to the last count is right below 2 GiB.
std::uint64_t bytes_in_use(std::uint64_t before) {
  struct Counters {
    std::size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks,
        keepcost;
  };
  static const auto counters = reinterpret_cast<Counters (*)()>(::dlsym(RTLD_DEFAULT, "mallinfo2"));
  if (counters != nullptr) return counters().uordblks;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const auto low = static_cast<std::uint32_t>(::mallinfo().uordblks);
#pragma GCC diagnostic pop
  const auto change = static_cast<std::int32_t>(low - static_cast<std::uint32_t>(before));
  return before + static_cast<std::uint64_t>(static_cast<std::int64_t>(change));
}

// As src/lane/fork_server.cc sets it.
constexpr int kScrambled = 128;

}  // namespace

void scramble_memory(bool on) { ::mallopt(M_PERTURB, on ? kScrambled : 0); }

void MemoryWatch::open() {
  statm_ = Fd(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  resident_kb_ = resident_kb();
}

MemoryWatch::Pages MemoryWatch::pages() const {
  std::array<char, 128> text{};
  const ssize_t size = statm_ ? ::pread(statm_.get(), text.data(), text.size(), 0) : 0;
  Pages pages{};
  const char* at = text.data();
  const char* const end = text.data() + std::max<ssize_t>(size, 0);
  for (std::int64_t& field : pages) {
    const auto [rest, error] = std::from_chars(at, end, field);
    if (error != std::errc() || rest == end) return {};
    at = rest + 1;
  }
  return pages;
}

std::int64_t MemoryWatch::resident_kb() const {
  const Pages now = pages();
  return (now[kResident] - now[kShared]) * (::sysconf(_SC_PAGESIZE) / 1024);
}

void MemoryWatch::bound(std::uint64_t more) const {
  const auto data = static_cast<std::uint64_t>(pages()[kData] * ::sysconf(_SC_PAGESIZE));
  rlimit limit{};
  if (data == 0 || ::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(data + more, limit.rlim_max);
  (void)::setrlimit(RLIMIT_DATA, &limit);
}

bool MemoryWatch::should_give_back(std::int64_t resident_kb) {
  if (resident_kb <= kKeepIfShortKb) return false;
  if (resident_kb > kKeepKb) return true;
  const std::int64_t now_ns = monotonic_ns();
  if (now_ns < asked_ns_ + kAskAfterNs && resident_kb < asked_at_kb_ + kAskAfterKb) return false;
  asked_ns_ = now_ns;
  asked_at_kb_ = resident_kb;
  const auto memory = system_memory();
  return memory && memory->available < memory->total / 2;
}

MemoryWatch::Growth MemoryWatch::after_case(std::uint64_t lent) {
  std::int64_t now = resident_kb();
  std::int64_t grown = now - resident_kb_;
  if (grown > kAskAboveKb) {
    used_bytes_ = bytes_in_use(used_bytes_);
    const std::uint64_t used = used_bytes_;
    const std::uint64_t live = used - std::min(used, lent);
    const auto more = static_cast<std::int64_t>(live - std::min(live, live_bytes_));
    grown = std::min(grown, more / 1024);
    live_bytes_ = live;
  }
  if (should_give_back(now)) {
    ::malloc_trim(0);
    now = resident_kb();
  }
  resident_kb_ = now;
  return {static_cast<std::uint64_t>(now), grown};
}

}  // namespace assay::native
