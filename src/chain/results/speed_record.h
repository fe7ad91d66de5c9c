#pragma once

// The record of a benchmark's speed in the format of the suites' analysis.py: a JSON object with
// model, batch size, ips and last loss, computed from the training's log in the same way.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::chain::results {

// The options of analysis.py, by its names.
struct SpeedQuestion {
  std::string filename;        // the training's log
  std::string speed_log_file;  // output file
  std::string model_name = "model_name";
  int base_batch_size = 0;
  std::string run_mode = "DP";
  std::string fp_item;
  std::string keyword;  // the speed is the word after this one
  int skip_steps = 0;   // speeds at the start that do not count
  std::string device_num = "N1C1";
  std::string speed_unit = "images/s";
  std::string convergence_key;  // the loss is the word after this one; "": none
  int model_mode = -1;          // -1: mean times the cards; 5: the plain mean
  bool is_large_model = false;  // accept a log with one speed, of the whole training
};

// Values that analysis.py reads from the environment. An absent value becomes null.
struct SpeedSurroundings {
  std::optional<std::string> model_branch;
  std::optional<std::string> model_commit;
  std::optional<std::string> model_run_time;  // seconds
  std::optional<std::string> frame_commit;
  std::optional<std::string> frame_version;
};
// Reads the values from the environment of this process.
SpeedSurroundings surroundings_of_environment();

struct SpeedRecord {
  std::string json;      // the record, one line
  double ips = 0;        // 0: too few speeds in the log
  std::size_t kept = 0;  // speeds that counted
  std::size_t seen = 0;  // speeds in the log
};

// Computes the record. For model_mode -1 it takes the speeds after the keyword without the first
// skip_steps, sorts them, cuts a twentieth (at least 5) at each end, and multiplies the mean by the
// cards of device_num, to three decimals. With fewer than skip_steps + 11 speeds, ips is 0. A
// device_num without cards is an error.
Result<SpeedRecord> speed_record(std::string_view log, const SpeedQuestion& question,
                                 const SpeedSurroundings& surroundings);

}  // namespace assay::chain::results
