#include "chain/params/value_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "base/text.h"
#include "chain/params/gpu_entry.h"
#include "chain/params/nearest_key.h"
#include "chain/params/shell_words.h"

namespace assay::chain::params {
namespace {

constexpr std::array<std::string_view, 3> kFlags{"True", "False", "null"};
constexpr std::array<std::string_view, 4> kDevices{"True", "False", "cpu", "gpu"};
constexpr std::array<std::string_view, 5> kTrainDevices{"True", "False", "cpu", "gpu", "null"};
constexpr std::array<std::string_view, 6> kAutocasts{"null", "fp32", "fp16",
                                                     "amp",  "True", "False"};
constexpr std::array<std::string_view, 5> kPrecisions{"fp32", "fp16", "bf16", "int8", "null"};
constexpr std::array<std::string_view, 10> kTrainers{
    "norm_train",    "amp_train",       "fleet_train", "pact_train",   "fpgm_train",
    "distill_train", "to_static_train", "PTQ",         "quant_export", "fpgm_export"};

bool is_positive_number(std::string_view text) {
  return !text.empty() && text.size() <= 9 && text.find_first_not_of('0') != text.npos &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool is_whole_number(std::string_view text) { return text == "0" || is_positive_number(text); }

bool is_one_of(std::string_view word, std::span<const std::string_view> known) {
  return std::find(known.begin(), known.end(), word) != known.end();
}

// Checks the `|` items of a value, each with its own column.
class ValueCheck {
 public:
  ValueCheck(const Place& place, const Line& line, const KnownNames& names)
      : place_(place), line_(line), names_(names) {}

  std::vector<Problem> run() {
    switch (place_.rule) {
      case Rule::any:
        break;
      case Rule::text:
        present("a value");
        break;
      case Rule::command:
        command(line_.value, 0);
        break;
      case Rule::maybe:
        if (!line_.value.empty()) command(line_.value, 0);
        break;
      case Rule::program:
        if (present("a command")) command(line_.value, 0);
        break;
      case Rule::flag:
        if (!line_.value.empty()) words(kFlags);
        break;
      case Rule::device:
        if (!line_.value.empty()) words(kTrainDevices);
        break;
      case Rule::flags:
        words(kFlags);
        break;
      case Rule::devices:
        words(kDevices);
        break;
      case Rule::autocast:
        words(kAutocasts);
        break;
      case Rule::precisions:
        precisions();
        break;
      case Rule::gpu_list:
        gpus();
        break;
      case Rule::trainers:
        trainers();
        break;
      case Rule::by_mode:
        by_mode();
        break;
      case Rule::counts:
        counts();
        break;
      case Rule::count:
        count();
        break;
      case Rule::list:
        present("at least one value");
        break;
      case Rule::commands:
        each([&](const std::string& item, std::size_t at) {
          if (!item.empty()) command(item, at);
        });
        break;
      case Rule::settings:
        settings();
        break;
      case Rule::port:
        port();
        break;
      case Rule::words:
        if (!line_.value.empty()) own_words();
        break;
      case Rule::number:
        number(line_.value, 0);
        break;
      case Rule::numbers:
        if (line_.value.find('=') != std::string::npos) {
          by_mode();
        } else {
          number(line_.value, 0);
        }
        break;
      case Rule::ignored:
        break;
    }
    return std::move(problems_);
  }

 private:
  void add(std::size_t offset, std::string message, bool warning = false) {
    problems_.push_back({line_.line, line_.value_column + static_cast<int>(offset),
                         fmt::format("`{}`: {}", line_.key, message), warning});
  }

  bool present(std::string_view what) {
    const bool named = place_.rule == Rule::program || place_.rule == Rule::text;
    const bool good = !line_.value.empty() && (!named || line_.value != "null");
    if (!good) {
      add(0, line_.value.empty() ? fmt::format("expected {}, found nothing", what)
                                 : fmt::format("expected {}, found `{}`", what, line_.value));
    }
    return good;
  }

  template <typename Check>
  void each(Check check) {
    std::size_t at = 0;
    for (const std::string& item : split_at(line_.value, '|')) {
      check(item, at);
      at += item.size() + 1;
    }
  }

  void words(std::span<const std::string_view> known) {
    if (line_.value.empty()) {
      add(0, fmt::format("expected {}, found nothing: no cell would run", fmt::join(known, ", ")));
    }
    each([&](const std::string& item, std::size_t at) {
      if (is_one_of(item, known)) return;
      add(at, fmt::format("expected {}, found `{}`{}", fmt::join(known, ", "), item,
                          suggest(item, known)));
    });
  }

  void own_words() {
    std::vector<std::string_view> known;
    for (std::string_view rest = place_.words; !rest.empty();) {
      const std::size_t bar = rest.find('|');
      known.push_back(rest.substr(0, bar));
      rest = bar == std::string_view::npos ? std::string_view() : rest.substr(bar + 1);
    }
    words(known);
  }

  void number(std::string_view text, std::size_t at) {
    if (is_absent(text) || is_positive_number(text)) return;
    add(at, fmt::format("expected a whole number of at least 1, or null, found `{}`", text));
  }

  // Params files for phones write FP32.
  void precisions() {
    if (line_.value.empty()) words(kPrecisions);
    each([&](const std::string& item, std::size_t at) {
      const std::string lower = lowered(item);
      if (is_one_of(lower, kPrecisions)) return;
      add(at, fmt::format("expected {}, found `{}`{}", fmt::join(kPrecisions, ", "), item,
                          suggest(lower, kPrecisions)));
    });
  }

  void gpus() {
    if (!present("-1, GPU numbers, or machines and GPU numbers")) return;
    each([&](const std::string& item, std::size_t at) {
      const auto entry = parse_gpu_entry(item);
      if (!entry) add(at, entry.error().message);
    });
  }

  void trainers() {
    if (!present("a trainer")) return;
    std::set<std::string> seen;
    each([&](const std::string& item, std::size_t at) {
      // Suites have trainers of their own, but a name close to a known one is a mistake.
      const std::string_view near = nearest(item, kTrainers);
      const bool odd = item.empty() || item.find_first_of(" /\t") != std::string::npos;
      const bool slip = !near.empty() && near != item && !is_one_of(item, names_.keys);
      if (odd || slip) {
        add(at, fmt::format("`{}` is not a trainer{}", item, suggest(item, kTrainers)));
      } else if (!seen.insert(item).second) {
        add(at, fmt::format("the trainer `{}` is doubled", item));
      }
    });
  }

  void by_mode() {
    if (is_absent(line_.value)) return;
    std::set<std::string> seen;
    each([&](const std::string& item, std::size_t at) {
      const std::size_t equals = item.find('=');
      const std::string mode = item.substr(0, equals);
      if (equals == std::string::npos) {
        add(at, fmt::format("expected mode=value or null, found `{}`", item));
      } else if (!is_one_of(mode, names_.modes)) {
        add(at, fmt::format("unknown mode `{}`; the nearest known mode is `{}`", mode,
                            nearest_word(mode, names_.modes)));
      } else if (equals + 1 == item.size()) {
        add(at, fmt::format("no value after `{}=`", mode));
      } else if (!is_positive_number(item.substr(equals + 1))) {
        add(at + equals + 1, fmt::format("expected a whole number of at least 1, found `{}`",
                                         item.substr(equals + 1)));
      } else if (!seen.insert(mode).second) {
        add(at, fmt::format("the mode `{}` is doubled", mode));
      }
    });
  }

  void counts() {
    if (!present("a whole number of at least 1, or null")) return;
    each([&](const std::string& item, std::size_t at) {
      if (item == "null" || is_positive_number(item)) return;
      add(at, fmt::format("expected a whole number of at least 1, or null, found `{}`", item));
    });
  }

  void count() {
    if (is_absent(line_.value) || is_whole_number(line_.value)) return;
    add(0, fmt::format("expected a whole number or null, found `{}`", line_.value));
  }

  void settings() {
    if (is_absent(line_.value)) return;
    std::size_t at = 0;
    for (const std::string& item : split_at(line_.value, ';')) {
      const std::size_t equals = item.find('=');
      const bool named =
          equals != std::string::npos && equals > 0 &&
          std::all_of(item.begin(), item.begin() + static_cast<std::ptrdiff_t>(equals),
                      [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
      if (!named) add(at, fmt::format("expected NAME=value, found `{}`", item));
      at += item.size() + 1;
    }
  }

  void port() {
    if (is_positive_number(line_.value) && line_.value.size() <= 5 &&
        std::stoi(line_.value) <= 65535) {
      return;
    }
    add(0, fmt::format("expected a port (1 to 65535), found `{}`", line_.value));
  }

  void command(std::string_view text, std::size_t at) {
    if (text.empty()) {
      add(at, "expected a command or null, found nothing");
      return;
    }
    const auto split = split_words(text);
    if (!split) add(at, split.error().message);
  }

  const Place& place_;
  const Line& line_;
  const KnownNames& names_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> check_value(const Place& place, const Line& line, const KnownNames& names) {
  // `null:null` means that the line is unused.
  if (line.key == "null" && is_absent(line.value)) return {};
  // The first colon is the one in the URL: `weightshttps://…`.
  if (line.value.starts_with("//") && (line.key.ends_with("http") || line.key.ends_with("https"))) {
    return {{line.line, line.key_column,
             fmt::format("expected a `:` between key and address, found `{}:`", line.key)}};
  }
  return ValueCheck(place, line, names).run();
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
