#include "chain/stage/train_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>

#include "base/text.h"
#include "chain/stage/log_line.h"

namespace assay::chain::stage {
namespace {

constexpr std::size_t kLongest = 4096;  // training lines are short; longer ones are not parsed

struct Spelling {
  std::string_view written;
  std::string_view name;
};

constexpr std::array kSpellings{
    Spelling{"loss", "loss"},
    Spelling{"avg_loss", "loss"},
    Spelling{"total_loss", "loss"},
    Spelling{"train_loss", "loss"},
    Spelling{"training_loss", "loss"},
    Spelling{"xent", "loss"},
    Spelling{"nll", "loss"},
    Spelling{"eval_loss", "eval_loss"},
    Spelling{"val_loss", "eval_loss"},
    Spelling{"valid_loss", "eval_loss"},
    Spelling{"validation_loss", "eval_loss"},
    Spelling{"test_loss", "eval_loss"},
    Spelling{"batch_cost", "batch_cost"},
    Spelling{"avg_batch_cost", "batch_cost"},
    Spelling{"reader_cost", "reader_cost"},
    Spelling{"avg_reader_cost", "reader_cost"},
    Spelling{"ips", "ips"},
    Spelling{"avg_ips", "ips"},
    Spelling{"throughput", "ips"},
    Spelling{"tps", "ips"},
    Spelling{"wps", "ips"},
    Spelling{"max_mem_reserved", "gpu_memory_mb"},
    Spelling{"max_mem_allocated", "gpu_allocated_mb"},
    Spelling{"acc", "accuracy"},
    Spelling{"accuracy", "accuracy"},
    Spelling{"acc1", "accuracy"},
    Spelling{"top1", "accuracy"},
    Spelling{"acc@1", "accuracy"},
};

// Escape sequences (CSI) such as colours are left out.
std::string without_colours(std::string_view line) {
  if (!has(line, "\033[")) return std::string(line);
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

// `samples/sec`, `tokens/s/GPU`, `interval_samples_per_second`, `CurrSamplesPerSec`.
bool is_speed(std::string_view lower) {
  if (has(lower, "per_sec") || has(lower, "persec")) return true;
  if (!has(lower, "/s")) return false;
  const std::string ended = std::string(lower) + "/";
  return has(ended, "/s/") || has(ended, "/sec/") || has(ended, "/second/");
}

// The name of the series that a word of the log belongs to; "" if it belongs to none.
std::string series_of(std::string_view written) {
  const std::string whole = lowered(written);
  if (is_speed(whole))
    return is_evaluation(whole.substr(0, whole.find_first_of("_/"))) ? "" : "ips";
  const std::size_t slash = written.rfind('/');
  if (slash != std::string_view::npos) {  // train/loss, eval/loss
    const std::string inner = series_of(written.substr(slash + 1));
    return !inner.empty() && is_evaluation(written.substr(0, slash)) ? "eval_" + inner : inner;
  }
  for (const std::string_view end : {"_step", "_epoch"}) {  // of Lightning
    if (written.ends_with(end)) written.remove_suffix(end.size());
  }
  const std::string lower = lowered(written);
  for (const Spelling& spelling : kSpellings) {
    if (spelling.written == lower) return std::string(spelling.name);
  }
  return is_loss(written) ? std::string(written) : "";
}

// How a reading is written: `MLM Loss: 1.5` has the word `Loss` and belongs to `MLM`.
struct Written {
  std::string_view word;
  std::string_view of;  // the word directly before it; "" if something else stands between
};

// A line has one total of a name: what is written `loss` alone, else the first one.
void keep_one_total(std::string_view name, std::vector<Reading>& readings,
                    const std::vector<Written>& written) {
  std::optional<std::size_t> total;
  int best = -1;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const int rank = (written[i].word == "loss" ? 1 : 0) + (written[i].of.empty() ? 2 : 0);
    if (readings[i].name != name || rank <= best) continue;
    total = i;
    best = rank;
  }
  for (std::size_t i = 0; total && i < readings.size(); ++i) {
    if (readings[i].name != name || i == *total) continue;
    const bool same = written[i].word == written[*total].word;
    readings[i].name = same ? fmt::format("{}_{}", written[i].of.empty() ? "other" : written[i].of,
                                          lowered(written[i].word))
                            : std::string(written[i].word);
  }
}

// The word before a pair, if nothing but blanks stands between.
std::string_view owner_of(const Pair& pair) {
  if (pair.before.empty()) return {};
  const char* const end = pair.before.data() + pair.before.size();
  const std::string_view between(end, static_cast<std::size_t>(pair.name.data() - end));
  const bool near = between.find_first_not_of(" _-") == std::string_view::npos;
  const bool is_number = std::isdigit(static_cast<unsigned char>(pair.before.front())) != 0;
  return near && !is_number ? pair.before : std::string_view();
}

// The cells of a line: between separators, or the words.
std::vector<std::string> cells_of(std::string_view line, char separator) {
  std::vector<std::string> cells = split_at(line, separator);
  for (std::string& cell : cells) cell = std::string(trimmed(cell));
  if (separator == ' ') std::erase(cells, "");
  return cells;
}

// The headings of a table: by two blanks where a heading has one inside.
std::vector<std::string> headings_of(std::string_view line, char separator) {
  constexpr std::string_view kWide = "  ";
  std::vector<std::string> headings = cells_of(line, separator);
  if (separator == ' ' && has(line, kWide)) {
    std::vector<std::string> wide;
    for (std::size_t at = 0; at < line.size();) {
      const std::size_t end = std::min(line.find(kWide, at), line.size());
      wide.emplace_back(line.substr(at, end - at));
      at = std::min(line.find_first_not_of(' ', end), line.size());
    }
    if (wide.size() > 2) headings = std::move(wide);
  }
  for (std::string& heading : headings) std::ranges::replace(heading, ' ', '_');
  return headings;
}

// True for lines of an evaluation (`Test:  [0/1] …`, `[Eval][Epoch 1] …`).
bool is_of_an_evaluation(std::string_view line) {
  line = line.substr(0, lowered(line).find("loss"));  // what follows are other figures
  return line.find("Test:") != line.npos || line.find("[Eval]") != line.npos;
}

}  // namespace

bool is_evaluation(std::string_view word) {
  const std::string lower = lowered(word);
  return lower == "val" || lower == "valid" || lower == "validation" || lower == "eval" ||
         lower == "test";
}

bool is_loss(std::string_view written) {
  const std::string name = lowered(written);
  // Settings and records of losses are not losses.
  for (const char* other : {"scal", "weight", "best", "min_", "lr"}) {
    if (name.find(other) != name.npos) return false;
  }
  constexpr std::string_view kLoss = "loss";
  if (name.starts_with("eval_loss_") || name.ends_with(kLoss)) return true;
  if (!name.starts_with(kLoss)) return false;
  return name[kLoss.size()] == '_' || std::isdigit(static_cast<unsigned char>(name[4])) != 0;
}

std::vector<Reading> read_train_line(std::string_view whole) {
  std::vector<Reading> readings;
  std::vector<Written> spelt;  // of each reading
  if (whole.size() > kLongest) return readings;
  const std::string plain = without_colours(whole);
  const std::string_view line = plain;
  const bool evaluates = is_of_an_evaluation(line);
  const bool logged = line.find(":::MLLOG") != line.npos;
  std::string_view key;  // of MLPerf, whose value has a name of its own
  std::string_view rest = line;
  for (auto pair = take_pair(rest); pair; pair = take_pair(rest, pair->name)) {
    if (logged && pair->name == "key") key = pair->value.substr(0, pair->value.find('"'));
    const std::string_view written = logged && pair->name == "value" ? key : pair->name;
    const std::string name = series_of(written);
    // Behind a blank only losses, accuracies and `tok/s` are names: `ips 3` may be a word.
    const bool named = pair->marked || is_loss(name) || name == "accuracy" || has(written, "/");
    const auto number = number_at(pair->value);
    const bool second = name == "ips" && std::ranges::count(readings, name, &Reading::name) > 0;
    if (name.empty() || !named || !number || second) continue;
    const bool of_evaluation =
        (evaluates || is_evaluation(pair->before) || is_evaluation(pair->kind)) &&
        name != "accuracy" && !name.starts_with("gpu_") && !name.starts_with("eval_");
    readings.push_back({(of_evaluation ? "eval_" : "") + name, *number});
    spelt.push_back({written, owner_of(*pair)});
  }
  for (const std::string_view total : {"loss", "eval_loss"}) {
    keep_one_total(total, readings, spelt);
  }
  return readings;
}

std::string Columns::as_pairs(std::string_view line) {
  std::string text = without_colours(line.substr(0, kLongest));
  const std::string_view plain = trimmed(text);
  const bool has_words = has(lowered(plain), "loss");
  if (has_words && plain.find_first_of(":=") == plain.npos) {
    const std::size_t found = plain.find_first_of(",;|\t");
    const char separator = found == plain.npos ? ' ' : plain[found];
    std::vector<std::string> names = headings_of(plain, separator);
    const bool heads =
        names.size() > 1 &&
        std::ranges::none_of(cells_of(plain, separator),
                             [](const std::string& cell) { return number_at(cell).has_value(); }) &&
        std::ranges::any_of(names,
                            [](const std::string& name) { return is_loss(series_of(name)); });
    if (heads) {
      names_ = std::move(names);
      separator_ = separator;
    }
  }
  if (has_words || names_.empty()) return text;
  const std::vector<std::string> cells = cells_of(plain, separator_);
  const auto first =
      std::ranges::find_if(cells, [](const std::string& cell) { return !cell.empty(); });
  if (cells.size() < names_.size() || first == cells.end() || !number_at(*first)) return text;
  text.clear();
  for (std::size_t i = 0; i < names_.size(); ++i) text += names_[i] + ": " + cells[i] + ", ";
  return text;
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
