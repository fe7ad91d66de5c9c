#include "chain/params/params.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <tuple>

#include "base/fd.h"
#include "base/text.h"
#include "chain/params/align.h"
#include "chain/params/gpu_entry.h"
#include "chain/params/nearest_key.h"
#include "chain/params/value_rules.h"

namespace assay::chain::params {

const Line& Params::find(std::string_view role) const {
  static const Line nothing;
  const auto found = lines_.find(role);
  return found == lines_.end() ? nothing : found->second;
}

std::vector<std::string> Params::list(std::string_view role) const {
  return split_at(value(role), '|');
}

bool Params::runs(std::string_view mode) const {
  const std::vector<std::string> modes = split_at(layout_->modes, '|');
  return std::find(modes.begin(), modes.end(), mode) != modes.end();
}

bool ParsedParams::good() const {
  return std::all_of(problems.begin(), problems.end(),
                     [](const Problem& problem) { return problem.warning; });
}

struct ParamsBuilder {
  static void set_layout(Params& params, const Layout& layout) { params.layout_ = &layout; }
  static void add(Params& params, const Placed& placed) {
    params.lines_.emplace(std::string(placed.place->role), *placed.line);
  }
};

namespace {

struct Fit {
  const Layout* layout = nullptr;
  std::vector<Placed> placed;
  std::vector<Problem> problems;
  int cost = 0;
  int known = 0;  // lines whose key is in the layout; decides between layouts of equal cost
};

constexpr int kSectionCost = 20;

std::string heading(std::string_view name) { return fmt::format("====={}=====", name); }

// The line to report for a section: its heading, or its first line if it has none.
int place_of(const Section& section) {
  const bool has_line = section.name.empty() && !section.lines.empty();
  return has_line ? section.lines.front().line : section.line;
}

// True if a section of this name in the layout has a line with this key.
bool has_place_for(const Layout& layout, std::string_view section_name, std::string_view key) {
  return std::any_of(layout.sections.begin(), layout.sections.end(), [&](const SectionLayout& one) {
    return one.name == section_name &&
           std::any_of(one.places.begin(), one.places.end(), [&](const Place& place) {
             return place.key.substr(0, place.key.find('|')) == key;
           });
  });
}

// The first line of a section that lost its heading, which is then in the section before. It is
// found by the section's first fixed key; an optional section must show two keys. 0 if it is not
// found.
int stray_line_of(const SectionLayout& section, const ParamsText& text, const Layout& layout) {
  std::vector<std::pair<std::size_t, std::string_view>> fixed;
  for (std::size_t i = 0; i < section.places.size(); ++i) {
    const std::string_view key = section.places[i].key;
    if (!key.empty() && key != "##") fixed.emplace_back(i, key.substr(0, key.find('|')));
  }
  for (const Section& other : text.sections) {
    if (fixed.empty() || has_place_for(layout, other.name, fixed.front().second)) continue;
    const auto stands = [&](std::string_view key) {
      return std::find_if(other.lines.begin(), other.lines.end(),
                          [&](const Line& line) { return line.key == key; });
    };
    const auto first = stands(fixed.front().second);
    if (first == other.lines.end()) continue;
    if (section.optional && (fixed.size() < 2 || stands(fixed[1].second) == other.lines.end())) {
      continue;
    }
    const auto before = std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(fixed.front().first),
                                                 first - other.lines.begin());
    return std::prev(first, before)->line;
  }
  return 0;
}

// Matches headings to the layout's sections in order, and reports unknown, doubled and missing
// ones.
std::vector<const Section*> match_sections(const Layout& layout, const ParamsText& text, Fit& fit) {
  std::vector<const Section*> matched(layout.sections.size(), nullptr);
  std::vector<std::string_view> names;
  for (const SectionLayout& section : layout.sections) names.push_back(section.name);
  std::size_t next = 0;
  for (const Section& section : text.sections) {
    const auto at = std::find(names.begin(), names.end(), section.name);
    std::string message;
    if (at == names.end()) {
      message = section.name.empty()
                    ? fmt::format("expected the heading {} first", heading(names.front()))
                    : fmt::format("unknown section `{}`; the nearest known one is `{}`",
                                  section.name, nearest_word(section.name, names));
    } else if (matched[static_cast<std::size_t>(at - names.begin())] != nullptr) {
      message = fmt::format("the section `{}` is doubled", section.name);
    } else {
      const auto index = static_cast<std::size_t>(at - names.begin());
      matched[index] = &section;
      const bool optional = layout.sections[index].optional;
      if (!optional && index < next) {
        message = fmt::format("the section `{}` is too late: expected it before `{}`", section.name,
                              names[next - 1]);
      }
      if (!optional) next = std::max(next, index + 1);
    }
    if (message.empty()) continue;
    // A line without any section counts against a layout like a surplus line.
    constexpr std::size_t kLineOfNowhere = 5;
    if (!section.name.empty()) {
      fit.cost += static_cast<int>(kLineOfNowhere * section.lines.size());
    }
    const int line = place_of(section);
    fit.problems.push_back({line, 1, std::move(message), false});
    fit.cost += kSectionCost;
  }
  const bool told = !fit.problems.empty();  // a misspelt heading is not reported as missing too
  for (std::size_t i = 0; i < matched.size(); ++i) {
    if (matched[i] != nullptr) continue;
    const int stray = stray_line_of(layout.sections[i], text, layout);
    if (layout.sections[i].optional && stray == 0) continue;
    fit.cost += kSectionCost;
    if (told) continue;
    int line = stray > 0 ? stray : text.last_line + 1;
    for (std::size_t later = i + 1; later < matched.size() && line > text.last_line; ++later) {
      if (matched[later] != nullptr) line = matched[later]->line;
    }
    fit.problems.push_back(
        {line, 1, fmt::format("expected the section {} before here", heading(names[i])), false});
  }
  return matched;
}

int end_of(const Section& section, const ParamsText& text) {
  const auto next = std::find_if(text.sections.begin(), text.sections.end(),
                                 [&](const Section& other) { return other.line > section.line; });
  return next == text.sections.end() ? text.last_line + 1 : next->line;
}

int known_keys(const Alignment& alignment) {
  return static_cast<int>(
      std::count_if(alignment.placed.begin(), alignment.placed.end(), [](const Placed& placed) {
        const std::vector<std::string> keys =
            split_at(placed.place->key.empty() ? placed.place->usual : placed.place->key, '|');
        return placed.line->key == placed.place->example ||
               std::find(keys.begin(), keys.end(), placed.line->key) != keys.end();
      }));
}

Fit fit_layout(const Layout& layout, const ParamsText& text) {
  Fit fit;
  fit.layout = &layout;
  const std::vector<const Section*> matched = match_sections(layout, text, fit);
  const bool headings_good = fit.problems.empty();
  for (std::size_t i = 0; i < matched.size(); ++i) {
    if (matched[i] == nullptr) continue;
    Alignment alignment =
        align_section(layout.sections[i].places, matched[i]->lines, end_of(*matched[i], text));
    fit.cost += alignment.cost;
    fit.known += known_keys(alignment);
    // If a heading is wrong, lines are in the wrong section; only the heading is reported.
    if (!headings_good) continue;
    std::move(alignment.problems.begin(), alignment.problems.end(),
              std::back_inserter(fit.problems));
    std::move(alignment.placed.begin(), alignment.placed.end(), std::back_inserter(fit.placed));
  }
  return fit;
}

// Checks conditions between several lines.
void check_together(const Params& params, std::vector<Problem>& problems) {
  const auto lengths = [&](std::string_view one, std::string_view other, bool warning) {
    const std::size_t wanted = params.list(other).size();
    const std::size_t given = params.list(one).size();
    if (is_absent(params.value(one)) || given == wanted || (warning && given == 1)) return;
    problems.push_back({params.line(one), 1,
                        fmt::format("`{}` has {} values for {} of `{}`", params.key(one), given,
                                    wanted, params.key(other)),
                        warning});
  };
  const Layout& layout = params.layout();
  for (const Pairing& pairing : layout.pairings) {
    lengths(pairing.one, pairing.other, pairing.advisory);
  }
  if (layout.own_command.empty()) return;
  const std::vector<std::string> trainers = params.list(layout.own_trainers);
  const std::string_view own = params.key(layout.own_command);
  if (std::find(trainers.begin(), trainers.end(), own) == trainers.end()) {
    problems.push_back(
        {params.line(layout.own_command), 1,
         fmt::format("expected the command of a trainer of line {} ({}), found `{}`",
                     params.line(layout.own_trainers), fmt::join(trainers, ", "), own),
         false});
  }
}

// Two spellings of one flag in a file (--batch-size, --batchsize) are often a mistake.
void warn_of_spellings(const Params& params, std::vector<Problem>& problems) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kPairs{
      {{"train_batch", "infer_batch"}, {"train_use_gpu", "infer_use_gpu"}}};
  for (const auto& [one, other] : kPairs) {
    const std::string_view a = params.key(one);
    const std::string_view b = params.key(other);
    if (a.empty() || b.empty() || a == b || a == "null" || b == "null") continue;
    if (edit_distance(a, b, 1) > 1) continue;
    problems.push_back({params.line(one), 1,
                        fmt::format("`{}` here and `{}` on line {} differ by one letter", a, b,
                                    params.line(other)),
                        true});
  }
}

