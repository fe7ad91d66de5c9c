#include "engine/changed_apis.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/fd.h"
#include "base/text.h"

namespace assay {
namespace {

// Words that sources add to the name of their API.
constexpr std::array<std::string_view, 12> kEndings{"_kernel",  "_grad",  "_op",     "_infer_meta",
                                                    "_functor", "_impl",  "_double", "_triple",
                                                    "_raw",     "_inner", "_func",   "_backward"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_capital(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

// Snake case, LogSoftmaxKernel to log_softmax_kernel; other words stay.
std::string snake_case(std::string_view word) {
  std::string snake;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const bool begins = is_capital(word[i]) && i > 0 && word[i - 1] != '_' &&
                        (!is_capital(word[i - 1]) ||
                         (i + 1 < word.size() && !is_capital(word[i + 1]) && word[i + 1] != '_'));
    if (begins) snake += '_';
    snake += static_cast<char>(std::tolower(static_cast<unsigned char>(word[i])));
  }
  return snake;
}

std::string_view without_underscores(std::string_view name) {
  while (name.starts_with('_')) name.remove_prefix(1);
  while (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

// Whether the text has a line that only unified diffs have. The output of `git diff --stat`, a
// coloured diff and an empty text have none.
bool is_diff(std::string_view text) {
  for (const std::string& line : split_at(text, '\n')) {
    if (line.starts_with("diff ") || line.starts_with("--- ") || line.starts_with("@@ "))
      return true;
  }
  return false;
}

Result<ChangedApis> checked(std::string_view text, const std::string& file) {
  if (is_diff(text)) return ChangedApis::parse(text);
  return usage_error(
      fmt::format("--apis-from={}: {}; did the command that writes it fail?", file,
                  text.empty() ? "the input is empty" : "the input is not a unified diff"));
}

}  // namespace

Result<ChangedApis> ChangedApis::read(const std::string& file) {
  if (file != "-") {
    auto text = read_file(file);
    if (!text) return usage_error("--apis-from: " + text.error().message);
    return checked(*text, file);
  }
  std::string text;
  std::array<std::byte, 1 << 16> part;
  while (true) {
    const ssize_t size = ::read(STDIN_FILENO, part.data(), part.size());
    if (size < 0) return errno_error("--apis-from=-");
    if (size == 0) return checked(text, file);
    text.append(reinterpret_cast<const char*>(part.data()), static_cast<std::size_t>(size));
  }
}

ChangedApis ChangedApis::parse(std::string_view diff) {
  ChangedApis changed;
  while (!diff.empty()) {
    const std::size_t end = std::min(diff.find('\n'), diff.size());
    const std::string_view line = diff.substr(0, end);
    diff.remove_prefix(std::min(end + 1, diff.size()));
    if (line.starts_with("@@")) {
      const std::size_t behind = line.find("@@", 2);
      if (behind != std::string_view::npos) changed.take_words(line.substr(behind + 2));
    } else if (line.starts_with('+') || line.starts_with('-') || line.starts_with("rename ")) {
      changed.take_words(line);  // also names of files: +++ b/…
    }
  }
  return changed;
}

void ChangedApis::take_words(std::string_view line) {
  for (std::size_t begin = 0; begin < line.size(); ++begin) {
    std::size_t end = begin;
    while (end < line.size() && is_word(line[end])) ++end;
    if (end == begin) continue;
    std::string name(without_underscores(snake_case(line.substr(begin, end - begin))));
    begin = end;
    names_.insert(name);
    for (bool shorter = true; shorter;) {
      shorter = false;
      for (const std::string_view ending : kEndings) {
        if (!name.ends_with(ending)) continue;
        name.resize(name.size() - ending.size());
        names_.insert(name);
        shorter = true;
      }
    }
  }
}

bool ChangedApis::have(std::string_view api) const {
  return names_.contains(snake_case(without_underscores(api.substr(api.rfind('.') + 1))));
}

}  // namespace assay
