#pragma once

// What a running chain says on the terminal: one line a stage, and on a terminal a line that moves.

#include <cstddef>
#include <cstdio>
#include <string>

#include "chain/plan/plan.h"
#include "chain/stage/stage_run.h"

namespace assay::chain::run {

class Progress {
 public:
  // Writes to `out` (stderr); `live` adds the moving line. Null: silent.
  Progress(std::FILE* out, bool live, std::size_t stages)
      : out_(out), live_(live), total_(stages) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void started(const plan::Stage& stage);
  void finished(const plan::Stage& stage, const stage::Outcome& outcome);
  // The moving line: `running` names what runs and its latest readings.
  void tick(const std::string& running);
  void note(const std::string& text);

 private:
  void clear();

  std::FILE* out_;
  bool live_;
  std::size_t total_;
  std::size_t done_ = 0;
  std::size_t shown_ = 0;  // length of the moving line
};

}  // namespace assay::chain::run
