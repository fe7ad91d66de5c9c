#pragma once

// Compares results with stored results: outputs by tolerance, loss curves, speed and memory.

#include <map>
#include <optional>
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

constexpr double kUsualAtol = 1e-3;

struct OutputTolerance {
  // Default: 1e-3; between a model's two forms less where all their values are small.
  std::optional<double> atol;
  double rtol = 1e-3;
};

// The series of an inference's predictions in the store, in the order of its images' names.
inline constexpr std::string_view kPrediction = "prediction";

// Predictions by image name.
using Predictions = std::map<std::string, std::vector<double>>;

// Parses stored results in the format of compare_results.py: `name <TAB> JSON` or integers.
Result<Predictions> read_stored_results(std::string_view text);

// Finds the predictions of these names in a log. They follow the name on the first line that has
// it, as JSON or as numbers.
Predictions find_in_log(std::string_view log, const Predictions& wanted);

// Returns the predictions of all images that a log names.
Predictions predictions_in(std::string_view log);

// Returns all numbers of a text or JSON, in order.
std::vector<double> numbers_of(std::string_view text);

// Compares every expected value with the actual one, |a − e| ≤ atol + rtol·|e|. One finding per
// name.
std::vector<Finding> compare_outputs(const Predictions& expected, const Predictions& actual,
                                     const OutputTolerance& tolerance);

// Returns why these predictions could not distinguish two models (all values equal, or the same for
// several images), or "".
std::string vacuous_because(const Predictions& predictions);

// Compares stored result files with logs. Both are patterns with `*` in the file name, and are
// paired by the precision (fp32, fp16, int8) in their names.
Result<std::vector<Finding>> compare_files(const std::string& stored, const std::string& logs,
                                           const OutputTolerance& tolerance);

// Compares dynamic inference with inference of the exported model: two logs, paired by the images
// that both name, else by lines with the same words; or two .npy files.
Result<std::vector<Finding>> compare_dynamic_static(const std::string& dynamic_path,
                                                    const std::string& static_path,
                                                    const OutputTolerance& tolerance);

struct RunThresholds {
  double loss_rtol = 1e-3;
  double speed = 0.10;   // slower by more than this fraction is a regression
  double memory = 0.10;  // larger by more than this fraction is a regression
};

// Compares the latest runs of two stores (same mode and model) stage by stage. A regression is also
// larger than the noise of its readings: three standard errors of a mean speed, the step between
// samples at the peak of memory, 64 MB, 1 ms. Speeds with fewer than three readings after the first
// must lose a third.
Result<std::vector<Finding>> compare_runs(ChainStore& base, ChainStore& current,
                                          const RunThresholds& thresholds);

}  // namespace assay::chain::results
