#include "chain/params/align.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "chain/params/nearest_key.h"
#include "chain/params/words.h"

namespace assay::chain::params {
namespace {

// Costs of one step. A line in a place of another sort must cost more than leaving out the place
// and the line both (kMissing + kSurplus is a little more than kForeign, so that one misnamed line
// stays one problem).
constexpr int kMissing = 5;
constexpr int kSurplus = 5;
constexpr int kForeign = 9;
constexpr int kMisspelt = 3;
constexpr int kOtherHint = 4;
constexpr int kUnhinted = 2;
constexpr int kFiller = 1;
constexpr int kSurplusGroup = 1;
constexpr int kNever = 1000;

bool is_group_place(const Place& place) { return place.key == "##"; }
bool is_fixed(const Place& place) { return !place.key.empty() && !is_group_place(place); }

bool one_of(std::string_view word, std::string_view alternatives) {
  const std::vector<std::string> list = split_list(alternatives, '|');
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string lowered(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool hints_at(const Place& place, std::string_view key) {
  const std::string lower = lowered(key);
  const std::vector<std::string> hints = split_list(place.hints, '|');
  return std::any_of(hints.begin(), hints.end(), [&](const std::string& hint) {
    return lower.find(hint) != std::string::npos;
  });
}

bool nearly(std::string_view key, std::string_view alternatives) {
  const std::string lower = lowered(key);
  const std::vector<std::string> list = split_list(alternatives, '|');
  return std::any_of(list.begin(), list.end(), [&](const std::string& known) {
    const std::size_t allowed = std::max<std::size_t>(2, known.size() / 4);
    return edit_distance(lower, known, allowed) <= allowed;
  });
}

bool anchors(std::span<const Place> places, std::string_view key) {
  return std::any_of(places.begin(), places.end(),
                     [&](const Place& place) { return is_fixed(place) && one_of(key, place.key); });
}

int fixed_cost(const Place& place, std::span<const Place> places, std::string_view key) {
  if (one_of(key, place.key)) return 0;
  if (place.nullable && key == "null") return kFiller;
  if (!anchors(places, key) && nearly(key, place.key)) return kMisspelt;
  return kForeign;
}

int place_cost(const Place& place, std::span<const Place> places, const Line& line) {
  const bool group = line.type == Line::Type::group;
  if (group && place.group_too) return kFiller;
  if (is_group_place(place) || group) return is_group_place(place) && group ? 0 : kNever;
  if (is_fixed(place)) return fixed_cost(place, places, line.key);
  if (line.key == "null") return place.example == "null" ? 0 : kFiller;
  if (one_of(line.key, place.also)) return 0;
  if (anchors(places, line.key)) return kForeign;
  if (hints_at(place, line.key)) return 0;
  const bool elsewhere = std::any_of(places.begin(), places.end(),
                                     [&](const Place& other) { return hints_at(other, line.key); });
  return elsewhere ? kOtherHint : kUnhinted;
}

int surplus_cost(const Line& line) {
  return line.type == Line::Type::group ? kSurplusGroup : kSurplus;
}

// cost[i][j]: the cheapest way of fitting the first i places to the first j lines.
using Table = std::vector<std::vector<int>>;

Table fill_table(std::span<const Place> places, std::span<const Line> lines) {
  Table cost(places.size() + 1, std::vector<int>(lines.size() + 1, 0));
  for (std::size_t i = 0; i <= places.size(); ++i) {
    for (std::size_t j = 0; j <= lines.size(); ++j) {
      if (i == 0 && j == 0) continue;
      int best = kNever * 1000;
      if (i > 0) best = std::min(best, cost[i - 1][j] + kMissing);
      if (j > 0) best = std::min(best, cost[i][j - 1] + surplus_cost(lines[j - 1]));
      if (i > 0 && j > 0) {
        best = std::min(best, cost[i - 1][j - 1] + place_cost(places[i - 1], places, lines[j - 1]));
      }
      cost[i][j] = best;
    }
  }
  return cost;
}

std::string shown(const Place& place) {
  if (is_group_place(place)) return "a `##` line";
  if (is_fixed(place)) {
    std::string keys(place.key);
    for (std::size_t at = 0; (at = keys.find('|', at)) != std::string::npos; at += 6) {
      keys.replace(at, 1, "` or `");
    }
    return "`" + keys + "`";
  }
  if (place.example == "null") return fmt::format("the {} line (or null:null)", place.role);
  return fmt::format("the {} line (such as `{}`)", place.role, place.example);
}

std::string nearest_note(std::span<const Place> places, std::string_view key) {
  if (key.empty() || key == "null" || key.front() == '#') return {};
  std::vector<std::string> words;
  for (const Place& place : places) {
    if (is_fixed(place)) {
      for (std::string& word : split_list(place.key, '|')) words.push_back(std::move(word));
    } else if (!is_group_place(place) && place.example != "null") {
      words.emplace_back(place.example);
    }
  }
  const std::string_view known = nearest_word(lowered(key), words);
  if (known.empty() || known == key) return {};
  return fmt::format("; the nearest known key is `{}`", known);
}

std::string found(const Line& line) {
  return line.type == Line::Type::group ? "`##`" : "`" + line.key + "`";
}

// One step of the way through the table, from its end to its start.
struct Step {
  const Place* place = nullptr;  // none: the line is surplus
  const Line* line = nullptr;    // none: the place is missing
};

std::vector<Step> walk_back(const Table& cost, std::span<const Place> places,
                            std::span<const Line> lines) {
  std::vector<Step> steps;
  std::size_t i = places.size();
  std::size_t j = lines.size();
  while (i > 0 || j > 0) {
    // Surplus first, so that of two equal lines the second one is called surplus.
    if (j > 0 && cost[i][j] == cost[i][j - 1] + surplus_cost(lines[j - 1])) {
      steps.push_back({nullptr, &lines[--j]});
    } else if (i > 0 && j > 0 &&
               cost[i][j] == cost[i - 1][j - 1] + place_cost(places[i - 1], places, lines[j - 1])) {
      steps.push_back({&places[--i], &lines[--j]});
    } else {
      steps.push_back({&places[--i], nullptr});
    }
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

class Reader {
 public:
  Reader(std::span<const Place> places, int end_line) : places_(places), end_line_(end_line) {}

  Alignment read(const std::vector<Step>& steps) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      if (step.place == nullptr) {
        surplus(*step.line, steps, i);
      } else if (step.line == nullptr) {
        i = missing(steps, i);
      } else {
        placed(*step.place, *step.line);
      }
    }
    return std::move(out_);
  }

 private:
  void placed(const Place& place, const Line& line) {
    if (is_group_place(place)) return;
    out_.placed.push_back({&place, &line});
    if (line.type == Line::Type::group) return;
    if (is_fixed(place) && !one_of(line.key, place.key) &&
        !(place.nullable && line.key == "null")) {
      add(line, fmt::format("expected {} here, found {}{}", shown(place), found(line),
                            nearest_note(places_, line.key)));
    } else if (!is_fixed(place) && line.key != "null" && anchors(places_, line.key)) {
      if (one_of(line.key, place.also)) {
        doubled(line);
      } else {
        add(line, fmt::format("expected {} here, found {}", shown(place), found(line)));
      }
    }
  }

  // Tells of a fixed key that stood before.
  bool doubled(const Line& line) {
    for (const Placed& earlier : out_.placed) {
      if (!is_fixed(*earlier.place) || earlier.line->key != line.key) continue;
      add(line, fmt::format("`{}` is doubled: it stands on line {} already", line.key,
                            earlier.line->line));
      return true;
    }
    return false;
  }

  void surplus(const Line& line, const std::vector<Step>& steps, std::size_t at) {
    if (line.type == Line::Type::group || doubled(line)) return;
    std::string expected = "the end of the section";
    for (std::size_t next = at + 1; next < steps.size(); ++next) {
      if (steps[next].place == nullptr) continue;
      expected = shown(*steps[next].place);
      break;
    }
    add(line, fmt::format("surplus line {}: expected {} here{}", found(line), expected,
                          nearest_note(places_, line.key)));
  }

  // Lines that are missing one after another are one problem. Gives the last step told of.
  std::size_t missing(const std::vector<Step>& steps, std::size_t at) {
    std::size_t last = at;
    while (last + 1 < steps.size() && steps[last + 1].place != nullptr &&
           steps[last + 1].line == nullptr) {
      ++last;
    }
    const Line* next = nullptr;
    for (std::size_t i = last + 1; i < steps.size() && next == nullptr; ++i) next = steps[i].line;
    std::string what = shown(*steps[at].place);
    if (last > at) {
      what += fmt::format(" and {} more line{} up to {}", last - at, last - at > 1 ? "s" : "",
                          shown(*steps[last].place));
    }
    if (next == nullptr) {
      out_.problems.push_back({end_line_, 1,
                               fmt::format("expected {} here, found the end of the section", what),
                               false});
    } else {
      add(*next, fmt::format("a line is missing: expected {} here, found {}{}", what, found(*next),
                             nearest_note(places_, next->key)));
    }
    return last;
  }

  void add(const Line& line, std::string message) {
    out_.problems.push_back({line.line, line.key_column, std::move(message), false});
  }

  std::span<const Place> places_;
  int end_line_;
  Alignment out_;
};

}  // namespace

Alignment align_section(std::span<const Place> places, std::span<const Line> lines, int end_line) {
  const Table cost = fill_table(places, lines);
  Alignment alignment = Reader(places, end_line).read(walk_back(cost, places, lines));
  alignment.cost = cost.back().back();
  return alignment;
}

}  // namespace assay::chain::params
