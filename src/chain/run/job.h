#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "chain/plan/plan.h"
#include "chain/results/chain_store.h"
#include "chain/results/node_record.h"
#include "chain/stage/artifacts.h"
#include "chain/stage/autolog.h"
#include "chain/stage/evidence.h"
#include "chain/stage/monitor.h"
#include "chain/stage/stage_run.h"
#include "chain/stage/train_log.h"

namespace assay::chain::run {

// The state of one stage in a run: what it read from its output, and what it made.
struct Job {
  const plan::Stage* stage = nullptr;
  bool done = false;
  bool kept = false;
  bool by_script = false;  // the suite's script has ended it
  stage::Outcome outcome;
  std::unique_ptr<stage::StageRun>
      run;  // set while the stage runs; for a server also after it is done
  stage::Clock::time_point started;
  stage::Clock::time_point ended;
  std::int64_t stored = 0;
  stage::FileMarks before;
  stage::FileMarks made;
  std::vector<results::StoredReading> readings;
  std::size_t stored_readings = 0;  // number of readings that the store has
  std::map<std::string, std::int64_t> counts;
  std::map<std::string, double> latest;
  std::size_t looks = 0;
  stage::AutoLog autolog;
  std::string fleet_word;                  // the last message of the fleet driver about itself
  results::NodeRecords nodes;              // of a training
  stage::Monitor monitor;                  // of a training
  std::vector<stage::Finding> findings;    // not reported yet
  stage::Evidence evidence;                // of its log
  std::optional<std::regex> loss_pattern;  // of the stage
  bool has_loss = false;                   // its log has one
  std::string bad_loss;                    // the first loss that is NaN or infinite, as a sentence
  std::uint64_t memory_kills = 0;          // of the kernel before the stage
  std::string identity;                    // what --resume compares (identity.h)

  // Takes a line of the stage's output.
  void read(std::string_view whole);
  // Samples memory for the plots.
  void look();
  void keep(const std::string& reading, double value);
  // "NAME 12 s loss 0.5 ips 100"
  std::string progress() const;
};

}  // namespace assay::chain::run
