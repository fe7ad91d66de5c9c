#include "chain/params/value_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string>

#include "base/nearest.h"
#include "base/text.h"
#include "chain/params/gpu_entry.h"
#include "chain/params/shell_words.h"

namespace assay::chain::params {
namespace {

constexpr std::array<std::string_view, 10> kModes{"lite_train_lite_infer",
                                                  "lite_train_whole_infer",
                                                  "whole_train_whole_infer",
                                                  "whole_train_lite_infer",
                                                  "whole_infer",
                                                  "benchmark_train",
                                                  "lite_train_infer",
                                                  "whole_train_infer",
                                                  "klquant_whole_infer",
                                                  "infer"};
constexpr std::array<std::string_view, 7> kTrainers{"norm_train",     "amp_train",  "fleet_train",
                                                    "pact_train",     "fpgm_train", "distill_train",
                                                    "to_static_train"};

bool is_count(std::string_view text) {
  return !text.empty() && text.size() <= 9 && text.find_first_not_of('0') != text.npos &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Checks the items of a value, each with its own column.
class ValueCheck {
 public:
  explicit ValueCheck(const Line& line) : line_(line), value_(line.value) {}

  std::vector<Problem> run(std::string_view kind) {
    const bool absent = value_.empty() || value_ == "null";
    if (absent && (kind == "text" || kind == "program")) {
      add(0, fmt::format("expected {}, found {}", kind == "text" ? "a value" : "a command",
                         found(value_)));
    }
    if (kind == "program" || kind == "command" || kind == "maybe") {
      command(kind == "command");
    } else if (kind == "gpus") {
      each('|', [&](const std::string& item) {
        const auto entry = parse_gpu_entry(item);
        return entry ? "" : entry.error().message;
      });
    } else if (kind == "trainers") {
      trainers();
    } else if (kind == "numbers" && !absent) {
      numbers();
    } else if (kind == "counts") {
      each('|', [](const std::string& item) {
        return item == "null" || is_count(item)
                   ? ""
                   : fmt::format("expected a whole number of at least 1, or null, found {}",
                                 found(item));
      });
    } else if (kind == "settings" && !absent) {
      each(';', [](const std::string& item) {
        return item.find('=') < item.find(' ') && !item.starts_with('=')
                   ? ""
                   : fmt::format("expected NAME=value, found {}", found(item));
      });
    } else if (constexpr std::string_view kWords = "words:"; kind.starts_with(kWords)) {
      const std::vector<std::string> known = split_at(kind.substr(kWords.size()), ',');
      each('|', [&](const std::string& item) {
        return std::ranges::find(known, item) != known.end()
                   ? ""
                   : fmt::format("expected {}, found {}{}", fmt::join(known, ", "), found(item),
                                 suggest(item, known));
      });
    }
    return std::move(problems_);
  }

 private:
  static std::string found(std::string_view item) {
    return item.empty() ? "nothing" : fmt::format("`{}`", item);
  }

  void add(std::size_t offset, const std::string& message) {
    problems_.push_back({line_.line, line_.value_column + static_cast<int>(offset),
                         fmt::format("`{}`: {}", line_.key, message)});
  }

  // Adds what `check` says of each item.
  template <typename Check>
  void each(char separator, Check check) {
    if (value_.empty()) return add(0, "expected at least one value, found nothing");
    std::size_t at = 0;
    for (const std::string& item : split_at(value_, separator)) {
      if (const std::string message = check(item); !message.empty()) add(at, message);
      at += item.size() + 1;
    }
  }

  void command(bool wanted) {
    if (wanted && value_.empty()) add(0, "expected a command or null, found nothing");
    if (const auto words = split_words(value_); !words) add(0, words.error().message);
  }

  void trainers() {
    std::set<std::string> seen;
    each('|', [&](const std::string& item) -> std::string {
      // Suites have trainers of their own, but a name close to a known one is a mistake.
      const std::string_view near = nearest(item, kTrainers);
      const bool odd = item.empty() || item.find_first_of(" /\t") != std::string::npos;
      if (odd || (!near.empty() && near != item)) {
        return fmt::format("{} is not a trainer{}", found(item), suggest(item, kTrainers));
      }
      return seen.insert(item).second ? "" : fmt::format("the trainer `{}` is doubled", item);
    });
  }

  // A number, or mode=N|mode=N.
  void numbers() {
    std::set<std::string> seen;
    const bool by_mode = value_.find('=') != std::string_view::npos;
    each('|', [&](const std::string& item) -> std::string {
      const std::size_t equals = item.find('=');
      const std::string mode = item.substr(0, equals);
      const std::string number =
          by_mode ? item.substr(std::min(equals, item.size() - 1) + 1) : item;
      if (by_mode && equals == std::string::npos) {
        return fmt::format("expected mode=value or null, found {}", found(item));
      }
      if (by_mode && std::ranges::find(kModes, mode) == kModes.end()) {
        return fmt::format("unknown mode `{}`; the nearest known mode is `{}`", mode,
                           nearest_within(static_cast<std::size_t>(-2), mode, kModes));
      }
      if (!is_count(number)) {
        return fmt::format("expected a whole number of at least 1, found {}", found(number));
      }
      return seen.insert(mode).second ? "" : fmt::format("the mode `{}` is doubled", mode);
    });
  }

  const Line& line_;
  std::string_view value_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> value_problems(std::string_view kind, const Line& line) {
  if (line.key == "null" && (line.value.empty() || line.value == "null")) return {};
  // The first colon is the one in the URL: `weightshttps://…`.
  if (line.value.starts_with("//") && (line.key.ends_with("http") || line.key.ends_with("https"))) {
    return {{line.line, line.key_column,
             fmt::format("expected a `:` between key and address, found `{}:`", line.key)}};
  }
  return ValueCheck(line).run(kind);
}

std::string_view value_for_mode(std::string_view value, std::string_view mode) {
  while (!value.empty()) {
    const std::size_t bar = value.find('|');
    const std::string_view item = value.substr(0, bar);
    const std::size_t equals = item.find('=');
    if (equals != std::string_view::npos && item.substr(0, equals) == mode) {
      return item.substr(equals + 1);
    }
    if (bar == std::string_view::npos) break;
    value.remove_prefix(bar + 1);
  }
  return {};
}

}  // namespace assay::chain::params
