#include "chain/params/standard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/nearest.h"
#include "base/text.h"
#include "chain/params/value_check.h"

namespace assay::chain::params {
namespace {

// Costs of one step. A line in a place of another sort must cost more than leaving out the place
// and the line both (kMissing + kSurplus is a little more than kForeign, so that one misnamed line
// stays one problem).
constexpr int kMissing = 5;
constexpr int kSurplus = 5;
constexpr int kOptional = 3;  // missing
constexpr int kForeign = 9;
constexpr int kMisspelt = 3;
constexpr int kOtherHint = 4;
constexpr int kUnhinted = 2;
constexpr int kFiller = 1;
constexpr int kHeading = 20;

struct Place {
  std::string role;
  std::string kind;               // of its value
  std::vector<std::string> keys;  // the keys, or words that usual ones hold
  bool fixed = false;
  bool optional = false;

  bool has(std::string_view key) const { return std::ranges::find(keys, key) != keys.end(); }
  // "`eval`", "the epochs line"
  std::string shown() const {
    return fixed ? fmt::format("`{}`", fmt::join(keys, "` or `"))
                 : fmt::format("the {} line", role);
  }
};

struct SectionLayout {
  std::string name;
  bool optional = false;
  std::vector<Place> places;
};

// The table of the standard script, with or without what only suites' own files have.
std::vector<SectionLayout> read_layout(bool longer, bool of_suites) {
  constexpr std::string_view kStart = "<<'LAYOUT'\n";
  std::string_view table = standard_script();
  table.remove_prefix(table.find(kStart) + kStart.size());
  table = table.substr(0, table.find("\nLAYOUT\n"));
  std::vector<SectionLayout> sections;
  for (const std::string& row : split_at(table, '\n')) {
    const std::vector<std::string> words = split_at(row, ' ');
    if (row.starts_with("section")) {
      sections.push_back({words[1], words[0].ends_with('?'), {}});
    } else if ((longer || row.front() != '+') && (of_suites || row.front() != '!')) {
      const bool marked = std::string_view("+?!").find(row.front()) != std::string_view::npos;
      sections.back().places.push_back({words[0].substr(marked ? 1 : 0), words[1],
                                        split_at(words[2].substr(1), '|'), words[2][0] == '=',
                                        row.front() == '?' || row.front() == '!'});
    }
  }
  return sections;
}

bool hints_at(const Place& place, std::string_view lower_key) {
  return !place.fixed && std::ranges::any_of(place.keys, [&](const std::string& word) {
    return lower_key.find(word) != std::string_view::npos;
  });
}

bool is_misspelt(const Place& place, std::string_view key) {
  return std::ranges::any_of(place.keys, [&](const std::string& known) {
    const std::size_t allowed = std::max<std::size_t>(2, known.size() / 4);
    return edit_distance(lowered(key), lowered(known), allowed) <= allowed;
  });
}

bool is_fixed_key(const std::vector<Place>& places, std::string_view key) {
  return std::ranges::any_of(places,
                             [&](const Place& place) { return place.fixed && place.has(key); });
}

int cost_of(const Place& place, const Line& line, const std::vector<Place>& places) {
  if (place.has(line.key)) return 0;
  if (line.key == "null") return kFiller;
  const bool fixed_elsewhere = is_fixed_key(places, line.key);
  if (place.fixed) {
    return !fixed_elsewhere && is_misspelt(place, line.key) ? kMisspelt : kForeign;
  }
  const std::string lower = lowered(line.key);
  if (fixed_elsewhere) return kForeign;
  if (hints_at(place, lower)) return 0;
  const bool other =
      std::ranges::any_of(places, [&](const Place& one) { return hints_at(one, lower); });
  return other ? kOtherHint : kUnhinted;
}

// One step along places and lines.
struct Step {
  const Place* place = nullptr;  // none: the line is surplus
  const Line* line = nullptr;    // none: the place is missing
};

struct Alignment {
  std::vector<Step> steps;
  int cost = 0;
};

int missing_cost(const Place& place) { return place.optional ? kOptional : kMissing; }

// The cheapest way of editing the lines into the places (Wagner and Fischer's edit distance), so
// that one line too few or too many is found where it is.
Alignment align(const std::vector<Place>& places, const std::vector<Line>& lines) {
  std::vector<std::vector<int>> fit(places.size(), std::vector<int>(lines.size()));
  std::vector<std::vector<int>> best(places.size() + 1, std::vector<int>(lines.size() + 1));
  for (std::size_t i = 0; i <= places.size(); ++i) {
    for (std::size_t j = 0; j <= lines.size(); ++j) {
      int least = i + j == 0 ? 0 : 1'000'000;
      if (i > 0) least = std::min(least, best[i - 1][j] + missing_cost(places[i - 1]));
      if (j > 0) least = std::min(least, best[i][j - 1] + kSurplus);
      if (i > 0 && j > 0) {
        fit[i - 1][j - 1] = cost_of(places[i - 1], lines[j - 1], places);
        least = std::min(least, best[i - 1][j - 1] + fit[i - 1][j - 1]);
      }
      best[i][j] = least;
    }
  }
  Alignment alignment{{}, best.back().back()};
  for (std::size_t i = places.size(), j = lines.size(); i + j > 0;) {
    // Surplus first, so that of two equal lines the second one is called surplus.
    if (j > 0 && best[i][j] == best[i][j - 1] + kSurplus) {
      alignment.steps.push_back({nullptr, &lines[--j]});
    } else if (i > 0 && j > 0 && best[i][j] == best[i - 1][j - 1] + fit[i - 1][j - 1]) {
      alignment.steps.push_back({&places[--i], &lines[--j]});
    } else {
      alignment.steps.push_back({&places[--i], nullptr});
    }
  }
  std::ranges::reverse(alignment.steps);
  return alignment;
}

// What is wrong with one section's lines.
class SectionCheck {
 public:
  SectionCheck(const SectionLayout& layout, const Section& section)
      : layout_(layout), start_(section.line), alignment_(align(layout.places, section.lines)) {}

