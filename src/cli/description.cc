#include "cli/description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <functional>
#include <string_view>
#include <vector>

namespace assay {
namespace {

// Called for every verb that --help shows, parents first; `words` is "assay timeline merge".
using Visit = std::function<void(const CLI::App& verb, const std::string& words)>;

std::vector<const CLI::App*> shown_verbs(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
}

void each_verb(const CLI::App& app, const std::string& words, const Visit& visit) {
  visit(app, words);
  for (const CLI::App* verb : shown_verbs(app)) {
    each_verb(*verb, words + " " + verb->get_name(), visit);
  }
}

std::vector<const CLI::Option*> shown_options(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_min() > 0; }

// Escapes the text for roff: no line becomes a request, and no line breaks at a hyphen.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if ((out.empty() || out.back() == '\n') && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string option_page(const CLI::Option& option) {
  // The names as --help prints them: "-h,--help", or the name of a positional.
  std::string names = option.get_name(false, true);
  if (names.empty()) names = option.get_name(true);
  const bool flag = option.get_type_size() == 0;  // --help shows no type for a flag
  std::string type = flag ? "" : option.get_type_name();
  if (!type.empty() && !option.get_default_str().empty()) type += "=" + option.get_default_str();
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(names),
                     type.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(type)),
                     roff(option.get_description()));
}

std::string verb_page(const CLI::App& verb, const std::string& words) {
  std::string page = fmt::format(".SS {}\n{}\n", roff(words), roff(verb.get_description()));
  for (const CLI::Option* option : shown_options(verb)) page += option_page(*option);
  return page;
}

// One branch of a bash `case`: the words that may follow `words`. An option that takes a value ends
// with "=".
std::string completion_line(const CLI::App& verb, const std::string& words) {
  std::vector<std::string> next;
  for (const CLI::App* below : shown_verbs(verb)) next.push_back(below->get_name());
  for (const CLI::Option* option : shown_options(verb)) {
    for (const std::string& name : option->get_lnames()) {
      next.push_back(fmt::format("--{}{}", name, takes_value(*option) ? "=" : ""));
    }
  }
  return fmt::format("    '{}') next='{}' ;;\n", words, fmt::join(next, " "));
}

}  // namespace

std::string man_page(const CLI::App& root, const std::string& version) {
  std::string page = fmt::format(
      ".\\\" -*- coding: utf-8 -*-\n.TH ASSAY 1 \"\" \"assay {}\"\n.SH NAME\nassay \\- {}\n.SH "
      "SYNOPSIS\n.B assay\n.I "
      "VERB\n[OPTIONS]\n"
      ".SH VERBS\n",
      version, roff(root.get_description()));
  each_verb(root, root.get_name(), [&](const CLI::App& verb, const std::string& words) {
    page += verb_page(verb, words);
  });
  return page;
}

std::string bash_completion(const CLI::App& root) {
  std::vector<std::string> verbs;
  std::string lines;
  each_verb(root, root.get_name(), [&](const CLI::App& verb, const std::string& words) {
    if (&verb != &root) verbs.push_back("'" + words + "'");
    lines += completion_line(verb, words);
  });
  // The words before the cursor (COMP_WORDS) determine the verb.
  return fmt::format(R"(# Bash completion for assay: source <(assay completion)
_assay() {{
  local words={0} word next
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$words $word" in
    {1}) words="$words $word" ;;
    esac
  done
  case "$words" in
{2}  esac
  # After "--name=" comes a value: bash completes files by itself.
  if [[ ${{COMP_WORDS[COMP_CWORD-1]}} == = ]]; then return; fi
  COMPREPLY=($(compgen -W "$next" -- "${{COMP_WORDS[COMP_CWORD]}}"))
  if [[ ${{#COMPREPLY[@]}} -eq 1 && ${{COMPREPLY[0]}} == *= ]]; then compopt -o nospace; fi
}}
complete -o default -F _assay {0}
)",
                     root.get_name(), fmt::join(verbs, " | "), lines);
}

}  // namespace assay
