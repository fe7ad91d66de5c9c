#pragma once

// The terminal output of a running chain: a line per stage, and on a terminal a status line that is
// overwritten.

#include <cstddef>
#include <cstdio>
#include <string>

#include "chain/plan/plan.h"
#include "chain/stage/stage_run.h"

namespace assay::chain::run {

class Progress {
 public:
  // Writes to `out` (stderr); null: silent. `live` adds the status line.
  Progress(std::FILE* out, bool live, std::size_t stages)
      : out_(out), live_(live), total_(stages) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void started(const plan::Stage& stage);
  void finished(const plan::Stage& stage, const stage::Outcome& outcome);
  // Updates the status line; `running` names the running stages and their latest readings.
  void tick(const std::string& running);
  void note(const std::string& text);

 private:
  void clear();

  std::FILE* out_;
  bool live_;
  std::size_t total_;
  std::size_t done_ = 0;
  std::size_t shown_ = 0;  // length of the status line
};

}  // namespace assay::chain::run
