#pragma once

// What the log of a stage says about its work, beside its readings (train_log.h).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chain/stage/train_log.h"

namespace assay::chain::stage {

// A counter such as `epoch: 3/20`, over all lines that have it.
struct Counter {
  double least = 0;
  double last = 0;
  double stride = 0;            // the largest step from one to the next
  std::optional<double> total;  // what stands behind the `/`
  bool seen = false;
  bool fraction = false;  // `epoch: 0.25`
  bool falls = false;     // other than to its least value
};

class Evidence {
 public:
  void take(std::string_view line);

  bool traceback() const { return traceback_; }  // an uncaught Python exception
  // Whether the log ends in an error : the training did not go on after it, or hardly
  // a line follows.
  bool ends_in_error(bool trains) const;
  bool disk_full() const { return disk_full_; }
  bool counted() const { return epoch_.seen || step_.seen; }
  // The last line that looks like an error; "" if there is none.
  const std::string& last_error() const { return last_error_; }
  // The first value that is NaN or infinite, with its line; "" if there is none.
  const std::string& bad_number() const { return bad_number_; }
  // Why a training ended before the epochs and steps that its log or its arguments name; "" if it
  // did not, or if the log counts neither.
  std::string unfinished(const std::vector<std::string>& argv) const;

 private:
  void take_failure(std::string_view line);
  void take_counts(std::string_view line);

  bool traceback_ = false;
  bool fails_ = false;    // another line that tells of a failure
  bool ignores_ = false;  // within an exception that the interpreter ignores
  int lines_since_ = 0;   // the last failure
  int advances_since_ = 0;
  bool ends_in_error_level_ = false;  // the last line
  bool disk_full_ = false;
  bool running_ = false;        // MLPerf's log has a run_start without a run_stop
  bool aborted_ = false;        // by MLPerf's log
  bool stopped_early_ = false;  // by a message
  std::string bad_number_;
  std::string last_error_;
  Counter epoch_;
  Counter step_;
  Counter bar_;  // without a name
  Columns columns_;
};

// The number of epochs that a command line asks for: `--epochs=5`, `-o Global.epoch_num=5`.
std::optional<double> epochs_asked(const std::vector<std::string>& argv);

}  // namespace assay::chain::stage
