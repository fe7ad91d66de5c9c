#pragma once

// What a campaign runs: units, each a command. Rounds of `assay api` and models of chains are the
// two kinds.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "campaign/campaign.h"
#include "campaign/queue.h"
#include "campaign/results.h"

namespace assay::campaign {

// Exit codes of campaigns and of `assay api`.
inline constexpr int kSomeFailedCode = 1;
inline constexpr int kTroubleCode = 3;
inline constexpr int kInterruptedCode = 130;

struct Unit {
  std::string key;
  std::filesystem::path log;  // of its output, in the campaign's folder; "": the campaign's log
  QueuedUnit queued;
};

struct Program {
  std::string self;                    // path of assay
  std::vector<std::string> arguments;  // words after the flags of every round
  std::function<void(std::string_view)> say = [](std::string_view) {};  // adds to the log
};

class Units {
 public:
  Units() = default;
  Units(const Units&) = delete;
  Units& operator=(const Units&) = delete;
  virtual ~Units() = default;

  // The commands, for people.
  virtual std::string commands() const = 0;
  // How far the campaign is, for people.
  virtual std::string progress(bool running) const = 0;
  // Whether `assay chain remote` runs the units: it sends signs of life, and ends its unit when its
  // stdin closes. Other units get the campaign's signals.
  virtual bool has_lifeline() const = 0;

  // The units to start with. Units have the numbers from 0 on.
  virtual Result<std::vector<Unit>> first() = 0;
  // The command of a unit that starts on a seat.
  virtual Result<std::vector<std::string>> start(std::size_t unit, const Seat& seat) = 0;
  // Records an end; the state is "not_run" if the unit will run again. Returns the units that
  // follow.
  virtual Result<std::vector<Unit>> end(const UnitEnd& end) = 0;
  // Writes the results. Returns the exit code.
  virtual Result<int> finish(std::vector<UnitEnd> ends, bool interrupted) = 0;
};

// `campaign` must outlive the result.
std::unique_ptr<Units> units_of(const Campaign& campaign, const Program& program);
std::unique_ptr<Units> rounds_of(const Campaign& campaign, const Program& program);

// "1:02:03"
std::string duration(double seconds);

// Returns the folder of a retest: log_dir_template with its placeholders filled in. An unknown
// placeholder is a usage error.
Result<std::string> retest_folder(const Campaign& campaign, const std::string& previous,
                                  std::int64_t round, const std::string& error_config);

}  // namespace assay::campaign