  const Alignment& alignment() const { return alignment_; }

  std::vector<Problem> problems() {
    const std::vector<Step>& steps = alignment_.steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto [place, line] = steps[i];
      if (place == nullptr) {
        if (!doubled(*line, i)) {
          add(*line, fmt::format("surplus line `{}`: expected {} here", line->key, next_place(i)));
        }
      } else if (line == nullptr) {
        if (!place->optional) i = missing(i);
      } else if (line->key != "null" && !place->has(line->key) &&
                 (place->fixed || is_fixed_key(layout_.places, line->key))) {
        add(*line, fmt::format("expected {} here, found `{}`", place->shown(), line->key));
      }
    }
    return std::move(problems_);
  }

 private:
  // Tells of a fixed key that stood before.
  bool doubled(const Line& line, std::size_t at) {
    if (!is_fixed_key(layout_.places, line.key)) return false;
    for (std::size_t i = 0; i < at; ++i) {
      const Line* earlier = alignment_.steps[i].line;
      if (earlier == nullptr || earlier->key != line.key) continue;
      add(line, fmt::format("`{}` is doubled: it is already on line {}", line.key, earlier->line));
      return true;
    }
    return false;
  }

  std::string next_place(std::size_t at) const {
    for (std::size_t i = at + 1; i < alignment_.steps.size(); ++i) {
      if (alignment_.steps[i].place != nullptr) return alignment_.steps[i].place->shown();
    }
    return "the end of the section";
  }

  // Lines that are missing one after another are one problem. Returns the last step told of.
  std::size_t missing(std::size_t at) {
    const std::vector<Step>& steps = alignment_.steps;
    std::size_t last = at;
    const auto is_gap = [](const Step& step) {
      return step.place != nullptr && step.line == nullptr && !step.place->optional;
    };
    while (last + 1 < steps.size() && is_gap(steps[last + 1])) ++last;
    std::string what = steps[at].place->shown();
    if (last > at) {
      what += fmt::format(" and {} more up to {}", last - at, steps[last].place->shown());
    }
    const auto has_line = [](const Step& step) { return step.line != nullptr; };
    const auto before =
        std::find_if(steps.rend() - static_cast<std::ptrdiff_t>(at), steps.rend(), has_line);
    const auto next =
        std::find_if(steps.begin() + static_cast<std::ptrdiff_t>(last), steps.end(), has_line);
    Line gap;
    gap.line = (before == steps.rend() ? start_ : before->line->line) + 1;
    add(gap, fmt::format("a line is missing: expected {} here, found {}", what,
                         next == steps.end() ? "the end of the section"
                                             : fmt::format("`{}`", next->line->key)));
    return last;
  }

