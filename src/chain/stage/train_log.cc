#include "chain/stage/train_log.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "base/text.h"

namespace assay::chain::stage {
namespace {

struct Spelling {
  std::string_view written;
  std::string_view name;
};

constexpr std::array kSpellings{
    Spelling{"loss", "loss"},
    Spelling{"avg_loss", "loss"},
    Spelling{"Loss", "loss"},
    Spelling{"train_loss", "loss"},
    Spelling{"eval_loss", "eval_loss"},
    Spelling{"val_loss", "eval_loss"},
    Spelling{"valid_loss", "eval_loss"},
    Spelling{"test_loss", "eval_loss"},
    Spelling{"batch_cost", "batch_cost"},
    Spelling{"avg_batch_cost", "batch_cost"},
    Spelling{"reader_cost", "reader_cost"},
    Spelling{"avg_reader_cost", "reader_cost"},
    Spelling{"ips", "ips"},
    Spelling{"avg_ips", "ips"},
    Spelling{"interval_samples_per_second", "ips"},
    Spelling{"max_mem_reserved", "gpu_memory_mb"},
    Spelling{"max_mem_allocated", "gpu_allocated_mb"},
    Spelling{"acc", "accuracy"},
    Spelling{"acc1", "accuracy"},
    Spelling{"top1", "accuracy"},
    Spelling{"Acc@1", "accuracy"},
};

bool is_name(char c) {
  const char lower = static_cast<char>(c | 0x20);
  return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '@';
}

// The number without its separators of thousands: "1234.5" of "1,234.5 samples/s".
std::string without_commas(std::string_view text) {
  constexpr std::size_t kGroup = 3;
  std::string number(text.substr(0, digits_at_front(text)));
  while (text.remove_prefix(digits_at_front(text)), text.starts_with(',')) {
    const std::size_t digits = digits_at_front(text.substr(1));
    if (number.empty() || digits != kGroup) return number;
    text.remove_prefix(1);
    number += text.substr(0, digits);
  }
  return number += text;
}

// Escape sequences (CSI) such as colours are left out.
std::string without_colours(std::string_view line) {
  std::string plain;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (!line.substr(at).starts_with("\033[")) {
      plain += line[at];
      continue;
    }
    at += 2;
    while (at < line.size() && std::isalpha(static_cast<unsigned char>(line[at])) == 0) ++at;
  }
  return plain;
}

// The number at the front of a text, also within `[…]` or `tensor(…)`.
std::optional<double> number_at(std::string_view text) {
  for (const std::string_view around : {"[", "tensor(", "Tensor("}) {
    if (text.starts_with(around)) text.remove_prefix(around.size());
  }
  const std::string plain = without_commas(text);
  text = plain;
  if (text.starts_with("nan") || text.starts_with("NaN")) return std::nan("");
  if (text.starts_with("inf")) return HUGE_VAL;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// The name of the series that a word of the log belongs to; "" if it belongs to none.
std::string_view series_of(std::string_view written) {
  for (const Spelling& spelling : kSpellings) {
    if (spelling.written == written) return spelling.name;
  }
  return is_loss(written) ? written : std::string_view();
}

// A line has one total of a name: what is written `loss`, else the first spelling of it.
void keep_one_total(std::string_view name, std::vector<Reading>& readings,
                    const std::vector<std::string_view>& written) {
  std::string_view total;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const bool better = total.empty() || written[i] == "loss";
    if (readings[i].name == name && better) total = written[i];
  }
  for (std::size_t i = 0; i < readings.size(); ++i) {
    if (readings[i].name == name && written[i] != total) readings[i].name = written[i];
  }
}

// True for lines of an evaluation (`Test:  [0/1] …`, `[Eval][Epoch 1] …`).
bool is_of_an_evaluation(std::string_view line) {
  return line.find("Test:") != line.npos || line.find("[Eval]") != line.npos;
}

}  // namespace

bool is_loss(std::string_view name) {
  // Settings and records of losses are not losses.
  for (const char* other : {"scal", "weight", "best", "min_", "lr"}) {
    if (name.find(other) != name.npos) return false;
  }
  if (name == "loss" || name.starts_with("loss_") || name.starts_with("eval_loss_")) return true;
  return name.ends_with("_loss") || name.ends_with("Loss");
}

std::vector<Reading> read_train_line(std::string_view whole) {
  std::vector<Reading> readings;
  std::vector<std::string_view> spelt;    // the word of each reading in the line
  constexpr std::size_t kLongest = 4096;  // training lines are short; longer ones are not parsed
  if (whole.size() > kLongest) return readings;
  const std::string plain = without_colours(whole);
  const std::string_view line = plain;
  const bool evaluates = is_of_an_evaluation(line);
  std::size_t at = 0;
  while (at < line.size()) {
    if (!is_name(line[at])) {
      ++at;
      continue;
    }
    const std::size_t start = at;
    while (at < line.size() && is_name(line[at])) ++at;
    const std::string_view written = line.substr(start, at - start);
    const bool marked = at < line.size() && (line[at] == ':' || line[at] == '=');
    if (!marked && written != "Acc@1") continue;
    const std::string_view name = series_of(written);
    if (name.empty()) continue;
    std::size_t value = at + (marked ? 1 : 0);
    while (value < line.size() && line[value] == ' ') ++value;
    if (const auto number = number_at(line.substr(value))) {
      const bool of_evaluation = evaluates && name != "accuracy" && !name.starts_with("gpu_") &&
                                 !name.starts_with("eval_");
      readings.push_back({(of_evaluation ? "eval_" : "") + std::string(name), *number});
      spelt.push_back(written);
    }
  }
  for (const std::string_view total : {"loss", "eval_loss"}) {
    keep_one_total(total, readings, spelt);
  }
  return readings;
}

std::string_view word_behind(std::string_view line, std::string_view keyword) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  std::string_view before;
  for (std::size_t at = line.find_first_not_of(kBlank); at != std::string_view::npos;
       at = line.find_first_not_of(kBlank, at)) {
    const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    if (!keyword.empty() && before == keyword) return line.substr(at, end - at);
    before = line.substr(at, end - at);
    at = end;
  }
  return {};
}

}  // namespace assay::chain::stage
