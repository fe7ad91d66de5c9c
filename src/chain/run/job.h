#pragma once

// One stage's life in a run: what it read of its output, and what it made.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chain/plan/plan.h"
#include "chain/results/chain_store.h"
#include "chain/results/node_record.h"
#include "chain/stage/artifacts.h"
#include "chain/stage/autolog.h"
#include "chain/stage/monitor.h"
#include "chain/stage/stage_run.h"
#include "chain/stage/train_log.h"

namespace assay::chain::run {

// One stage's life in this run.
struct Job {
  const plan::Stage* stage = nullptr;
  bool done = false;
  bool kept = false;
  stage::Outcome outcome;
  std::unique_ptr<stage::StageRun> run;  // while it runs; of a server also after it is done
  std::int64_t stored = 0;
  stage::FileMarks before;
  stage::FileMarks made;
  std::vector<results::StoredReading> readings;
  std::size_t stored_readings = 0;  // so many of them are in the store
  std::map<std::string, std::int64_t> counts;
  std::map<std::string, double> latest;
  std::size_t looks = 0;
  stage::AutoLog autolog;
  std::string fleet_word;                // the last thing that the fleet driver said about itself
  results::NodeRecords nodes;            // of a training
  stage::Monitor monitor;                // of a training
  std::vector<stage::Finding> findings;  // not told yet

  // Takes one line of its output in.
  void read(std::string_view whole);
  // Memory as it goes on, for the plots; a stage that is over at once has only its peak.
  void look();
  void keep(const std::string& reading, double value);
  // "NAME 12 s loss 0.5 ips 100"
  std::string progress() const;

 private:
  void add_own_speed(std::string_view line, std::vector<stage::Reading>& found) const;
};

// Words with `*` become the newest file that they match; those that match nothing stay.
void expand_names(std::vector<std::string>& argv, const std::string& directory);

// Two logs that must hold the same words, and some: why they do not.
std::string difference_of(const plan::Stage& one, const plan::Stage& other);

}  // namespace assay::chain::run
