#include "chain/script/doubts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "chain/params/params_text.h"
#include "chain/params/value_check.h"

namespace assay::chain::script {
namespace {

bool has_heading(std::string_view word) { return word.find("===") != std::string_view::npos; }

// "key=lite_train=1|whole_train=8", after the key: parts of which each names a value.
bool has_mode_list(std::string_view word) {
  const std::vector<std::string> parts = split_at(word, '|');
  return parts.size() > 1 && std::ranges::all_of(parts, [](std::string_view part) {
           const std::size_t equals = part.find('=');
           return equals != std::string_view::npos && equals > 0 && equals + 1 < part.size();
         });
}

// The values that the stages' arguments give a key: `-o Global.epochs=2`, `--iters 20`.
std::vector<std::string> given(const std::vector<plan::Stage>& stages, std::string_view key) {
  std::vector<std::string> values;
  for (const plan::Stage& stage : stages) {
    if (stage.kind != plan::StageKind::train) continue;
    for (std::size_t i = 0; i < stage.argv.size(); ++i) {
      const std::string_view word = stage.argv[i];
      if (word.starts_with(key) && word.substr(key.size()).starts_with('=')) {
        values.emplace_back(word.substr(key.size() + 1));
      } else if (word == key && i + 1 < stage.argv.size()) {
        values.push_back(stage.argv[i + 1]);
      }
    }
  }
  return values;
}

bool occurs(const std::vector<plan::Stage>& stages, std::string_view text) {
  return std::ranges::any_of(stages, [&](const plan::Stage& stage) {
    return std::ranges::any_of(stage.argv, [&](const std::string& word) {
      return word.ends_with(text) &&
             (word.size() == text.size() || word[word.size() - text.size() - 1] == '=');
    });
  });
}

std::string lost_number(const plan::Plan& plan, const params::Line& line) {
  const std::string_view number = params::value_for_mode(line.value, plan.mode);
  const std::string key = line.key.substr(line.key.rfind(' ') + 1);
  const std::string small = lowered(key);
  const bool counts =
      small.find("epoch") != std::string::npos || small.find("iter") != std::string::npos;
  const bool trains = std::ranges::any_of(
      plan.stages, [](const plan::Stage& stage) { return stage.kind == plan::StageKind::train; });
  if (!counts || !trains || line.value.find('=') == std::string::npos) return {};
  if (number.empty())
    return fmt::format("line {}: `{}` has no value for {}", line.line, key, plan.mode);
  const std::vector<std::string> values = given(plan.stages, key);
  if (std::ranges::find(values, number) != values.end()) return {};
  return fmt::format("line {}: `{}` is {} for {}, and the script trains with {}", line.line, key,
                     number, plan.mode, values.empty() ? "none" : values.front());
}

std::string cut_value(const plan::Plan& plan, const params::Line& line) {
  const std::size_t colon = line.value.find(':');
  if (colon == std::string::npos || colon == 0) return {};
  const std::string_view front = std::string_view(line.value).substr(0, colon);
  if (occurs(plan.stages, line.value) || !occurs(plan.stages, front)) return {};
  return fmt::format("line {}: the script cuts `{}` at its first colon", line.line, line.value);
}

}  // namespace

std::vector<std::string> losses_of(const plan::Plan& plan, const std::string& params_text) {
  std::vector<std::string> losses;
  for (const auto& section : params::read_params_text(params_text).sections) {
    for (const params::Line& line : section.lines) {
      for (std::string& loss : std::vector{lost_number(plan, line), cut_value(plan, line)}) {
        if (!loss.empty()) losses.push_back(std::move(loss));
      }
    }
  }
  return losses;
}

std::vector<std::string> doubts_about(const plan::Plan& plan) {
  std::vector<std::string> doubts;
  for (const plan::Stage& stage : plan.stages) {
    for (const std::string& word : stage.argv) {
      const char* what = has_heading(word)     ? "a heading of the file"
                         : has_mode_list(word) ? "a list of modes"
                                               : nullptr;
      if (what == nullptr) continue;
      doubts.push_back(
          fmt::format("{}: the script passes {} on as a value: `{}`", stage.name, what, word));
      break;
    }
  }
  return doubts;
}

}  // namespace assay::chain::script
