#include "chain/params/dialect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "base/text.h"

namespace assay::chain::params {
namespace {

constexpr std::array<std::pair<std::string_view, Rule>, 23> kRules{{
    {"any", Rule::any},           {"text", Rule::text},
    {"command", Rule::command},   {"maybe", Rule::maybe},
    {"program", Rule::program},   {"flag", Rule::flag},
    {"flags", Rule::flags},       {"device", Rule::device},
    {"devices", Rule::devices},   {"gpu_list", Rule::gpu_list},
    {"autocast", Rule::autocast}, {"trainers", Rule::trainers},
    {"by_mode", Rule::by_mode},   {"counts", Rule::counts},
    {"count", Rule::count},       {"precisions", Rule::precisions},
    {"list", Rule::list},         {"commands", Rule::commands},
    {"settings", Rule::settings}, {"port", Rule::port},
    {"number", Rule::number},     {"numbers", Rule::numbers},
    {"ignored", Rule::ignored},
}};

std::string_view first_word(std::string_view& rest) {
  rest = trimmed(rest);
  const std::size_t end = rest.find_first_of(" \t");
  const std::string_view word = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : trimmed(rest.substr(end));
  return word;
}

// A list of keys without one of them; says whether it was there.
bool take_key(std::string& keys, std::string_view key) {
  std::vector<std::string> list = split_at(keys, '|');
  const bool there = std::erase(list, key) > 0;
  keys.clear();
  for (const std::string& one : list) keys += (keys.empty() ? "" : "|") + one;
  return there;
}

class DialectReader {
 public:
  explicit DialectReader(std::string_view text) : text_(text) {}

  Result<Dialect> read() {
    while (next_line()) {
      if (line_.starts_with(' ')) {
        ASSAY_CHECK(place_line());
      } else {
        ASSAY_CHECK(head_line());
      }
    }
    ASSAY_CHECK(end_kind());
    if (out_.suite.name.empty()) return wrong("no `dialect NAME`");
    if (out_.layouts.empty()) return wrong("no `kind NAME`");
    return std::move(out_);
  }

 private:
  tl::unexpected<Error> wrong(std::string message) const {
    return fail(fmt::format("{}.dialect, line {}: {}", out_.suite.name, number_, message));
  }

  // The next line that says something; comments and blank lines do not.
  bool next_line() {
    while (!text_.empty()) {
      take_line();
      const std::string_view said = trimmed(line_);
      if (!said.empty() && (said.starts_with("##") || !said.starts_with('#'))) return true;
    }
    return false;
  }

  void take_line() {
    const std::size_t end = text_.find('\n');
    line_ = text_.substr(0, end);
    text_ = end == std::string_view::npos ? std::string_view() : text_.substr(end + 1);
    ++number_;
  }

  Status head_line() {
    std::string_view rest = line_;
    const std::string_view word = first_word(rest);
    if (word == "kind") {
      ASSAY_CHECK(end_kind());
      layout_.emplace();
      layout_->name = rest;
    } else if (word == "as_many" || word == "as_many?" || word == "among") {
      return relation(word, rest);
    } else if (word.starts_with("section")) {
      return section(word.ends_with('?'), rest);
    } else if (!set_field(word, rest)) {
      return wrong(fmt::format("what is `{}`?", word));
    }
    return {};
  }

  bool set_field(std::string_view word, std::string_view rest) {
    Suite& suite = out_.suite;
    std::string_view* field = word == "dialect"      ? &suite.name
                              : word == "repository" ? &suite.repository
                              : word == "commit"     ? &suite.commit
                              : word == "folders"    ? &suite.folders
                              : !layout_             ? nullptr
                              : word == "modes"      ? &layout_->modes
                                                     : nullptr;
    if (field != nullptr) {
      *field = rest;
    } else if (layout_ && word == "script") {
      const std::string_view path = first_word(rest);
      layout_->scripts.push_back({path, rest});
    } else if (layout_ && word == "separator") {
      layout_->separator = Separator::blank;
    } else if (layout_ && word == "short_status") {
      layout_->short_status = true;
    } else {
      return false;
    }
    return true;
  }

  // What two roles of the kind are to each other.
  Status relation(std::string_view word, std::string_view rest) {
    const std::string_view one = first_word(rest);
    if (!layout_ || one.empty() || rest.empty()) {
      return wrong(fmt::format("expected `{} ROLE ROLE` in a kind", word));
    }
    if (word == "among") {
      layout_->own_command = one;
      layout_->own_trainers = rest;
    } else {
      layout_->pairings.push_back({one, rest, word.ends_with('?')});
    }
    return {};
  }

  Status section(bool optional, std::string_view rest) {
    if (!layout_) return wrong("a section stands outside of a kind");
    end_section();
    section_.emplace();
    const std::size_t as = rest.find(" as ");
    section_->name = trimmed(rest.substr(0, as));
    if (section_->name == "-") section_->name = {};  // lines without a heading
    section_->optional = optional;
    if (as != std::string_view::npos) section_->prefix = trimmed(rest.substr(as + 4));
    return {};
  }

