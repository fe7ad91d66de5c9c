#pragma once

// The record of a benchmark's speed, as the suites' analysis.py writes it: one JSON object with
// model, batch size, ips and the last loss, reckoned from the training's log in the same way.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::chain::results {

// How analysis.py is called; the names of its options.
struct SpeedQuestion {
  std::string filename;        // the training's log
  std::string speed_log_file;  // the record goes there
  std::string model_name = "model_name";
  int base_batch_size = 0;
  std::string run_mode = "DP";
  std::string fp_item;
  std::string keyword;  // the speed is the word behind this one
  int skip_steps = 0;   // speeds at the beginning that do not count
  std::string device_num = "N1C1";
  std::string speed_unit = "images/s";
  std::string convergence_key;  // the loss is the word behind this one; empty: no loss
  int model_mode = -1;          // -1: a sum over the cards; 5: the mean, as it stands
  bool is_large_model = false;  // one speed, of the whole training, is enough
};

// What only the surroundings know; analysis.py reads it in the environment. Nothing becomes null.
struct SpeedSurroundings {
  std::optional<std::string> model_branch;
  std::optional<std::string> model_commit;
  std::optional<std::string> model_run_time;  // seconds
  std::optional<std::string> frame_commit;
  std::optional<std::string> frame_version;
};
SpeedSurroundings surroundings_of_environment();

struct SpeedRecord {
  std::string json;      // one line
  double ips = 0;        // 0: the log shows too few
  std::size_t kept = 0;  // speeds that counted
  std::size_t seen = 0;  // and all of them
};

// Of model_mode -1: what stands behind the keyword, in order, without the first skip_steps; of the
// rest a twentieth (5 at least) is left out at either end of the sorted values; the mean, times
// the cards of device_num, to three decimals. Fewer than skip_steps + 11 speeds are no speed: 0.
// Fails where device_num names no cards.
Result<SpeedRecord> speed_record(std::string_view log, const SpeedQuestion& question,
                                 const SpeedSurroundings& surroundings);

}  // namespace assay::chain::results