  void add(const Line& line, const std::string& message) {
    problems_.push_back({line.line, line.key_column, layout_.name + ": " + message});
  }

  const SectionLayout& layout_;
  int start_;
  Alignment alignment_;
  std::vector<Problem> problems_;
};

struct Fit {
  std::vector<Problem> problems;
  std::vector<Step> steps;
  int cost = 0;
  bool headings_good = true;
  bool absent = false;  // a section is missing with all its lines
};

std::string heading(std::string_view name) { return fmt::format("====={}=====", name); }

// Where a section starts whose heading is lost, by its first fixed key; 0 if it is not found.
int stray_line(const SectionLayout& layout, const ParamsText& text) {
  const auto fixed = std::ranges::find_if(layout.places, &Place::fixed);
  if (fixed == layout.places.end()) return 0;
  for (const Section& section : text.sections) {
    const auto found =
        std::ranges::find_if(section.lines, [&](const Line& line) { return fixed->has(line.key); });
    if (found == section.lines.end()) continue;
    return std::prev(found, std::min(fixed - layout.places.begin(), found - section.lines.begin()))
        ->line;
  }
  return 0;
}

// Matches headings with the layout's sections in their order.
std::map<std::size_t, const Section*> match(const std::vector<SectionLayout>& layout,
                                            const ParamsText& text, Fit& fit) {
  std::map<std::size_t, const Section*> matched;
  std::vector<std::string_view> names;
  names.reserve(layout.size());
  for (const SectionLayout& section : layout) names.push_back(section.name);
  const auto add = [&](int line, std::string message) {
    fit.problems.push_back({line, 1, std::move(message)});
    fit.cost += kHeading;
  };
  std::size_t next = 0;
  for (const Section& section : text.sections) {
    const auto at = std::ranges::find(names, section.name);
    const auto index = static_cast<std::size_t>(at - names.begin());
    if (section.name.empty()) {
      add(section.lines.empty() ? section.line : section.lines.front().line,
          fmt::format("expected the heading {} first", heading(names.front())));
    } else if (at == names.end()) {
      add(section.line,
          fmt::format("unknown heading `{}`; the nearest known one is `{}`", section.name,
                      nearest_within(static_cast<std::size_t>(-2), section.name, names)));
    } else if (matched.contains(index)) {
      add(section.line, fmt::format("the heading `{}` is doubled", section.name));
    } else {
      matched[index] = &section;
      if (layout[index].optional) continue;
      if (index < next) {
        add(section.line, fmt::format("the heading `{}` is out of order: expected before `{}`",
                                      section.name, names[next - 1]));
      }
      next = std::max(next, index + 1);
    }
  }
  if (!fit.problems.empty()) return matched;  // a misspelt heading is not a missing one, too
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (layout[i].optional || matched.contains(i)) continue;
    const int stray = stray_line(layout[i], text);
    fit.absent = fit.absent || stray == 0;
    add(stray > 0 ? stray : text.last_line + 1,
        fmt::format("expected the heading {} before here", heading(names[i])));
  }
  return matched;
}

Fit fit_layout(const std::vector<SectionLayout>& layout, const ParamsText& text) {
  Fit fit;
  if (text.sections.empty()) return {{{1, 1, "the file is empty"}}, {}, kHeading, false, true};
  const auto matched = match(layout, text, fit);
  fit.headings_good = fit.problems.empty();
  for (const auto& [index, section] : matched) {
    SectionCheck check(layout[index], *section);
    fit.cost += check.alignment().cost;
    fit.steps.insert(fit.steps.end(), check.alignment().steps.begin(),
                     check.alignment().steps.end());
    if (!fit.headings_good) continue;  // lines would be in the wrong section
    std::ranges::move(check.problems(), std::back_inserter(fit.problems));
  }
  return fit;
}