ParsedParams finish(Fit fit, const Dialects& dialects) {
  ParsedParams parsed;
  ParamsBuilder::set_layout(parsed.params, *fit.layout);
  for (const Placed& placed : fit.placed) ParamsBuilder::add(parsed.params, placed);
  parsed.problems = std::move(fit.problems);
  if (parsed.problems.empty()) {
    KnownNames names{dialects.modes(), {}};
    for (const Placed& placed : fit.placed) names.keys.emplace_back(placed.line->key);
    for (const Placed& placed : fit.placed) {
      for (Problem& problem : check_value(*placed.place, *placed.line, names)) {
        parsed.problems.push_back(std::move(problem));
      }
    }
  }
  if (parsed.good()) {
    check_together(parsed.params, parsed.problems);
    warn_of_spellings(parsed.params, parsed.problems);
  }
  std::stable_sort(parsed.problems.begin(), parsed.problems.end(),
                   [](const Problem& a, const Problem& b) { return a.line < b.line; });
  return parsed;
}

// The result for a file that fits no kind.
ParsedParams refused(int line, std::string message) {
  static const Suite nobody{"-", "", "", ""};
  static const Layout unknown{.name = "unknown", .sections = {}, .modes = {}, .suite = &nobody};
  ParsedParams parsed;
  ParamsBuilder::set_layout(parsed.params, unknown);
  parsed.problems.push_back({line, 1, std::move(message), false});
  return parsed;
}

