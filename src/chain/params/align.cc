#include "chain/params/align.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "chain/params/nearest_key.h"

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

// Calls `check` for each `|` part; true when one of them is what it looks for.
template <typename Check>
bool any_part(std::string_view list, Check check) {
  while (!list.empty()) {
    const std::size_t bar = list.find('|');
    if (check(list.substr(0, bar))) return true;
    if (bar == std::string_view::npos) break;
    list.remove_prefix(bar + 1);
  }
  return false;
}

bool one_of(std::string_view word, std::string_view alternatives) {
  return any_part(alternatives, [&](std::string_view part) { return part == word; });
}

bool hints_at(const Place& place, std::string_view lower_key) {
  return any_part(place.hints, [&](std::string_view hint) {
    return lower_key.find(hint) != std::string_view::npos;
  });
}

bool nearly(std::string_view lower_key, std::string_view alternatives, std::size_t per_letters) {
  return any_part(alternatives, [&](std::string_view known) {
    const std::size_t allowed = std::max<std::size_t>(2, known.size() / per_letters);
    return edit_distance(lower_key, lowered(known), allowed) <= allowed;
  });
}

// A free key may well be another flag: only a letter or two make it a slip of a usual one.
constexpr std::size_t kLettersOfAUsualKey = 1000;
constexpr std::size_t kLettersOfAFixedKey = 4;

// What one line's key is to all places of its section.
struct KeyFacts {
  std::string lower;
  bool anchors = false;  // some place's fixed key
  bool usual = false;    // some place's usual key
  bool hinted = false;   // holds some place's hint
};

KeyFacts facts_of(std::span<const Place> places, std::string_view key) {
  KeyFacts facts;
  facts.lower = lowered(key);
  for (const Place& place : places) {
    facts.anchors = facts.anchors || (is_fixed(place) && one_of(key, place.key));
    facts.usual = facts.usual || one_of(key, place.usual);
    facts.hinted = facts.hinted || hints_at(place, facts.lower);
  }
  return facts;
}

bool is_misspelt(const Place& place, const KeyFacts& facts) {
  if (facts.anchors || facts.usual) return false;
  return is_fixed(place) ? nearly(facts.lower, place.key, kLettersOfAFixedKey)
                         : nearly(facts.lower, place.usual, kLettersOfAUsualKey);
}

int fixed_cost(const Place& place, const KeyFacts& facts, std::string_view key) {
  if (one_of(key, place.key)) return 0;
  if (place.nullable && key == "null") return kFiller;
  return is_misspelt(place, facts) ? kMisspelt : kForeign;
}

int open_cost(const Place& place, const KeyFacts& facts, std::string_view key) {
  if (key == "null") return place.example == "null" || one_of(key, place.usual) ? 0 : kFiller;
  if (one_of(key, place.usual)) return 0;
  if (facts.anchors || facts.usual) return kForeign;
  if (!place.usual.empty()) return is_misspelt(place, facts) ? kMisspelt : kUnhinted;
  if (hints_at(place, facts.lower)) return 0;
  return facts.hinted ? kOtherHint : kUnhinted;
}

int place_cost(const Place& place, const KeyFacts& facts, const Line& line) {
  const bool group = line.type == Line::Type::group;
  if (group && place.group_too) return kFiller;
  if (is_group_place(place) || group) return is_group_place(place) && group ? 0 : kNever;
  return is_fixed(place) ? fixed_cost(place, facts, line.key) : open_cost(place, facts, line.key);
}

int surplus_cost(const Line& line) {
  return line.type == Line::Type::group ? kSurplusGroup : kSurplus;
}

int missing_cost(const Place& place) { return place.optional ? 0 : kMissing; }

// fit(i, j): the cost of line j in place i. best(i, j): the cheapest way of fitting the first i
// places to the first j lines.
struct Table {
  std::vector<std::vector<int>> fit;
  std::vector<std::vector<int>> best;
};

