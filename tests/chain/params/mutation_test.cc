// One thing wrong with a good params file, at every line: refused there, with the word that is
// meant. And one thing changed that means nothing: not refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "chain/params/standard.h"
#include "material.h"

namespace assay::chain {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines = split_at(text, '\n');
  while (!lines.empty() && trimmed(lines.back()).empty()) lines.pop_back();
  return lines;
}

// The good files of the material that the standard script reads: the short and the long layout.
std::vector<fs::path> good_files(const fs::path& tipc) {
  return {tipc / "cases/c00_good.txt",
          tipc / "cases/c09_two_trainers.txt",
          tipc / "cases/fleet_cpu_two_nodes.txt",
          tipc / "params_ocr/det_train_infer_python.txt",
          tipc / "params_ocr/det_train_fleet_infer_python.txt",
          tipc / "mobilenet_v3_small/test_tipc/configs/mobilenet_v3_small/train_infer_python.txt"};
}

bool is_heading(const std::string& line) { return line.starts_with("==="); }
bool is_entry(const std::string& line) {
  return !trimmed(line).empty() && !line.starts_with('#') && !is_heading(line);
}
bool is_null(const std::string& line) { return trimmed(line) == "null:null"; }

std::string key_of(const std::string& line) {
  return std::string(trimmed(line.substr(0, line.find_first_of(": "))));
}

// Keys that stand fast in both layouts.
bool is_fixed(const std::string& key) {
  static const std::set<std::string> fixed{
      "model_name",  "python",       "gpu_list",          "train_model_name", "trainer",
      "norm_train",  "eval",         "norm_export",       "quant_export",     "distill_export",
      "infer_quant", "infer_export", "random_infer_input"};
  return fixed.contains(key);
}

// The first refusal of a text; line 0 when it is good.
params::Problem first_problem(const std::string& text) {
  const auto problems = params::standard_problems(text);
  return problems.empty() ? params::Problem{0, 0, ""} : problems.front();
}

// Runs `check(file, lines, i)` for every line of every good file.
template <typename Check>
void at_every_line(Check check) {
  ASSAY_NEED_TIPC(tipc);
  int lines_seen = 0;
  for (const fs::path& file : good_files(tipc)) {
    const Lines lines = lines_of(slurp(file));
    ASSERT_EQ(first_problem(file_text(lines)).line, 0) << file;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      check(file, lines, i);
      ++lines_seen;
    }
  }
  EXPECT_GT(lines_seen, 200);
}

constexpr std::size_t kUseGpu = 4;

// A null:null that is gone could be any of its neighbours. A gap is as wide as the group lines in
// it.
TEST(Mutation, AMissingLineIsNamedWhereItStood) {
  at_every_line([](const fs::path& file, const Lines& lines, std::size_t i) {
    if (!is_entry(lines[i]) && !is_heading(lines[i])) return;
    Lines wrong = lines;
    wrong.erase(wrong.begin() + static_cast<std::ptrdiff_t>(i));
    const params::Problem problem = first_problem(file_text(wrong));
    if (i == kUseGpu) return;  // the standard script can do without it
    ASSERT_GT(problem.line, 0) << file << " without line " << i + 1;
    if (is_null(lines[i])) return;
    EXPECT_LE(std::abs(problem.line - static_cast<int>(i) - 1), 1)
        << file << ": " << problem.message;
    EXPECT_THAT(problem.message, HasSubstr("expected"));
  });
}

TEST(Mutation, ADoubledLineIsNamedAtItsSecondPlace) {
  at_every_line([](const fs::path& file, const Lines& lines, std::size_t i) {
    if (!is_entry(lines[i]) && !is_heading(lines[i])) return;
    Lines wrong = lines;
    wrong.insert(wrong.begin() + static_cast<std::ptrdiff_t>(i), lines[i]);
    const params::Problem problem = first_problem(file_text(wrong));
    ASSERT_GT(problem.line, 0) << file << " with line " << i + 1 << " doubled";
    if (is_null(lines[i])) return;
    EXPECT_EQ(problem.line, i + 2) << file << ": " << problem.message;
  });
}

