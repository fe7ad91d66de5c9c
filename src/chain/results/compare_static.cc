// Compares dynamic inference (layers run by Python) with static inference (the exported program) of
// the same model and input.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>

#include "base/fd.h"
#include "base/text.h"
#include "chain/results/compare.h"
#include "chain/results/npy.h"

namespace assay::chain::results {
namespace {

bool is_image_end(std::string_view word) {
  constexpr std::array<std::string_view, 5> kEnds{".jpg", ".jpeg", ".png", ".bmp", ".npz"};
  return std::any_of(kEnds.begin(), kEnds.end(),
                     [&](std::string_view end) { return word.ends_with(end); });
}

// Returns the words of a log that name images, without quotes, brackets and commas.
std::set<std::string> image_names(std::string_view log) {
  constexpr std::string_view kApart = " \t\r\n,;:'\"()[]{}";
  std::set<std::string> names;
  while (!log.empty()) {
    const std::size_t end = log.find_first_of(kApart);
    const std::string_view word = log.substr(0, end);
    if (is_image_end(word)) names.emplace(word);
    if (end == std::string_view::npos) break;
    log.remove_prefix(end + 1);
  }
  return names;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Replaces each number of a line by `#`: "class_id: #, prob: #".
std::string skeleton(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool starts =
        is_digit(line[i]) || (line[i] == '-' && i + 1 < line.size() && is_digit(line[i + 1]));
    const bool in_word =
        !out.empty() &&
        (std::isalnum(static_cast<unsigned char>(out.back())) != 0 || out.back() == '_');
    if (!starts || in_word) {
      out += line[i];
      continue;
    }
    out += '#';
    constexpr std::string_view kNumber = "0123456789.eE+-";
    while (i + 1 < line.size() && kNumber.find(line[i + 1]) != std::string_view::npos) ++i;
  }
  return out;
}

struct Numbered {
  std::string text;
  std::string shape;
};

// Returns the lines with a labelled number, last one first, because predictions are at the end.
std::vector<Numbered> numbered_lines(std::string_view log) {
  std::vector<Numbered> lines;
  for (const std::string& line : split_at(log, '\n')) {
    std::string shape = skeleton(trimmed(line));
    const bool labelled = shape.find(": #") != std::string::npos;
    if (labelled) lines.push_back({std::string(trimmed(line)), std::move(shape)});
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

struct Pair {
  Predictions dynamic_side;
  Predictions static_side;
};

// Pairs the logs by images that both name. Otherwise by a line of the dynamic log whose words end a
// line of the static one ("class_id: 8, prob: 0.9" and "image_name: a.jpg, class_id: 8, prob:
// 0.9").
Result<Pair> pair_of(std::string_view dynamic_log, std::string_view static_log) {
  Pair pair;
  const std::set<std::string> there = image_names(static_log);
  Predictions wanted;
  for (const std::string& name : image_names(dynamic_log)) {
    if (there.contains(name)) wanted[name] = {};
  }
  pair.dynamic_side = find_in_log(dynamic_log, wanted);
  pair.static_side = find_in_log(static_log, wanted);
  std::erase_if(pair.dynamic_side, [](const auto& entry) { return entry.second.empty(); });
  if (!pair.dynamic_side.empty()) return pair;
  const std::vector<Numbered> others = numbered_lines(static_log);
  for (const Numbered& line : numbered_lines(dynamic_log)) {
    const auto twin = std::find_if(others.begin(), others.end(), [&](const Numbered& other) {
      return other.shape.ends_with(line.shape);
    });
    if (twin == others.end()) continue;
    pair.dynamic_side[line.shape] = numbers_of(line.text);
    std::vector<double> numbers = numbers_of(twin->text);
    const std::size_t surplus =
        numbers.size() - std::min(numbers.size(), pair.dynamic_side[line.shape].size());
    numbers.erase(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(surplus));
    pair.static_side[line.shape] = std::move(numbers);
    return pair;
  }
  return usage_error(
      "the two logs share no image with predictions and no lines with the same words");
}

// A probability of exactly 1 or 0 does not test the model's numbers.
bool is_saturated(const Predictions& predictions) {
  bool any = false;
  for (const auto& [name, values] : predictions) {
    for (const double value : values) {
      if (value != static_cast<double>(static_cast<long long>(value))) return false;
      any = true;
    }
  }
  return any;
}

// The last decimal place that these values were printed with, such as 1e-5.
double last_place(const Predictions& predictions) {
  constexpr int kMostDecimals = 12;
  int decimals = 0;
  for (const auto& [name, values] : predictions) {
    for (const double value : values) {
      const auto whole = [&] {
        const double scaled = value * std::pow(10, decimals);
        return std::abs(scaled - std::round(scaled)) <= 1e-6;
      };
      while (decimals < kMostDecimals && !whole()) ++decimals;
    }
  }
  return std::pow(10, -decimals);
}

// The usual tolerance would hide a wrong factor in small values, such as the probability of one
// class in 1000. So it is a share of the largest value that is not whole (a class), but no less
// than the rounding of what was printed.
double atol_for(const Pair& pair) {
  double largest = 0;
  for (const auto& [name, values] : pair.dynamic_side) {
    for (const double value : values) {
      if (value != std::round(value)) largest = std::max(largest, std::abs(value));
    }
  }
  const double rounding = std::max(last_place(pair.dynamic_side), last_place(pair.static_side));
  return std::min(kUsualAtol, std::max(rounding, kUsualAtol * largest));
}

bool is_npy(const std::string& path) { return path.ends_with(".npy"); }

}  // namespace

Predictions predictions_in(std::string_view log) {
  Predictions wanted;
  for (const std::string& name : image_names(log)) wanted[name];
  return find_in_log(log, wanted);
}

Result<std::vector<Finding>> compare_dynamic_static(const std::string& dynamic_path,
                                                    const std::string& static_path,
                                                    const OutputTolerance& tolerance) {
  if (is_npy(dynamic_path) != is_npy(static_path)) {
    return usage_error("compare two logs or two .npy files, not one of each");
  }
  ASSAY_TRY(const std::string dynamic_text, read_file(dynamic_path));
  ASSAY_TRY(const std::string static_text, read_file(static_path));
  Pair pair;
  if (is_npy(dynamic_path)) {
    ASSAY_TRY(pair.dynamic_side["output"], read_npy(dynamic_text));
    ASSAY_TRY(pair.static_side["output"], read_npy(static_text));
  } else {
    ASSAY_TRY(pair, pair_of(dynamic_text, static_text));
  }
  std::vector<Finding> findings =
      compare_outputs(pair.dynamic_side, pair.static_side,
                      {tolerance.atol.value_or(atol_for(pair)), tolerance.rtol});
  const bool told = std::any_of(findings.begin(), findings.end(), [](const Finding& one) {
    return one.grade == Finding::Grade::vacuous;
  });
  if (!told && is_saturated(pair.dynamic_side)) {
    findings.push_back({Finding::Grade::vacuous,
                        "these results cannot tell models apart: every value is a whole number, as "
                        "of a class whose probability is exactly 1"});
  }
  return findings;
}

}  // namespace assay::chain::results
