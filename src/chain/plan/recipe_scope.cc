#include "chain/plan/recipe_scope.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "chain/plan/launcher.h"

namespace assay::chain::plan {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::string& word : split_at(text, ' ')) {
    if (!word.empty()) words.push_back(std::move(word));
  }
  return words;
}

// 0 for what is no number.
std::size_t number_of(std::string_view text) {
  std::size_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// M machines with P cards together: N1C8. Nothing where the text is not of this form.
struct Cards {
  std::size_t machines = 1;
  std::size_t cards = 0;
};

Cards cards_of(std::string_view text) {
  const std::size_t at = text.find('C');
  if (!text.starts_with('N') || at == std::string_view::npos) return {};
  return {std::max<std::size_t>(1, number_of(text.substr(1, at - 1))),
          number_of(text.substr(at + 1))};
}

std::string card_ids(std::string_view text) {
  const Cards cards = cards_of(text);
  std::string ids;
  for (std::size_t i = 0; i * cards.machines < cards.cards; ++i) {
    ids += fmt::format("{}{}", i == 0 ? "" : ",", i);
  }
  return ids;
}

std::string field_of(std::string_view list, std::string_view key) {
  for (const std::string& item : split_at(list, ';')) {
    const std::size_t colon = item.find(':');
    if (colon != std::string::npos && item.substr(0, colon) == key) return item.substr(colon + 1);
  }
  return {};
}

std::string swapped(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

std::string digits_of(std::string_view text) {
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits),
               [](char c) { return c >= '0' && c <= '9'; });
  return digits;
}

std::string part_of(std::string_view text, std::string_view sign, std::size_t index) {
  const std::vector<std::string> parts = split_at(text, sign.front());
  return index < parts.size() ? parts[index] : std::string();
}

// As dirname does: "." for a name without a folder.
std::string folder_of(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  path = path.substr(0, slash);
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path.empty() ? "/" : std::string(path);
}

std::string last_part(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return std::string(path.substr(path.rfind('/') + 1));
}

}  // namespace

RecipeScope::RecipeScope(PlanBuilder& builder) : builder_(builder) {
  enter();
  const PlanOptions& options = builder.options();
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  set("MODE", builder.mode());
  set("FILE", options.params_path);
  set("THIRD", options.third);
  set("VISIBLE", options.third.empty() ? "0" : options.third);
  set("given_device", options.third.empty() ? "cpu" : "gpu " + options.third);
  set("DEVICE", options.device == "gpu" ? "" : options.device);  // the files are written for GPUs
  utsname machine{};
  set("MACHINE", ::uname(&machine) == 0 ? machine.machine : "");
  set("DYNAMIC", options.dynamic);
  set("FIX", options.fix ? "yes" : "no");
  set("FALLBACK", options.fallback_checkpoint ? "yes" : "no");
  set("HERE", here.string());
  set("REPOSITORY", here.filename().string());
  set("PYTHON_GIVEN", options.python.empty() ? "no" : "yes");
  if (!options.python.empty()) set("python", options.python);
}

void RecipeScope::let(std::string_view name, std::string value) {
  frames_.back().insert_or_assign(std::string(name), std::move(value));
}

void RecipeScope::set(std::string_view name, std::string value) {
  frames_.front().insert_or_assign(std::string(name), std::move(value));
}

const std::string* RecipeScope::variable(std::string_view name) const {
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
    const auto found = frame->find(name);
    if (found != frame->end()) return &found->second;
  }
  return nullptr;
}

bool RecipeScope::is_role(std::string_view name) const {
  for (const params::SectionLayout& section : builder_.params().layout().sections) {
    for (const params::Place& place : section.places) {
      if (place.role == name) return true;
    }
  }
  return false;
}

std::string RecipeScope::role_value(std::string_view role) {
  const params::Params& params = builder_.params();
  std::string value(params.value(role));
  const std::size_t colon = value.find(':');
  if (!params.layout().cut || builder_.options().fix || colon == std::string::npos) return value;
  cut_.emplace(role, value);
  return value.substr(0, colon);
}

Result<std::string> RecipeScope::value(std::string_view name) {
  if (const std::string* found = variable(name)) return *found;
  if (is_role(name)) return role_value(name);
  constexpr std::string_view kKey = ".key";
  if (name.ends_with(kKey) && is_role(name.substr(0, name.size() - kKey.size()))) {
    return std::string(builder_.params().key(name.substr(0, name.size() - kKey.size())));
  }
  return fail(fmt::format("`{}` is no variable and no role", name));
}

Result<std::string> RecipeScope::text(std::string_view shape) {
  std::string out;
  while (!shape.empty()) {
    const std::size_t open = shape.find('{');
    out += shape.substr(0, open);
    if (open == std::string_view::npos) break;
    std::size_t end = open + 1;
    for (int depth = 1; end < shape.size(); ++end) {
      depth += shape[end] == '{' ? 1 : shape[end] == '}' ? -1 : 0;
      if (depth == 0) break;
    }
    if (end == shape.size()) return fail("a `{` does not close");
    ASSAY_TRY(const std::string filled, hole(shape.substr(open + 1, end - open - 1)));
    out += filled;
    shape.remove_prefix(end + 1);
  }
  return out;
}

Result<std::string> RecipeScope::hole(std::string_view inside) {
  if (inside.size() > 1 && inside.front() == '"' && inside.back() == '"') {
    return std::string(inside.substr(1, inside.size() - 2));
  }
  const std::size_t blank = inside.find(' ');
  if (blank == std::string_view::npos) return value(inside);
  return function(inside.substr(0, blank), trimmed(inside.substr(blank)));
}

