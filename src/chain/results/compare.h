#pragma once

// Results against stored results: outputs by tolerance, loss curves, speed and memory.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chain/results/chain_store.h"

namespace assay::chain::results {

// One line of a comparison.
struct Finding {
  enum class Grade { good, bad, vacuous };
  Grade grade = Grade::good;
  std::string text;
};

struct OutputTolerance {
  double atol = 1e-3;
  double rtol = 1e-3;
};

// Predictions by image name.
using Predictions = std::map<std::string, std::vector<double>>;

// Stored results as compare_results.py writes them: `name <TAB> JSON`, or integers instead of JSON.
Result<Predictions> read_stored_results(std::string_view text);

// The predictions that a log holds for these names: of the first line with the name, what stands
// after it; JSON, or else every number there.
Predictions find_in_log(std::string_view log, const Predictions& wanted);

// All numbers of a piece of text or JSON, in order.
std::vector<double> numbers_of(std::string_view text);

// Every expected value against the actual one, |a − e| ≤ atol + rtol·|e|. One finding a name.
std::vector<Finding> compare_outputs(const Predictions& expected, const Predictions& actual,
                                     const OutputTolerance& tolerance);

// Why these predictions could not tell one model from another; empty when they could: values that
// are all the same, or several images that all give the same values.
std::string vacuous_because(const Predictions& predictions);

// Stored result files against logs, both by a pattern with `*` in the file name, paired by the
// precision (fp32, fp16, int8) in their names.
Result<std::vector<Finding>> compare_files(const std::string& stored, const std::string& logs,
                                           const OutputTolerance& tolerance);

// What a model gives by dynamic inference against what its exported form gives: two logs, paired by
// the images that both name or else by lines of the same words, or two .npy files.
Result<std::vector<Finding>> compare_dynamic_static(const std::string& dynamic_path,
                                                    const std::string& static_path,
                                                    const OutputTolerance& tolerance);

struct RunThresholds {
  double loss_rtol = 1e-3;
  double speed = 0.10;   // slower by more than this share is a regression
  double memory = 0.10;  // larger by more than this share is one
};

// The latest run of one store against the latest of another (same mode and model), stage by stage.
Result<std::vector<Finding>> compare_runs(ChainStore& base, ChainStore& current,
                                          const RunThresholds& thresholds);

}  // namespace assay::chain::results
