#include "cli/description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/terminal.h"
#include "base/text.h"
#include "cli/verbs.h"

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

// The names as --help prints them: "-h,--help", or the name of a positional.
std::string names_of(const CLI::Option& option) {
  std::string names = option.get_name(false, true);
  return names.empty() ? option.get_name(true) : names;
}

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
  const bool flag = option.get_type_size() == 0;  // --help shows no type for a flag
  std::string type = flag ? "" : option.get_type_name();
  if (!type.empty() && !option.get_default_str().empty()) type += "=" + option.get_default_str();
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(names_of(option)),
                     type.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(type)),
                     roff(option.get_description()));
}

std::string verb_page(const CLI::App& verb, const std::string& words) {
  std::string page = fmt::format(".SS {}\n{}\n", roff(words), roff(verb.get_description()));
  for (const CLI::Option* option : shown_options(verb)) page += option_page(*option);
  return page;
}

// Text for a cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '*') out += '\\';
    out += c == '<' ? "&lt;" : std::string(1, c);
  }
  return out;
}

std::string sentence(std::string text) {
  if (!text.ends_with('.')) text += '.';
  return text;
}

// "| name | default | meaning |"
std::string table_row(const CLI::Option& option) {
  std::vector<std::string> needed;
  for (const CLI::Option* other : option.get_needs()) {
    needed.push_back(fmt::format(" Needs `{}`.", names_of(*other)));
  }
  std::ranges::sort(needed);
  std::string value = option.get_default_str();
  if (!value.empty()) value = fmt::format("`{}`", value);
  return fmt::format("| `{}` | {} | {}{} |\n", fmt::join(split_at(names_of(option), ','), ", "),
                     option.get_required() ? "required" : cell(value),
                     cell(sentence(option.get_description())), fmt::join(needed, ""));
}

// Tables of options, one for each heading, in the order in which the headings come first.
class Tables {
 public:
  void add(const std::string& heading, const std::string& row) {
    auto table = std::ranges::find(tables_, heading, &Table::first);
    if (table == tables_.end()) table = tables_.insert(tables_.end(), {heading, {}});
    table->second += row;
  }

  std::string text() const {
    std::string page;
    for (const auto& [heading, rows] : tables_) {
      page +=
          fmt::format("**{}**\n\n| name | default | meaning |\n|---|---|---|\n{}\n", heading, rows);
    }
    return page;
  }

 private:
  using Table = std::pair<std::string, std::string>;
  std::vector<Table> tables_;
};

// The options of a verb that the page lists; `assay VERB --help` is the page's subject.
std::vector<const CLI::Option*> listed_options(const CLI::App& verb) {
  std::vector<const CLI::Option*> options = shown_options(verb);
  std::erase(options, verb.get_help_ptr());
  return options;
}

// The verb that lists a row of options; the page has each row once, at the first verb that takes
// it.
using Listed = std::map<std::string, std::string>;

// One verb: what it does, its options, those that another verb's section lists, its examples.
std::string verb_section(const CLI::App& verb, const std::string& words, const std::string& footer,
                         Listed& listed) {
  Tables own;
  std::map<std::string, std::vector<std::string>> elsewhere;
  for (const CLI::Option* option : listed_options(verb)) {
    const std::string row = table_row(*option);
    const std::string& at = listed.try_emplace(row, words).first->second;
    if (at == words || option->get_positional()) {
      own.add(option->get_group(), row);
    } else {
      elsewhere[at].push_back(fmt::format("`{}`", names_of(*option)));
    }
  }
  std::string usage = CLI::Formatter().make_usage(&verb, words);
  usage.erase(0, usage.find(words));
  const bool below = words.find(' ') != words.rfind(' ');
  std::string page = fmt::format("{} {}\n\n{}\n\n```text\n{}```\n\n{}", below ? "###" : "##", words,
                                 sentence(verb.get_description()), usage, own.text());
  for (const auto& [other, names] : elsewhere) {
    std::string anchor = other;
    std::ranges::replace(anchor, ' ', '-');
    page += fmt::format("As in [{}](#{}): {}.\n\n", other, anchor, fmt::join(names, ", "));
  }
  if (verb.get_footer() != footer) {
    page += fmt::format("```text\n{}\n```\n\n", trimmed(verb.get_footer()));
  }
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

std::string flag_page(const CLI::App& root) {
  std::string page = R"(# Flags

<!-- Generated by `assay manual --markdown`. Do not edit. -->

`assay help VERB` prints all flags of a verb. Here a flag that several verbs take is described at the first of them.
`-` and `_` mean the same in a flag's name. A switch may be written `--flag`, `--flag=True` or `--flag True`.

)";
  Listed listed;
  each_verb(root, root.get_name(), [&](const CLI::App& verb, const std::string& words) {
    if (&verb != &root) page += verb_section(verb, words, root.get_footer(), listed);
  });
  return page.erase(page.size() - 1);
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

Verb add_completion_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "completion", "Print the completion for bash: source <(assay completion)");
  return {app, [&parent]() -> Result<int> {
            show(stdout, "{}", bash_completion(parent));
            return kAllGood;
          }};
}

Verb add_manual_verb(CLI::App& parent) {
  CLI::App* app =
      parent.add_subcommand("manual", "Print the page for man: assay manual | man -l -");
  const std::string what = "Print docs/reference/flags.md instead: all flags, in Markdown";
  CLI::Option* markdown = app->add_flag("--markdown", what);
  return {app, [&parent, markdown]() -> Result<int> {
            show(stdout, "{}",
                 markdown->count() > 0 ? flag_page(parent) : man_page(parent, ASSAY_VERSION));
            return kAllGood;
          }};
}

}  // namespace assay
