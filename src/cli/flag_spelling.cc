#include "cli/flag_spelling.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <array>

#include "base/nearest.h"
#include "cli/api_options.h"

namespace assay {
namespace {

using Apps = std::vector<const CLI::App*>;
using Options = std::vector<const CLI::Option*>;

Apps verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

Options options_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option*) { return true; });
}

const CLI::App* find_verb(const CLI::App& app, const std::string& name) {
  const Apps verbs = verbs_of(app);
  const auto found = std::find_if(verbs.begin(), verbs.end(),
                                  [&](const CLI::App* verb) { return verb->get_name() == name; });
  return found == verbs.end() ? nullptr : *found;
}

// "assay timeline merge"
std::string words_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : words_of(*parent) + " " + app.get_name();
}

tl::unexpected<Error> unknown_verb(const CLI::App& app, const std::string& word,
                                   std::span<const std::string_view> elsewhere) {
  if (app.get_parent() == nullptr && std::ranges::find(elsewhere, word) != elsewhere.end()) {
    return usage_error(
        fmt::format("this build has the verbs for API cases only; `make build` adds `{}` "
                    "(build/release/bin/assay)",
                    word));
  }
  std::vector<std::string> known;
  for (const CLI::App* verb : verbs_of(app)) {
    if (!verb->get_group().empty()) known.push_back(verb->get_name());
  }
  if (app.get_parent() == nullptr) known.insert(known.end(), elsewhere.begin(), elsewhere.end());
  const std::string nearest = suggest(word, known);
  return usage_error(fmt::format("unknown verb '{}'{}", word,
                                 nearest.empty() ? "; `assay help` lists all verbs" : nearest));
}

std::string folded(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

// Flags of engineV2 and engineV4 that assay does not have (docs/how-to/coming-from-enginev2-v4.md).
std::string_view instead_of(std::string_view name) {
  struct Refused {
    std::string_view name, advice;
  };
  static constexpr std::array kRefused{
      Refused{"custom-device-vs-gpu", "compare with the CPU: --paddle_custom_device=True"},
      Refused{"custom-device-vs-gpu-mode", "compare with the CPU: --paddle_custom_device=True"},
      Refused{"accuracy-manual-threshold-config", "its name is --manual_threshold_config_file"},
      Refused{
          "accuracy-manual-file",
          "--bitwise_alignment=True is strict, and --manual_threshold_config_file=FILE beside it "
          "has the APIs that are judged by their own tolerance"},
      Refused{"record-accuracy-tolerance", "its name is --test_tol"},
  };
  const auto found = std::ranges::find(kRefused, name, &Refused::name);
  return found == kRefused.end() ? std::string_view() : found->advice;
}

// The flag's name (without dashes) as `app` declares it.
Result<std::string> spelled_flag(const CLI::App& app, const std::string& name) {
  std::vector<std::string> known;
  for (const CLI::Option* option : options_of(app)) {
    for (const std::string& candidate : option->get_lnames()) {
      if (folded(candidate) == folded(name)) return candidate;
      if (!option->get_group().empty()) known.push_back("--" + candidate);
    }
  }
  const std::string verb = words_of(app);
  for (const CLI::App* other : verbs_of(app)) {
    if (other->get_option_no_throw("--" + name) != nullptr) {
      return usage_error(
          fmt::format("--{} is a flag of a verb: `{} --{}`", name, words_of(*other), name));
    }
  }
  if (const auto advice = instead_of(folded(name)); !advice.empty()) {
    return usage_error(fmt::format("`{}` has no flag --{} of engineV4: {}", verb, name, advice));
  }
  const std::string nearest = suggest("--" + name, known);
  return usage_error(
      fmt::format("unknown flag --{} of `{}`{}", name, verb,
                  nearest.empty() ? fmt::format("; `{} --help` lists all flags", verb) : nearest));
}

// A truth flag that stands before something else, such as a file, is True.
void add_truth(const CLI::App& app, const std::string& next, std::vector<std::string>& spelled) {
  const CLI::Option* option = app.get_option_no_throw(spelled.back());
  if (option == nullptr || option->get_type_name() != "BOOL" || parse_bool(next)) return;
  if (next.empty() || (next.starts_with('-') && next != "-")) return;
  spelled.back() = "--" + option->get_lnames().front() + "=True";
}

}  // namespace

Result<std::vector<std::string>> spelled_words(const CLI::App& root,
                                               const std::vector<std::string>& words,
                                               std::span<const std::string_view> elsewhere) {
  std::vector<std::string> spelled;
  const CLI::App* app = &root;
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (*word == "--") {
      spelled.insert(spelled.end(), word, words.end());
      break;
    }
    if (word->starts_with("--")) {
      const std::size_t end = std::min(word->find('='), word->size());
      ASSAY_TRY(const std::string name, spelled_flag(*app, word->substr(2, end - 2)));
      spelled.push_back("--" + name + word->substr(end));
      if (end == word->size()) add_truth(*app, word + 1 == words.end() ? "" : word[1], spelled);
      continue;
    }
    if (word->size() == 2 && word->front() == '-') {
      spelled.push_back(*word);
      add_truth(*app, word + 1 == words.end() ? "" : word[1], spelled);
      continue;
    }
    if (!word->starts_with('-') && app->get_require_subcommand_min() > 0) {
      const CLI::App* verb = find_verb(*app, *word);
      if (verb == nullptr) return unknown_verb(*app, *word, elsewhere);
      app = verb;
    }
    spelled.push_back(*word);
  }
  return spelled;
}

}  // namespace assay