struct Layouts {
  explicit Layouts(bool of_suites)
      : shorter(read_layout(false, of_suites)), longer(read_layout(true, of_suites)) {}

  std::vector<SectionLayout> shorter;
  std::vector<SectionLayout> longer;

  // By the layout that fits better.
  Fit fit(const ParamsText& text) const {
    Fit best = fit_layout(longer, text);
    Fit other = fit_layout(shorter, text);
    return other.cost < best.cost ? other : best;
  }
};

// Adds what is wrong with values, of a line if it is right where it is.
void add_value_problems(Fit& fit, const std::vector<std::string_view>& kinds) {
  for (const auto& [place, line] : fit.steps) {
    if (place == nullptr || line == nullptr || !fit.problems.empty()) continue;
    if (!kinds.empty() && std::ranges::find(kinds, place->kind) == kinds.end()) continue;
    fit.problems = value_problems(place->kind, *line);
  }
}

// Suites' scripts count lines. So a line that is missing before a key which stands where it belongs
// shifts nothing: `##` may hold its place.
bool shifts_nothing(const ParamsText& text, const Problem& problem) {
  using Known = std::pair<std::string_view, int>;
  constexpr std::array kPlaces{Known{"trainer", 15},     Known{"norm_export", 30},
                               Known{"inference", 40},   Known{"trainer", 13},
                               Known{"norm_export", 22}, Known{"inference", 27}};
  if (problem.message.find("a line is missing") == std::string::npos) return false;
  for (const Section& section : text.sections) {
    for (const Line& line : section.lines) {
      const auto has_key = [&](const Known& place) { return place.first == line.key; };
      if (line.line < problem.line || std::ranges::none_of(kPlaces, has_key)) continue;
      return std::ranges::find(kPlaces, Known{line.key, line.line}) != kPlaces.end();
    }
  }
  return false;
}

}  // namespace

std::vector<Problem> standard_problems(std::string_view text) {
  // The longest known file has 63 lines. The limit bounds the alignment, which is quadratic.
  constexpr std::ptrdiff_t kLongest = 1'000;
  if (const auto lines = std::ranges::count(text, '\n'); lines > kLongest) {
    return {{1, 1, fmt::format("{} lines: too many for a params file", lines)}};
  }
  const ParamsText read = read_params_text(text);
  if (!read.problems.empty()) return read.problems;
  const Layouts layouts(false);
  Fit fit = layouts.fit(read);
  add_value_problems(fit, {});
  std::ranges::stable_sort(fit.problems, {}, &Problem::line);
  return std::move(fit.problems);
}

std::vector<Problem> likely_problems(std::string_view text) {
  constexpr int kOneFault = kMissing + kSurplus + 10;  // with unused and unusual keys
  ParamsText read = read_params_text(text);
  const Layouts layouts(true);
  if (read.sections.empty() || read.sections.front().name != layouts.longer.front().name) return {};
  if (read.problems.size() == 1) return read.problems;
  // What stands at the end differs from suite to suite.
  std::erase_if(read.sections, [&](const Section& section) {
    return std::ranges::none_of(layouts.longer, [&](const SectionLayout& known) {
      return !known.optional && edit_distance(section.name, known.name, 2) <= 2;
    });
  });
  Fit fit = layouts.fit(read);
  if (fit.absent || fit.problems.size() > 1 ||
      fit.cost > kOneFault + (fit.headings_good ? 0 : kHeading)) {
    return {};
  }
  std::erase_if(fit.problems, [&](const Problem& one) { return shifts_nothing(read, one); });
  add_value_problems(fit, {"gpus", "numbers"});
  return std::move(fit.problems);
}

std::string describe(std::string_view file, const std::vector<Problem>& problems) {
  constexpr std::size_t kLongest = 400;
  std::string text;
  for (const Problem& problem : problems) {
    text += fmt::format("{}{}:{}:{}: {}{}", text.empty() ? "" : "\n", file, problem.line,
                        problem.column, one_line(problem.message.substr(0, kLongest)),
                        problem.message.size() > kLongest ? "…" : "");
  }
  return text;
}

}  // namespace assay::chain::params
