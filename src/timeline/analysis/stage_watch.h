#pragma once

// Names the slow ranks of a run from the stages of their steps, while it goes on.
//
// `assay timeline record --watch` makes a text file of each rank, rank3.stages:
//   assay-stages 2 {"rank": 3, "host": "node1", "pid": 71}
//   1 20 1503 3011 702 410 20       a step's number, then the microseconds of its stages, and of
//                                   data loading by the clock of the host
//   2 20 1503 3011 702 410 20 host  … in which the GPU waited for its host
// A rank has a shared lock on its file as long as it lives. The steps that a rank measures are
// among those of each rank that measures more.

#include <array>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "timeline/model.h"

namespace assay::timeline {

inline constexpr std::array<std::string_view, 5> kStageNames{"data loading", "forward", "backward",
                                                             "waiting", "optimizer"};
inline constexpr std::size_t kLoading = 0;
inline constexpr std::size_t kWaiting = 3;
using StageTimes = std::array<Nanos, kStageNames.size()>;

class StageWatch {
 public:
  explicit StageWatch(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Reads what the ranks have written since the last call. Returns a line for each rank that has
  // become slow, or is so no longer.
  Result<std::vector<std::string>> look();
  // A table of the ranks with their mean times. A measured step stands for those since the one
  // before; the first, which warms up, for none.
  std::string table() const;
  bool any() const { return !ranks_.empty(); }
  // Whether all ranks have ended.
  bool ended() const;
  // Removes the files of ranks that have ended.
  static void clean(const std::filesystem::path& folder);
  std::uint64_t malformed() const { return malformed_; }

 private:
  struct Measured {
    std::int64_t step = 0;
    StageTimes times{};
    Nanos loading = 0;
    bool of_host = false;
  };
  struct Rank {
    std::int32_t number = kNone;
    std::uint64_t file = 0;  // inode
    std::uint64_t read = 0;  // bytes
    std::string rest;        // an incomplete line
    bool ended = false;
    std::deque<Measured> pending;
    std::uint64_t steps = 0;
    std::int64_t first = 0;  // the number of a step
    std::int64_t last = 0;
    StageTimes total{};
  };
  // A step that all ranks have measured.
  struct Common {
    std::int64_t step = 0;
    std::vector<StageTimes> times;  // by rank
  };
  struct Window {
    std::deque<Common> steps;
    std::uint64_t judged = 0;                   // steps
    std::map<std::int32_t, std::int64_t> slow;  // rank → since which step
  };

  Status read(const std::filesystem::path& path, Rank& rank);
  Status take(const std::filesystem::path& path, std::string_view line, Rank& rank);
  bool next_common(std::vector<std::string>& lines);
  static std::vector<StageTimes> of_loading(const std::vector<Measured>& step, bool of_host);
  void add(Window& window, Common step, std::vector<std::string>& lines);
  void judge(Window& window, std::vector<std::string>& lines);
  std::string describe(const Window& window, std::size_t rank, std::int64_t since) const;

  std::filesystem::path folder_;
  std::map<std::string, Rank> ranks_;  // by name of the file
  std::vector<std::int32_t> numbers_;  // of the ranks in the windows
  Window work_;                        // steps in which each GPU had work
  Window loading_;                     // all steps; where a GPU waits, only loading counts
  std::uint64_t of_hosts_ = 0;         // common steps
  std::uint64_t malformed_ = 0;
};

}  // namespace assay::timeline
