// Faults planted into real params files that their suites' own scripts read: each must be named at
// the line where it was planted, or beside it. The seed is fixed; the files are the shared
// material's.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <random>

#include "base/text.h"
#include "chain/params/standard.h"
#include "suite_material.h"

namespace assay::chain {
namespace {

using Lines = std::vector<std::string>;

struct Planted {
  Lines lines;
  int line = 0;  // of the fault, from 1
  bool done = false;
};

bool has_key(const std::string& line) {
  return line.find(':') != std::string::npos && line.front() != '=' && line.front() != '#';
}
std::string key_before_colon(const std::string& line) { return line.substr(0, line.find(':')); }

using Random = std::mt19937;
using Plant = Planted (*)(Lines, Random&);

// The entries of the sections that a training's script reads: with a key of its own (`null:null`
// says nothing).
std::vector<std::size_t> entries(const Lines& lines) {
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool tail = lines[i].starts_with("==") && lines[i].find("_params") != std::string::npos &&
                      lines[i].find("benchmark") != std::string::npos;
    if (tail || lines[i].find("disable_train_benchmark") != std::string::npos) break;
    if (has_key(lines[i]) && key_before_colon(lines[i]) != "null") list.push_back(i);
  }
  return list;
}

std::size_t pick(const std::vector<std::size_t>& list, Random& random) {
  return list[random() % list.size()];
}

Planted missing(Lines lines, Random& random) {
  const std::size_t at = pick(entries(lines), random);
  lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
  return {lines, static_cast<int>(at) + 1, true};
}

Planted doubled(Lines lines, Random& random) {
  const std::size_t at = pick(entries(lines), random);
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), lines[at]);
  return {lines, static_cast<int>(at) + 2, true};
}

Planted misspelt(Lines lines, Random& random) {
  const std::size_t at = pick(entries(lines), random);
  std::string key = key_before_colon(lines[at]);
  // Keys that are flags of the tested program may be any.
  if (key.size() < 5 || key.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") != key.npos) return {};
  if (key == "use_gpu" || key == "epoch" || key == "save_dir" || key == "output_dir") return {};
  key.erase(key.size() / 2, 1);
  lines[at] = key + lines[at].substr(lines[at].find(':'));
  return {lines, static_cast<int>(at) + 1, true};
}

Planted surplus(Lines lines, Random& random) {
  const std::size_t at = pick(entries(lines), random);
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), "surplus_key:value");
  return {lines, static_cast<int>(at) + 1, true};
}

Planted no_colon(Lines lines, Random& random) {
  const std::size_t at = pick(entries(lines), random);
  const std::size_t colon = lines[at].find(':');
  if (lines[at].find(':', colon + 1) != std::string::npos) return {};
  lines[at].erase(colon, 1);
  return {lines, static_cast<int>(at) + 1, true};
}

Planted lost_heading(Lines lines, Random&) {
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].find("=eval_params=") == std::string::npos) continue;
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
    return {lines, static_cast<int>(i) + 1, true};
  }
  return {};
}

Planted misspelt_heading(Lines lines, Random&) {
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::size_t letter = lines[i].find("eval_params=");
    if (letter == std::string::npos) continue;
    lines[i].replace(letter, 11, "eval_parmas");
    return {lines, static_cast<int>(i) + 1, true};
  }
  return {};
}

// A number or a mode that is none.
Planted wrong_value(Lines lines, Random& random) {
  std::vector<std::size_t> list;
  for (const std::size_t at : entries(lines)) {
    if (lines[at].find("lite_train_lite_infer=") != std::string::npos) list.push_back(at);
  }
  if (list.empty()) return {};
  const std::size_t at = pick(list, random);
  const bool mode = random() % 2 == 0;
  lines[at] = key_before_colon(lines[at]) +
              (mode ? ":lite_trian_lite_infer=2" : ":lite_train_lite_infer=two");
  return {lines, static_cast<int>(at) + 1, true};
}

constexpr std::array<std::pair<const char*, Plant>, 8> kFaults{
    {{"missing line", missing},
     {"doubled line", doubled},
     {"misspelt key", misspelt},
     {"surplus line", surplus},
     {"colon lost", no_colon},
     {"heading lost", lost_heading},
     {"heading misspelt", misspelt_heading},
     {"value of no rule", wrong_value}}};

bool is_named(const std::string& text, int line) {
  return std::ranges::any_of(params::likely_problems(text), [&](const params::Problem& problem) {
    return std::abs(problem.line - line) <= 1;
  });
}

// No good file of any suite is refused, and a fault in one whose layout is the standard one is
// named.
TEST(PlantedFaults, AreNamedWhereTheyStand) {
  ASSAY_NEED_SUITES(material);
  Random random(20261122);
  std::map<std::string, std::pair<int, int>> counts;  // planted, named
  std::string missed;
  int files = 0;
  int standard = 0;
  for (const SuiteRun& run : material.runs()) {
    if (!run.tag.empty()) continue;
    const std::string text = material.text(run);
    EXPECT_EQ(params::describe(run.file, params::likely_problems(text)), "");
    ++files;
    Lines lines = split_at(text, '\n');
    if (!lines.empty() && lines.back().empty()) lines.pop_back();
    Lines without = lines;
    std::erase_if(without, [](const std::string& line) { return line.starts_with("norm_export"); });
    if (params::likely_problems(file_text(without)).empty()) continue;
    ++standard;
    for (const auto& [name, plant] : kFaults) {
      const Planted planted = plant(lines, random);
      if (!planted.done) continue;
      auto& [all, named] = counts[name];
      ++all;
      if (is_named(file_text(planted.lines), planted.line)) {
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
  std::printf("%s%s%d files, %d of the standard layout; all: %d of %d\n", missed.c_str(),
              table.c_str(), files, standard, named, all);
  EXPECT_EQ(counts.size(), kFaults.size());
  EXPECT_GE(standard, 250);
  EXPECT_GE(named * 100, all * 95);
}

}  // namespace
}  // namespace assay::chain
