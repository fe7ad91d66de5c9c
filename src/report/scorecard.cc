#include "report/scorecard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/json.h"
#include "base/table.h"
#include "case/case_traits.h"
#include "report/scripts.h"

namespace assay {
namespace {

constexpr std::array<const char*, 5> kWords{"right", "wrong", "no kernel", "not judged", "no case"};
constexpr int kSamples = 8;  // cases of one API, dtype and word, which may be of other overloads

const char* word_of(Outcome outcome) {
  if (outcome == Outcome::pass) return "right";
  if (outcome == Outcome::no_kernel) return "no kernel";
  return info(outcome).failed ? "wrong" : "not judged";
}

}  // namespace

Result<nlohmann::json> scorecard_of(RunReader& run, const FrameworkConfig& python) {
  nlohmann::json request{{"do", "scorecard"}, {"cases", nlohmann::json::array()}};
  std::map<std::tuple<std::string, std::string, std::string>, int> counts;
  ASSAY_CHECK(run.each({.records = false}, [&](const FinishedCase& finished) -> Status {
    const std::string api(api_of(finished.text));
    const std::string dtype(first_dtype(finished.text));
    const std::string word = word_of(finished.verdict.outcome);
    if (!api.starts_with("torch.") || ++counts[{api, dtype, word}] > kSamples) return {};
    request["cases"].push_back({finished.text, dtype.empty() ? "none" : dtype, word});
    return {};
  }));
  if (counts.empty()) return usage_error("--scorecard counts PyTorch's operators: no case is its");
  ASSAY_TRY(const auto answers, ask_scripts(python, {request}));
  if (answers[0].contains("error")) return fail(text_of(answers[0], "error"));
  return answers[0];
}

std::vector<std::string> changes_of(const nlohmann::json& before, const nlohmann::json& now) {
  std::map<std::string, std::array<std::string, 2>> words;
  for (const std::size_t side : {0, 1}) {
    for (const auto& [name, dtypes] : (side == 0 ? before : now)["operators"].items()) {
      for (const auto& [dtype, word] : dtypes.items()) words[name + " " + dtype].at(side) = word;
    }
  }
  std::vector<std::string> lines;
  for (auto& [what, of] : words) {
    if (of[0] == of[1]) continue;
    for (std::string& word : of) word = word.empty() ? "no case" : word;
    lines.push_back(fmt::format("{}: {} before, {} now", what, of[0], of[1]));
  }
  return lines;
}

nlohmann::json score_rows(const nlohmann::json& card) {
  nlohmann::json rows = nlohmann::json::array();
  const auto add = [&rows](const std::string& name, const nlohmann::json& counts) {
    nlohmann::json row{name};
    for (const char* word : kWords) row.push_back(counts.value(word, 0));
    rows.push_back(std::move(row));
  };
  add("all", card["total"]);
  for (const char* part : {"dtypes", "groups"}) {
    for (const auto& [name, counts] : card[part].items()) add(name, counts);
  }
  return rows;
}

std::string score_table(const nlohmann::json& card, const std::vector<std::string>& changes,
                        bool markdown) {
  Table table({"operators", ">right", ">wrong", ">no kernel", ">not judged", ">no case"});
  for (const nlohmann::json& row : score_rows(card)) {
    table.row(row[0].get<std::string>(), row[1].get<int>(), row[2].get<int>(), row[3].get<int>(),
              row[4].get<int>(), row[5].get<int>());
  }
  std::string text = markdown ? table.markdown() : table.text();
  for (const char* word : {"wrong", "no kernel"}) {
    for (const auto& [name, dtypes] : card["operators"].items()) {
      std::vector<std::string> of;
      for (const auto& [dtype, found] : dtypes.items()) {
        if (found == word) of.push_back(dtype);
      }
      if (of.empty()) continue;
      text += fmt::format("{}{}: {} ({})\n", markdown ? "\n" : "", word, name, fmt::join(of, ", "));
    }
  }
  for (const std::string& change : changes) {
    text += fmt::format("{}changed: {}\n", markdown ? "\n" : "", change);
  }
  return text;
}

}  // namespace assay
