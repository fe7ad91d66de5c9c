// Faults planted into real params files: each must be refused at the line where it was planted (or
// beside it), whatever the suite. The seed is fixed; the files are the shared material's.

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <random>

#include "base/text.h"
#include "chain/params/params.h"
#include "suite_material.h"

namespace assay::chain {
namespace {

using Lines = std::vector<std::string>;

struct Planted {
  Lines lines;
  int line = 0;  // of the fault, from 1
  bool done = false;
};

// A file's own sign between key and value.
struct Form {
  char sign = ':';

  bool is_entry(const std::string& line) const {
    return line.find(sign) != std::string::npos && line.front() != '=' && line.front() != '#';
  }
  std::string key(const std::string& line) const { return line.substr(0, line.find(sign)); }
  std::string value(const std::string& line) const { return line.substr(line.find(sign) + 1); }
};

Form form_of(const params::Params& params) {
  return {params.layout().separator == params::Separator::colon ? ':' : ' '};
}

using Random = std::mt19937;
using Plant = Planted (*)(Lines, Random&, const params::Params&);

// An entry that a test may spoil: with a key of its own (`null:null` says nothing).
std::vector<std::size_t> entries(const Lines& lines, Form form) {
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (form.is_entry(lines[i]) && form.key(lines[i]) != "null") list.push_back(i);
  }
  return list;
}

std::size_t pick(const std::vector<std::size_t>& list, Random& random) {
  return list[random() % list.size()];
}

Planted missing(Lines lines, Random& random, const params::Params& params) {
  const Form form = form_of(params);
  const std::size_t at = pick(entries(lines, form), random);
  lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
  return {lines, static_cast<int>(at) + 1, true};
}

Planted doubled(Lines lines, Random& random, const params::Params& params) {
  const Form form = form_of(params);
  const std::size_t at = pick(entries(lines, form), random);
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), lines[at]);
  return {lines, static_cast<int>(at) + 2, true};
}

Planted misspelt(Lines lines, Random& random, const params::Params& params) {
  const Form form = form_of(params);
  const std::size_t at = pick(entries(lines, form), random);
  std::string key = form.key(lines[at]);
  if (key.size() < 4) return {};
  std::swap(key[key.size() - 2], key[key.size() - 3]);
  if (key == form.key(lines[at])) key.pop_back();
  lines[at] = key + form.sign + form.value(lines[at]);
  return {lines, static_cast<int>(at) + 1, true};
}

Planted swapped(Lines lines, Random& random, const params::Params& params) {
  const Form form = form_of(params);
  const std::vector<std::size_t> list = entries(lines, form);
  for (int tries = 0; tries < 50; ++tries) {
    const std::size_t at = pick(list, random);
    if (at + 1 >= lines.size() || !form.is_entry(lines[at + 1])) continue;
    if (form.key(lines[at]) == form.key(lines[at + 1]) || form.key(lines[at + 1]) == "null")
      continue;
    std::swap(lines[at], lines[at + 1]);
    return {lines, static_cast<int>(at) + 1, true};
  }
  return {};
}

Planted surplus(Lines lines, Random& random, const params::Params& params) {
  const Form form = form_of(params);
  const std::size_t at = pick(entries(lines, form), random);
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at),
               std::string("surplus_key") + form.sign + "value");
  return {lines, static_cast<int>(at) + 1, true};
}

Planted no_colon(Lines lines, Random& random, const params::Params& params) {
  const Form form = form_of(params);
  const std::size_t at = pick(entries(lines, form), random);
  const std::size_t sign = lines[at].find(form.sign);
  const std::size_t value = lines[at].find_first_not_of(' ', sign + 1);
  lines[at].erase(sign, form.sign == ' ' ? value - sign : 1);
  return {lines, static_cast<int>(at) + 1, true};
}

Planted lost_heading(Lines lines, Random& random, const params::Params&) {
  std::vector<std::size_t> list;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].starts_with("===")) list.push_back(i);
  }
  if (list.empty()) return {};
  const std::size_t at = pick(list, random);
  lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
  return {lines, static_cast<int>(at) + 1, true};
}

Planted misspelt_heading(Lines lines, Random& random, const params::Params&) {
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with("===")) list.push_back(i);
  }
  if (list.empty()) return {};
  const std::size_t at = pick(list, random);
  const std::size_t letter = lines[at].find("params");
  if (letter == std::string::npos) return {};
  lines[at].replace(letter, 6, "parmas");
  return {lines, static_cast<int>(at) + 1, true};
}

