#pragma once

// Parses numbers from the lines of a training or evaluation log.

#include <string>
#include <string_view>
#include <vector>

namespace assay::chain::stage {

struct Reading {
  std::string name;  // batch_cost, reader_cost, ips, loss (the total), a part of it by its own name
                     // (loss_ce, CELoss), or these with the prefix eval_; accuracy, gpu_memory_mb,
                     // gpu_allocated_mb
  double value = 0;
};

// Whether a series is a loss: the total (loss, eval_loss) or a part of it (loss_ce, dice_loss).
bool is_loss(std::string_view name);

// Returns the readings of a line: names with numbers in any style (log_line.h), and MLPerf's
// `:::MLLOG`. Different spellings of a name (avg_ips, ips) give the same name. Of several totals in
// a line (loss, avg_loss) the one written `loss` is the total, and the others keep their names.
std::vector<Reading> read_train_line(std::string_view line);

// True for the words that mark figures of an evaluation: val, test, …
bool is_evaluation(std::string_view word);

// Knows the last line of column headings (`epoch box_loss cls_loss`, `epoch,step,loss`).
class Columns {
 public:
  // A row of numbers as `heading: number, …`; another line as it is, without its colours.
  std::string as_pairs(std::string_view line);

 private:
  std::vector<std::string> names_;
  char separator_ = ' ';
};

// Reads a log line by line.
class TrainLog {
 public:
  std::vector<Reading> take(std::string_view line) {
    return read_train_line(columns_.as_pairs(line));
  }

 private:
  Columns columns_;
};

// Returns the word after the word `keyword` of the line, or "".
std::string_view word_behind(std::string_view line, std::string_view keyword);

}  // namespace assay::chain::stage