Table fill_table(std::span<const Place> places, std::span<const Line> lines) {
  Table table;
  table.fit.assign(places.size(), std::vector<int>(lines.size(), 0));
  for (std::size_t j = 0; j < lines.size(); ++j) {
    const KeyFacts facts = facts_of(places, lines[j].key);
    for (std::size_t i = 0; i < places.size(); ++i) {
      table.fit[i][j] = place_cost(places[i], facts, lines[j]);
    }
  }
  table.best.assign(places.size() + 1, std::vector<int>(lines.size() + 1, 0));
  for (std::size_t i = 0; i <= places.size(); ++i) {
    for (std::size_t j = 0; j <= lines.size(); ++j) {
      if (i == 0 && j == 0) continue;
      int best = kNever * 1000;
      if (i > 0) best = std::min(best, table.best[i - 1][j] + missing_cost(places[i - 1]));
      if (j > 0) best = std::min(best, table.best[i][j - 1] + surplus_cost(lines[j - 1]));
      if (i > 0 && j > 0) {
        best = std::min(best, table.best[i - 1][j - 1] + table.fit[i - 1][j - 1]);
      }
      table.best[i][j] = best;
    }
  }
  return table;
}

// The quick way for a section in which nothing is wrong: every line stands in the next place.
bool fits_at_once(std::span<const Place> places, std::span<const Line> lines, Alignment& out) {
  std::size_t at = 0;
  for (const Place& place : places) {
    const bool there = at < lines.size() && [&] {
      const Line& line = lines[at];
      if (line.type == Line::Type::group) return is_group_place(place);
      if (is_group_place(place)) return false;
      if (is_fixed(place)) return one_of(line.key, place.key);
      return one_of(line.key, place.usual) || (line.key == "null" && place.example == "null");
    }();
    if (there && !is_group_place(place)) out.placed.push_back({&place, &lines[at]});
    if (there) {
      ++at;
    } else if (!place.optional) {
      return false;
    }
  }
  return at == lines.size();
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
      for (std::string& word : split_at(place.key, '|')) words.push_back(std::move(word));
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

std::vector<Step> walk_back(const Table& table, std::span<const Place> places,
                            std::span<const Line> lines) {
  std::vector<Step> steps;
  std::size_t i = places.size();
  std::size_t j = lines.size();
  while (i > 0 || j > 0) {
    // Surplus first, so that of two equal lines the second one is called surplus.
    const auto& best = table.best;
    if (j > 0 && best[i][j] == best[i][j - 1] + surplus_cost(lines[j - 1])) {
      steps.push_back({nullptr, &lines[--j]});
    } else if (i > 0 && j > 0 && best[i][j] == best[i - 1][j - 1] + table.fit[i - 1][j - 1]) {
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
        if (!step.place->optional) i = missing(steps, i);
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
    if (is_fixed(place)) {
      if (one_of(line.key, place.key) || (place.nullable && line.key == "null")) return;
      add(line, fmt::format("expected {} here, found {}{}", shown(place), found(line),
                            nearest_note(places_, line.key)));
    } else if (line.key != "null") {
      placed_open(place, line);
    }
  }

  void placed_open(const Place& place, const Line& line) {
    const KeyFacts facts = facts_of(places_, line.key);
    if (one_of(line.key, place.usual)) {
      if (facts.anchors) doubled(line);
    } else if (facts.anchors || facts.usual) {
      add(line, fmt::format("expected {} here, found {}", shown(place), found(line)));
    } else if (!place.usual.empty() && is_misspelt(place, facts)) {
      add(line, fmt::format("expected {} here, found {}{}", shown(place), found(line),
                            nearest_note(places_, line.key)));
    }
  }

  // Tells of a fixed key that stood before.
  bool doubled(const Line& line) {
    for (const Placed& earlier : out_.placed) {
      if (!is_fixed(*earlier.place) || earlier.line->key != line.key) continue;
      add(line,
          fmt::format("`{}` is doubled: it is already on line {}", line.key, earlier.line->line));
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
           steps[last + 1].line == nullptr && !steps[last + 1].place->optional) {
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
  Alignment at_once;
  if (fits_at_once(places, lines, at_once)) return at_once;
  const Table table = fill_table(places, lines);
  Alignment alignment = Reader(places, end_line).read(walk_back(table, places, lines));
  alignment.cost = table.best.back().back();
  return alignment;
}

}  // namespace assay::chain::params
