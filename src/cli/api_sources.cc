#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/text.h"
#include "case/canonical.h"
#include "case/corpus.h"
#include "cli/api_parts.h"

namespace assay {
namespace {

// An error in the cases of --api_config, before anything runs.
Status check_case(const std::string& text) {
  constexpr std::array<std::string_view, 4> kOthers{"jax", "jnp", "tensorflow", "tf"};
  Case parsed;
  if (const auto status = parse_line(text, parsed, [](const Case&) {}); !status) {
    const ParseError& error = status.error();
    return usage_error(fmt::format("--api_config, column {}: {}", error.column, error.message));
  }
  const std::string_view root = parsed.api().substr(0, parsed.api().find('.'));
  if (std::ranges::find(kOthers, root) == kOthers.end()) return {};
  return usage_error(
      fmt::format("--api_config: assay tests no {}: an API is paddle.… or torch.…", root));
}

// Adds the cases of a file whose id starts with `id`.
Status add_cases_of(const std::string& file, const std::string& id, Sources& sources) {
  Case scratch;
  ASSAY_CHECK(each_corpus_line({&file, 1}, [&](const auto&, const CorpusLine& line) -> Status {
    (void)parse_line(line.text, scratch, [&](const Case& found) {
      std::string text = canonical_text(found);
      if (format_case_id(case_id(text)).starts_with(id)) sources.configs.push_back(std::move(text));
    });
    return {};
  }));
  if (!sources.configs.empty()) return {};
  return usage_error(fmt::format("{} has no case with the id {}", file, id));
}

// Adds what a word of the command line names: a file, a pattern, -, FILE::ID.
Status add_file(const std::string& word, Sources& sources) {
  std::error_code error;
  const std::size_t id = word.rfind("::");
  if (id != std::string::npos && !std::filesystem::exists(word, error)) {
    return add_cases_of(word.substr(0, id), word.substr(id + 2), sources);
  }
  if (word != "-") {
    sources.patterns.push_back(word);
    return {};
  }
  for (std::string line; std::getline(std::cin, line);) {
    const std::string_view text = trimmed(line);
    if (!text.empty() && text.front() != '#') sources.configs.emplace_back(text);
  }
  return {};
}

// The first line of a file that holds a case; empty if there is none.
std::string first_case(const std::filesystem::path& file) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t start = line.find_first_not_of(" \t\r");
    if (start != std::string::npos && line[start] != '#') return line.substr(start);
  }
  return {};
}

}  // namespace

std::vector<std::string> entries_of(const std::string& text) {
  std::vector<std::string> entries;
  for (const std::string& part : split_at(text, ',')) {
    if (!trimmed(part).empty()) entries.emplace_back(trimmed(part));
  }
  return entries;
}

Result<Sources> chosen_sources(const ApiOptions& options) {
  Sources sources;
  for (const std::string& word : options.files) ASSAY_CHECK(add_file(word, sources));
  if (!options.api_config.empty()) {
    std::string text = options.api_config;  // perhaps copied from lines of a terminal
    std::ranges::replace(text, '\n', ' ');
    ASSAY_CHECK(check_case(text));
    sources.configs.push_back(std::move(text));
  }
  for (const std::string& text : options.configs) {
    ASSAY_CHECK(check_case(text));
    sources.configs.push_back(text);
  }
  if (!options.api_config_file.empty()) sources.patterns.push_back(options.api_config_file);
  for (const std::string& pattern : entries_of(options.api_config_file_pattern)) {
    sources.patterns.push_back(pattern);
  }
  if (!options.apis_from.empty()) {
    ASSAY_TRY(sources.only, ChangedApis::read(options.apis_from));
  }
  if (!options.filter.empty()) {
    ASSAY_TRY(sources.filter, NameFilter::parse(options.filter));
  }
  // A database or a retest brings its own cases.
  if (sources.configs.empty() && sources.patterns.empty() && options.retest.empty() &&
      !options.rerun && options.store.empty()) {
    return usage_error(
        "nothing to run: name files of cases, or give one with --api_config; --retest and "
        "--last-failed run cases again");
  }
  return sources;
}

std::string usual_test_lane(const Sources& sources) {
  std::string text = sources.configs.empty() ? "" : sources.configs.front();
  if (text.empty() && !sources.patterns.empty()) {
    const auto files = expand_corpus_pattern(sources.patterns.front());
    if (files && !files->empty()) text = first_case(files->front());
  }
  return text.starts_with("torch.") ? "torch" : "paddle";
}

}  // namespace assay