  Status place_line() {
    if (!section_) return wrong("a place stands outside of a section");
    std::string_view rest = trimmed(line_);
    if (rest == "##") {
      places_.push_back({"", "##", "##", "", Rule::any, false});
      return {};
    }
    Place place;
    place.role = own(std::string(section_->prefix) + std::string(first_word(rest)));
    std::string_view rule = first_word(rest);
    const std::string_view sort = first_word(rest);
    if (sort != "=" && sort != "~" && sort != "*") {
      return wrong("expected ROLE RULE = KEYS, ROLE RULE ~ KEYS or ROLE RULE * EXAMPLE (WORDS)");
    }
    place.optional = rule.ends_with('?');
    if (place.optional) rule.remove_suffix(1);
    if (!set_rule(place, rule)) return wrong(fmt::format("unknown rule `{}`", rule));
    if (sort == "*") {
      any_key(place, rest);
      return {};
    }
    std::string keys(rest);
    place.nullable = take_key(keys, "null") || sort == "~";
    place.group_too = take_key(keys, "##");
    const std::string_view kept = own(keys);
    if (sort == "=" && !kept.empty()) {
      place.key = kept;
    } else {
      place.usual = kept;
    }
    place.example = kept.empty() ? "null" : kept.substr(0, kept.find('|'));
    places_.push_back(place);
    return {};
  }

  // EXAMPLE (WORDS), or EXAMPLE alone.
  void any_key(Place& place, std::string_view rest) {
    const std::size_t open = rest.find(" (");
    if (open != std::string_view::npos && rest.ends_with(')')) {
      place.hints = rest.substr(open + 2, rest.size() - open - 3);
      rest = rest.substr(0, open);
    }
    place.example = trimmed(rest);
    places_.push_back(place);
  }

  bool set_rule(Place& place, std::string_view name) {
    constexpr std::string_view kWords = "words:";
    if (name.starts_with(kWords)) {
      std::string words(name.substr(kWords.size()));
      std::replace(words.begin(), words.end(), ',', '|');
      place.rule = Rule::words;
      place.words = own(std::move(words));
      return true;
    }
    const auto found = std::find_if(kRules.begin(), kRules.end(),
                                    [&](const auto& known) { return known.first == name; });
    if (found == kRules.end()) return false;
    place.rule = found->second;
    return true;
  }

  std::string_view own(std::string text) { return out_.texts.emplace_back(std::move(text)); }

  void end_section() {
    if (!section_) return;
    section_->places = out_.places.emplace_back(std::move(places_));
    sections_.push_back(*section_);
    places_.clear();
    section_.reset();
  }

  Status end_kind() {
    end_section();
    if (!layout_) return {};
    if (sections_.empty()) return wrong(fmt::format("the kind {} has no section", layout_->name));
    layout_->sections = out_.sections.emplace_back(std::move(sections_));
    out_.layouts.push_back(*layout_);
    sections_.clear();
    layout_.reset();
    return {};
  }

  std::string_view text_;
  std::string_view line_;
  int number_ = 0;
  Dialect out_;
  std::optional<Layout> layout_;
  std::optional<SectionLayout> section_;
  std::vector<SectionLayout> sections_;
  std::vector<Place> places_;
};

}  // namespace

Result<Dialect> read_dialect(std::string_view text) { return DialectReader(text).read(); }

void Dialects::add(Dialect dialect) {
  const Dialect& kept = dialects_.emplace_back(std::move(dialect));
  for (const Layout& layout : kept.layouts) {
    layouts_.push_back(layout);
    layouts_.back().suite = &kept.suite;
    for (std::string_view rest = layout.modes; !rest.empty();) {
      const std::size_t bar = std::min(rest.find('|'), rest.size());
      const std::string_view mode = rest.substr(0, bar);
      if (std::find(modes_.begin(), modes_.end(), mode) == modes_.end()) modes_.push_back(mode);
      rest.remove_prefix(std::min(bar + 1, rest.size()));
    }
  }
}

// A dialect that cannot be read is left out; tests read every one of them.
const Dialects& Dialects::known() {
  static const Dialects all = [] {
    Dialects dialects;
    for (const std::string_view text : dialect_texts()) {
      if (Result<Dialect> dialect = read_dialect(text)) dialects.add(std::move(*dialect));
    }
    return dialects;
  }();
  return all;
}

Result<Dialects> Dialects::of_file(const std::string& path) {
  Dialects dialects;
  auto text = read_file(path);
  if (!text) return usage_error(text.error().message);
  dialects.text_ = std::make_unique<std::string>(std::move(*text));
  Result<Dialect> dialect = read_dialect(*dialects.text_);
  if (!dialect) return usage_error(fmt::format("{}: {}", path, dialect.error().message));
  dialects.add(std::move(*dialect));
  return dialects;
}

std::string hash_of(std::string_view text) {
  constexpr std::uint64_t kPrime = 1'099'511'628'211U;
  std::uint64_t hash = 14'695'981'039'346'656'037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  return fmt::format("{:016x}", hash);
}

std::string_view Dialects::suite_of_script(std::string_view hash) const {
  for (const Layout& layout : layouts_) {
    for (const KnownScript& script : layout.scripts) {
      if (script.hash == hash) return layout.suite->name;
    }
  }
  return {};
}

}  // namespace assay::chain::params
