#include "chain/params/shell_words.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/text.h"

namespace assay::chain::params {

Result<std::vector<std::string>> split_words(std::string_view command) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = '\0';
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    const bool more = i + 1 < command.size();
    if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else if (c == '\\' && quote == '"' && more &&
                 (command[i + 1] == '"' || command[i + 1] == '\\')) {
        word += command[++i];
      } else {
        word += c;
      }
      continue;
    }
    if (c == ' ' || c == '\t') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
      continue;
    }
    in_word = true;
    if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '\\' && more) {
      word += command[++i];
    } else {
      word += c;
    }
  }
  if (quote != '\0') return usage_error(std::string("a quote (") + quote + ") does not close");
  if (in_word) words.push_back(std::move(word));
  return words;
}

Status check_model(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(name).lexically_normal();
  if (!path.is_absolute() && (path.empty() || *path.begin() != "..")) return {};
  return usage_error(
      fmt::format("model_name is part of the path of the results, and {} leads out of it", name));
}

}  // namespace assay::chain::params