Result<std::string> RecipeScope::arg(std::string_view rest) {
  const std::size_t equals = rest.find(" = ");
  const std::string_view name = rest.substr(0, equals);
  ASSAY_TRY(const std::string key, value(std::string(name) + ".key"));
  ASSAY_TRY(const std::string given,
            equals == std::string_view::npos ? value(name) : text(rest.substr(equals + 3)));
  return argument(key, given);
}

Result<std::string> RecipeScope::function(std::string_view name, std::string_view rest) {
  if (name == "arg") return arg(rest);
  const std::vector<std::string> words = words_of(rest);
  const auto word = [&](std::size_t i) { return i < words.size() ? words[i] : std::string(); };
  if (name == "environment") {
    const char* ours = std::getenv(word(0).c_str());
    return ours != nullptr ? Result<std::string>(ours) : text(word(1));
  }
  if (name == "raw") return std::string(builder_.params().text(word(0)));
  ASSAY_TRY(std::string given, value(word(0)));
  if (name == "mode") return std::string(params::value_for_mode(given, builder_.mode()));
  if (name == "by_mode") return by_mode(word(0), given);
  if (name == "dynamic") return dynamic_command(given);
  if (name == "launch") return launch(word(0), word(1));
  if (name == "quote") return shell_word(given);
  if (name == "bars") return fmt::format("{}", fmt::join(words_of(given), "|"));
  if (name == "field") return field_of(given, word(1));
  if (name == "swap") return swapped(std::move(given), word(1), word(2));
  if (name == "cut") return given.substr(0, given.find(word(1)));
  if (name == "rest") return given.substr(given.find(word(1)) + 1);
  if (name == "plus") return fmt::format("{}", number_of(given) + number_of(word(1)));
  if (name == "dirname") return folder_of(given);
  if (name == "basename") return last_part(given);
  if (name == "digits") return digits_of(given);
  if (name == "cards") return fmt::format("{}", cards_of(given).cards);
  if (name == "ids") return card_ids(given);
  if (name == "word") {
    const std::vector<std::string> of_it = words_of(given);
    return number_of(word(1)) < of_it.size() ? of_it[number_of(word(1))] : std::string();
  }
  if (name == "part") return part_of(given, word(1), number_of(word(2)));
  ASSAY_TRY(const std::string second, value(word(1)));
  if (name == "nth") return part_of(given, "|", number_of(second));
  if (name == "times") return fmt::format("{}", number_of(given) * number_of(second));
  return fail(fmt::format("`{}` is no function", name));
}

std::string RecipeScope::by_mode(const std::string& role, const std::string& value) {
  const std::string_view found = params::value_for_mode(value, builder_.mode());
  if (found.empty() && !params::is_absent(value) && builder_.mode() != "benchmark_train") {
    builder_.warn(fmt::format("line {}: `{}` has no value for {}: the argument is left out",
                              builder_.params().line(role), builder_.params().key(role),
                              builder_.mode()));
  }
  return std::string(found);
}

std::string RecipeScope::dynamic_command(const std::string& weights) {
  std::string text = builder_.options().dynamic;
  const auto fill = [&](std::string_view hole, std::string_view value) {
    for (std::size_t at = 0; (at = text.find(hole, at)) != std::string::npos; at += value.size()) {
      text.replace(at, hole.size(), value);
    }
  };
  fill("{weights}", weights);
  fill("{images}", builder_.params().value("infer_images"));
  return text;
}

Result<std::string> RecipeScope::launch(const std::string& name, const std::string& flag) {
  ASSAY_TRY(const std::string text, value(name + ".entry"));
  ASSAY_TRY(const params::GpuEntry entry, params::parse_gpu_entry(text));
  return launcher(entry, flag, builder_.options());
}

namespace {

// The parts of a condition between two words, outside of braces.
std::vector<std::string_view> parts_between(std::string_view text, std::string_view word) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    if (depth != 0 || text.substr(i, word.size()) != word) continue;
    parts.push_back(text.substr(start, i - start));
    start = i + word.size();
  }
  parts.push_back(text.substr(start));
  return parts;
}

}  // namespace

Result<bool> RecipeScope::holds(std::string_view condition) {
  for (const std::string_view either : parts_between(condition, " or ")) {
    bool all = true;
    for (const std::string_view each : parts_between(either, " and ")) {
      ASSAY_TRY(const bool one, term(trimmed(each)));
      all = all && one;
    }
    if (all) return true;
  }
  return false;
}

Result<bool> RecipeScope::term(std::string_view condition) {
  for (const std::string_view word : {"absent ", "given "}) {
    if (!condition.starts_with(word)) continue;
    ASSAY_TRY(const std::string given, value(condition.substr(word.size())));
    return params::is_absent(given) == (word == "absent ");
  }
  constexpr std::array<std::string_view, 3> kSigns{" == ", " != ", " has "};
  for (const std::string_view sign : kSigns) {
    const std::vector<std::string_view> sides = parts_between(condition, sign);
    if (sides.size() != 2) continue;
    ASSAY_TRY(const std::string left, text(sides[0]));
    ASSAY_TRY(const std::string right, text(sides[1]));
    if (sign == " has ") return left.find(right) != std::string::npos;
    return (left == right) == (sign == " == ");
  }
  return fail(fmt::format("`{}` is no condition", condition));
}

}  // namespace assay::chain::plan