TEST(Mutation, ALineThatBelongsNowhereIsNamed) {
  at_every_line([](const fs::path& file, const Lines& lines, std::size_t i) {
    Lines wrong = lines;
    wrong.insert(wrong.begin() + static_cast<std::ptrdiff_t>(i), "--foo:bar");
    const params::Problem problem = first_problem(file_text(wrong));
    EXPECT_EQ(problem.line, i + 1) << file << ": " << problem.message;
  });
}

// One letter lost, two changed about, one too many, all in capitals.
TEST(Mutation, AMisspeltFixedKeyIsNamedWithTheRightOne) {
  at_every_line([](const fs::path& file, const Lines& lines, std::size_t i) {
    const std::string key = key_of(lines[i]);
    if (!is_entry(lines[i]) || !is_fixed(key)) return;
    std::string lost = key;
    lost.erase(lost.size() / 2, 1);
    std::string turned = key;
    std::swap(turned[1], turned[2]);
    std::string capitals = key;
    std::transform(capitals.begin(), capitals.end(), capitals.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    for (const std::string& slip : {lost, turned, key + "s", capitals}) {
      if (slip == key || is_fixed(slip)) continue;
      Lines wrong = lines;
      wrong[i].replace(wrong[i].find(key), key.size(), slip);
      const params::Problem problem = first_problem(file_text(wrong));
      EXPECT_EQ(problem.line, i + 1) << file << " " << slip << ": " << problem.message;
      EXPECT_EQ(problem.column, 1) << file << " " << slip;
      EXPECT_THAT(problem.message, HasSubstr("`" + key + "`")) << file << " " << slip;
    }
  });
}

TEST(Mutation, AMisspeltHeadingIsNamed) {
  at_every_line([](const fs::path& file, const Lines& lines, std::size_t i) {
    if (!is_heading(lines[i])) return;
    Lines wrong = lines;
    wrong[i].replace(wrong[i].find("params"), 6, "parms");
    const params::Problem problem = first_problem(file_text(wrong));
    EXPECT_EQ(problem.line, i + 1) << file << ": " << problem.message;
    EXPECT_THAT(problem.message, HasSubstr("the nearest known one is `"));
  });
}

TEST(Mutation, WhatMeansNothingIsNotRefused) {
  at_every_line([](const fs::path& file, const Lines& lines, std::size_t i) {
    const auto good = [&](const char* what, const std::string& line, bool more = false) {
      Lines changed = lines;
      if (more) {
        changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(i), line);
      } else {
        changed[i] = line;
      }
      const params::Problem problem = first_problem(file_text(changed));
      EXPECT_EQ(problem.line, 0) << what << " at line " << i + 1 << " of " << file << ": "
                                 << problem.message;
    };
    good("a blank line", " ", true);
    good("a carriage return", lines[i] + "\r");
    if (!is_entry(lines[i])) return;
    good("blanks", " \t" + lines[i] + "  ");
    const std::size_t colon = lines[i].find(':');
    if (colon == std::string::npos) return;
    good("blanks about the colon", lines[i].substr(0, colon) + " : " + lines[i].substr(colon + 1));
  });
}

TEST(Mutation, WhatAWrongFileShowsStaysOnOneShortLine) {
  ASSAY_NEED_TIPC(tipc);
  std::string text = slurp(tipc / "cases/c00_good.txt");
  std::replace(text.begin(), text.end(), '\n', '\r');
  const std::string told = params::describe("f", params::standard_problems(text));
  EXPECT_LT(told.size(), 600U);
  EXPECT_EQ(told.find('\r'), std::string::npos);
}

}  // namespace
}  // namespace assay::chain