// A value that its place cannot hold: where the rule takes words or numbers.
Planted wrong_value(Lines lines, Random& random, const params::Params& params) {
  const Form form = form_of(params);
  std::vector<std::size_t> list;
  for (const params::SectionLayout& section : params.layout().sections) {
    for (const params::Place& place : section.places) {
      using params::Rule;
      const bool checked = place.rule == Rule::flags || place.rule == Rule::counts ||
                           place.rule == Rule::words || place.rule == Rule::by_mode ||
                           place.rule == Rule::precisions || place.rule == Rule::port;
      if (checked && params.has(place.role)) {
        list.push_back(static_cast<std::size_t>(params.line(place.role)) - 1);
      }
    }
  }
  std::erase_if(list, [&](std::size_t at) { return form.key(lines[at]) == "null"; });
  if (list.empty()) return {};
  const std::size_t at = pick(list, random);
  lines[at] = form.key(lines[at]) + form.sign + "nonsense";
  return {lines, static_cast<int>(at) + 1, true};
}

Planted open_quote(Lines lines, Random& random, const params::Params& params) {
  const Form form = form_of(params);
  std::vector<std::size_t> list;
  for (const params::SectionLayout& section : params.layout().sections) {
    for (const params::Place& place : section.places) {
      const bool command = place.rule == params::Rule::command ||
                           place.rule == params::Rule::program || place.rule == params::Rule::maybe;
      if (command && params.has(place.role) && !params.value(place.role).empty()) {
        list.push_back(static_cast<std::size_t>(params.line(place.role)) - 1);
      }
    }
  }
  std::erase_if(list, [&](std::size_t at) { return form.value(lines[at]) == "null"; });
  if (list.empty()) return {};
  const std::size_t at = pick(list, random);
  lines[at] += " 'open";
  return {lines, static_cast<int>(at) + 1, true};
}

constexpr std::array<std::pair<const char*, Plant>, 10> kFaults{
    {{"missing line", missing},
     {"doubled line", doubled},
     {"misspelt key", misspelt},
     {"two lines swapped", swapped},
     {"surplus line", surplus},
     {"colon lost", no_colon},
     {"heading lost", lost_heading},
     {"heading misspelt", misspelt_heading},
     {"value of no rule", wrong_value},
     {"quote left open", open_quote}}};

bool is_named(const params::ParsedParams& parsed, int line) {
  for (const params::Problem& problem : parsed.problems) {
    if (!problem.warning && std::abs(problem.line - line) <= 1) return true;
  }
  return false;
}

TEST(PlantedFaults, AreRefusedWhereTheyStand) {
  ASSAY_NEED_SUITES(material);
  Random random(20261122);
  std::map<std::string, std::pair<int, int>> counts;  // planted, named
  std::string missed;
  for (const SuiteRun& run : material.runs()) {
    if (!run.tag.empty()) continue;
    const std::string path = "/x/" + run.suite + "/" + run.folder + "/" + run.path();
    const std::string text = material.text(run);
    const params::ParsedParams good = params::parse_params(text, {path, ""});
    if (!good.good()) continue;  // the empty template
    Lines lines = split_at(text, '\n');
    if (!lines.empty() && lines.back().empty()) lines.pop_back();
    for (const auto& [name, plant] : kFaults) {
      const Planted planted = plant(lines, random, good.params);
      if (!planted.done) continue;
      auto& [all, named] = counts[name];
      ++all;
      if (is_named(params::parse_params(file_text(planted.lines), {path, ""}), planted.line)) {
        ++named;
      } else if (missed.size() < 20000) {
        missed += std::string("not named: ") + name + ": " + run.suite + "/" + run.file + ":" +
                  std::to_string(planted.line) + "\n";
      }
    }
  }
  int all = 0;
  int named = 0;
  std::string table;
  for (const auto& [name, count] : counts) {
    all += count.first;
    named += count.second;
    table +=
        name + ": " + std::to_string(count.second) + " of " + std::to_string(count.first) + "\n";
  }
  std::printf("%s%sall: %d of %d\n", missed.c_str(), table.c_str(), named, all);
  EXPECT_EQ(counts.size(), kFaults.size());
  EXPECT_GE(named * 100, all * 97);
}

}  // namespace
}  // namespace assay::chain
