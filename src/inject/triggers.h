#pragma once

// Decides when a recorder writes its ring: a step was slow, the GPU hangs, or this or another
// process that records into the same folder requested a dump.

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "timeline/model.h"

namespace assay::inject {

using timeline::Nanos;

// Detects steps that take longer than usual.
class SlowSteps {
 public:
  // A step is slow if it takes `factor` times the median of the last steps.
  explicit SlowSteps(double factor) : factor_(factor) {}
  // Returns why the step is slow, or "".
  std::string ended(std::int64_t number, Nanos duration);

 private:
  static constexpr std::size_t kFewest = 5;
  static constexpr std::size_t kMost = 32;
  double factor_;
  std::deque<Nanos> last_;
};

// A collective that this process has launched.
struct LaunchedCollective {
  std::int64_t sequence = 0;  // from 1, counted over all communicators
  std::uint32_t correlation = 0;
  Nanos launched = 0;
  bool ended = false;
  std::string name;
};

// Detects GPU work that does not end. Only kernel_launched is thread-safe.
class HangWatch {
 public:
  explicit HangWatch(Nanos patience) : patience_(patience) {}

  void kernel_launched(std::uint32_t correlation) {
    last_launch_.store(correlation, std::memory_order_relaxed);
  }
  void collective_launched(std::uint32_t correlation, std::string_view name, Nanos time);
  // Reports the end of a kernel.
  void ended(std::uint32_t correlation, Nanos time);
  // True if stuck() would report something, by the events so far.
  bool overdue(Nanos time) const;
  // Returns what hangs, or "". Reports the same hang once.
  std::string stuck(Nanos time);
  // The same for a step whose GPU work is not recorded, by its duration so far.
  std::string stuck_in_step(std::int64_t number, Nanos lasted);
  void forget();
  // The last collectives, oldest first.
  const std::deque<LaunchedCollective>& collectives() const { return collectives_; }

 private:
  static constexpr std::size_t kKept = 256;

  Nanos patience_;
  std::atomic<std::uint32_t> last_launch_{0};
  std::uint32_t last_ended_ = 0;
  Nanos last_news_ = 0;  // the last end of a kernel, or the first launch since
  std::uint32_t told_ = 0;
  std::optional<std::int64_t> told_step_;
  std::int64_t sequence_ = 0;
  std::deque<LaunchedCollective> collectives_;
};

// The dumps of a recording: folders dump-1, dump-2, … Creating the next one requests all processes
// that record there to write into it. Works across machines that share the folder.
class DumpFolders {
 public:
  explicit DumpFolders(std::filesystem::path folder);

  struct Dump {
    std::filesystem::path folder;
    std::string reason;
  };
  // The next requested dump, if there is one.
  std::optional<Dump> next();
  // Requests a dump. If another process was first, its dump serves this request too.
  Status ask(std::string_view reason) const;

 private:
  std::filesystem::path path(std::int64_t number) const;

  std::filesystem::path folder_;
  std::int64_t next_ = 1;
};

}  // namespace assay::inject