std::string known_headings(const Dialects& dialects) {
  std::set<std::string_view> names;
  for (const Layout& layout : dialects.layouts()) {
    if (!layout.sections.front().name.empty()) names.insert(layout.sections.front().name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// True if a file of this layout may begin with this heading; sections before it may be absent.
bool opens(const Layout& layout, std::string_view name) {
  for (const SectionLayout& section : layout.sections) {
    if (section.name == name) return true;
    if (!section.optional) return false;
  }
  return false;
}

// True if the first heading (or its absence) allows the layout. Lines before a known heading are
// surplus; they do not make the file headless.
bool may_fit(const Layout& layout, const ParamsText& text, std::span<const Layout> all) {
  const auto starts_a_kind = [&](const Section& section) {
    return !section.name.empty() && std::any_of(all.begin(), all.end(), [&](const Layout& known) {
      return opens(known, section.name);
    });
  };
  const auto first = std::find_if(text.sections.begin(), text.sections.end(), starts_a_kind);
  const bool preceded = text.sections.front().name.empty() && first != text.sections.end();
  const std::string_view name = preceded ? first->name : text.sections.front().name;
  return opens(layout, name);
}

bool is_headless(const Layout& layout) { return layout.sections.front().name.empty(); }

bool shows_a_key(const Fit& fit) {
  return std::any_of(fit.placed.begin(), fit.placed.end(),
                     [](const Placed& placed) { return placed.place->key == placed.line->key; });
}

// A message with text of a damaged file, short and one line.
std::string short_line(std::string_view message) {
  constexpr std::size_t kLongest = 400;
  const std::string line = one_line(message.substr(0, kLongest));
  return message.size() > kLongest ? line + "…" : line;
}

// The error for a file whose first heading, or lack of one, fits no kind.
ParsedParams refused_heading(const ParamsText& text, bool headless, const Dialects& dialects) {
  if (headless) {
    const int line = text.sections.empty() ? 1 : place_of(text.sections.front());
    return refused(line, "expected a heading first, one of " + known_headings(dialects));
  }
  std::vector<std::string_view> names;
  for (const Layout& layout : dialects.layouts()) {
    if (!layout.sections.front().name.empty()) names.push_back(layout.sections.front().name);
  }
  const Section& first = text.sections.front();
  return refused(
      first.line,
      fmt::format("unknown section `{}`; the nearest known one is `{}`; a file starts "
                  "with one of {}",
                  first.name, nearest_word(first.name, names), known_headings(dialects)));
}

std::set<std::string_view> names_of(const Dialects& dialects) {
  std::set<std::string_view> names;
  for (const Layout& layout : dialects.layouts()) names.insert(layout.suite->name);
  return names;
}

// The folder that contains test_tipc, or "" if the path has none.
std::filesystem::path root_of(const std::filesystem::path& path) {
  std::filesystem::path root;
  for (const std::filesystem::path& part : path) {
    if (part == "test_tipc") return root;
    root /= part;
  }
  return {};
}

// The suites that the path suggests, by folder names on it or by the suite's package (ppcls, ppdet,
// …) beside it, because a checkout may have any name.
std::vector<const Suite*> suites_near(const std::string& path, const Dialects& dialects) {
  std::vector<const Suite*> near;
  if (path.empty()) return near;
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error).lexically_normal();
  const std::filesystem::path root = root_of(whole);
  std::set<const Suite*> asked;
  for (const Layout& layout : dialects.layouts()) {
    if (!asked.insert(layout.suite).second) continue;
    const auto folders = split_at(layout.suite->folders, '|');
    const bool passes = std::any_of(folders.begin(), folders.end(), [&](const std::string& name) {
      if (std::find(whole.begin(), whole.end(), name) != whole.end()) return true;
      return !root.empty() && std::filesystem::is_directory(root / name, error);
    });
    if (passes) near.push_back(layout.suite);
  }
  return near;
}

}  // namespace

ParsedParams parse_params(std::string_view text, const Origin& origin) {
  // The longest known file has 63 lines. The limit bounds the alignment, which is quadratic.
  constexpr std::ptrdiff_t kLongest = 10'000;
  if (const auto lines = std::count(text.begin(), text.end(), '\n'); lines > kLongest) {
    return refused(1, fmt::format("{} lines: too many for a params file", lines));
  }
  const ParamsText by_colon = read_params_text(text, Separator::colon);
  const ParamsText by_blank = read_params_text(text, Separator::blank);
  if (by_colon.sections.empty() && by_colon.problems.empty()) {
    return refused(1, "the file is empty; expected a heading such as " + heading("train_params"));
  }
  const Dialects& dialects = *origin.dialects;
  const std::set<std::string_view> names = names_of(dialects);
  if (!origin.dialect.empty() && !names.contains(origin.dialect)) {
    return refused(1, fmt::format("unknown dialect `{}`; known are {}", origin.dialect,
                                  fmt::join(names, ", ")));
  }
  std::optional<Fit> best;
  const Layout* rival = nullptr;  // a layout of another suite that fits equally well
  const std::vector<const Suite*> near = suites_near(origin.path, dialects);
  for (const Layout& layout : dialects.layouts()) {
    const ParamsText& read = layout.separator == Separator::colon ? by_colon : by_blank;
    if (!origin.dialect.empty() && layout.suite->name != origin.dialect) continue;
    if (read.sections.empty() || !may_fit(layout, read, dialects.layouts())) continue;
    Fit fit = fit_layout(layout, read);
    // A line that is not an entry also causes a missing line elsewhere; report only the first.
    if (!read.problems.empty()) fit.problems = read.problems;
    fit.cost += kSectionCost * static_cast<int>(read.problems.size());
    constexpr int kElsewhere = 4;  // less than the cost of one wrong line
    const bool is_near = std::find(near.begin(), near.end(), layout.suite) != near.end();
    if (!near.empty() && !is_near) fit.cost += kElsewhere;
    const int better = !best                                                                ? -1
                       : std::tie(fit.cost, best->known) < std::tie(best->cost, fit.known)  ? -1
                       : std::tie(fit.cost, fit.known) == std::tie(best->cost, best->known) ? 0
                                                                                            : 1;
    if (better == 0 && layout.suite != best->layout->suite) rival = &layout;
    if (better < 0) {
      best = std::move(fit);
      rival = nullptr;
    }
  }
  // A headless file that fits no headless kind has lost its heading.
  const bool headless = by_colon.sections.empty() || (by_colon.sections.front().name.empty() &&
                                                      (!best || is_headless(*best->layout)));
  constexpr int kHopeless = 60;
  const bool hopeless = headless && best && (best->cost > kHopeless || !shows_a_key(*best));
  if (best && !hopeless && rival != nullptr && best->problems.empty()) {
    return refused(1, fmt::format("both {} and {} have such files ({}): say which with --dialect",
                                  best->layout->suite->name, rival->suite->name, rival->name));
  }
  if (best && !hopeless) return finish(std::move(*best), dialects);
  return refused_heading(by_colon, headless, dialects);
}

std::string describe(std::string_view file, const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    text += fmt::format("{}:{}:{}: {}{}\n", file, problem.line, problem.column,
                        problem.warning ? "warning: " : "", short_line(problem.message));
  }
  if (!text.empty()) text.pop_back();
  return text;
}

Result<Params> load_params(const Origin& origin, std::string* warnings) {
  auto text = read_file(origin.path);
  if (!text) return usage_error(text.error().message);
  if (!origin.machines.empty()) *text = on_machines(*text, origin.machines);
  if (!origin.gpus.empty()) {
    ASSAY_TRY(*text, on_gpus(*text, origin.gpus));
  }
  ParsedParams parsed = parse_params(*text, origin);
  const std::string told = describe(origin.path, parsed.problems);
  if (!parsed.good()) return usage_error(told);
  if (warnings != nullptr) *warnings += told;
  return std::move(parsed.params);
}

CheckedFile check_file(const Origin& origin) {
  auto text = read_file(origin.path);
  if (!text) return {false, "-", "unreadable", "", text.error().message};
  const ParsedParams parsed = parse_params(*text, origin);
  const Layout& layout = parsed.params.layout();
  return {parsed.good(), std::string(layout.suite->name), std::string(layout.name),
          std::string(layout.modes), describe(origin.path, parsed.problems)};
}

}  // namespace assay::chain::params
