#pragma once

// When a recorder that keeps the last minute writes it down: a step was slow, the GPU hangs, or
// somebody asked, in this process or in any other that is recorded into the same folder.

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

// Steps that took longer than usual.
class SlowSteps {
 public:
  // A step is slow when it takes `factor` times the median of the last ones.
  explicit SlowSteps(double factor) : factor_(factor) {}
  // Why this step is worth writing down; empty: it is not.
  std::string ended(std::int64_t number, Nanos duration);

 private:
  static constexpr std::size_t kFewest = 5;
  static constexpr std::size_t kMost = 32;
  double factor_;
  std::deque<Nanos> last_;
};

// A collective that this process has launched.
struct LaunchedCollective {
  std::int64_t sequence = 0;  // from 1, over all communicators
  std::uint32_t correlation = 0;
  Nanos launched = 0;
  bool ended = false;
  std::string name;
};

// Work of the GPU that does not end. Not safe for threads by itself, but for kernel_launched.
class HangWatch {
 public:
  explicit HangWatch(Nanos patience) : patience_(patience) {}

  void kernel_launched(std::uint32_t correlation) {
    last_launch_.store(correlation, std::memory_order_relaxed);
  }
  void collective_launched(std::uint32_t correlation, std::string_view name, Nanos time);
  // The record of a kernel came at this time.
  void ended(std::uint32_t correlation, Nanos time);
  // Whether stuck() would tell of something, by what has been heard so far.
  bool overdue(Nanos time) const;
  // What hangs; empty: nothing. The same is told once.
  std::string stuck(Nanos time);
  // The same of a step whose work is not recorded, by how long it has gone on.
  std::string stuck_in_step(std::int64_t number, Nanos lasted);
  void forget();
  // The last collectives, the oldest first.
  const std::deque<LaunchedCollective>& collectives() const { return collectives_; }

 private:
  static constexpr std::size_t kKept = 256;

  Nanos patience_;
  std::atomic<std::uint32_t> last_launch_{0};
  std::uint32_t last_ended_ = 0;
  Nanos last_news_ = 0;  // when something ended, or the first thing was waited for
  std::uint32_t told_ = 0;
  std::optional<std::int64_t> told_step_;
  std::int64_t sequence_ = 0;
  std::deque<LaunchedCollective> collectives_;
};

// Dumps of a folder are its folders dump-1, dump-2, …: the one that makes the next asks all
// processes that are recorded there to write into it. Works across machines that share the folder.
class DumpFolders {
 public:
  explicit DumpFolders(std::filesystem::path folder);

  struct Dump {
    std::filesystem::path folder;
    std::string reason;
  };
  // The next dump that somebody has asked for.
  std::optional<Dump> next();
  // Asks for one. Where another process was first, its dump is this one's, too.
  Status ask(std::string_view reason) const;

 private:
  std::filesystem::path path(std::int64_t number) const;

  std::filesystem::path folder_;
  std::int64_t next_ = 1;
};

}  // namespace assay::inject
