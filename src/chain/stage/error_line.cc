#include "chain/stage/error_line.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>

#include "base/text.h"
#include "chain/stage/log_line.h"

namespace assay::chain::stage {
namespace {

using Words = std::initializer_list<std::string_view>;

bool has_any(std::string_view line, Words words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return has(line, word); });
}
bool starts_with_any(std::string_view line, Words words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return line.starts_with(word); });
}
bool is_letter(unsigned char c) { return std::isalpha(c) != 0; }

// Whether the test is true of the line without some of the prefixes that launchers write.
template <typename Test>
bool behind_prefixes(std::string_view line, const Test& test) {
  while (!(line = trimmed(line)).empty()) {
    if (test(line)) return true;
    const bool bracket = has("[(<", line.substr(0, 1));
    std::size_t end = line.find_first_of(bracket ? "])>" : " \t");
    if (end == line.npos) return false;
    const std::string_view prefix = line.substr(0, end + (bracket ? 1 : 0));
    line.remove_prefix(prefix.size());
    const bool is_prefix = bracket || prefix.ends_with(':') || prefix.ends_with('|') ||
                           std::ranges::none_of(prefix, is_letter) ||
                           trimmed(line).starts_with('|');
    if (!is_prefix || has_any(lowered(prefix), {"warn", "info", "debug"})) return false;
    line.remove_prefix(std::min(line.find_first_not_of(":| \t"), line.size()));
  }
  return false;
}

// `ValueError: …`, `torch.OutOfMemoryError: …`, `KeyError`; not a metric (`AbsoluteError: 0.5`).
bool is_exception(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 ||
                               text[end] == '_' || text[end] == '.')) {
    ++end;
  }
  const std::string_view name = text.substr(0, end);
  text.remove_prefix(end);
  const bool named =
      name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("KeyboardInterrupt");
  return named && (text.empty() || (text.front() == ':' && !number_at(trimmed(text.substr(1)))));
}

// `Killed`, `Aborted (core dumped)`, `run.sh: line 3: 1234 Killed                  python t.py`.
bool is_death(std::string_view text) {
  for (const std::string_view death :
       {"Killed", "Aborted", "Segmentation fault", "Bus error", "Floating point exception",
        "Illegal instruction", "Trace/breakpoint trap"}) {
    if (!text.starts_with(death)) continue;
    text.remove_prefix(death.size());
    return text.empty() || text.starts_with("  ") || text.starts_with(" (core dumped)");
  }
  return false;
}

bool is_abort(std::string_view text) {
  return starts_with_any(text, {"terminate called", "what():", "malloc(): ", "malloc_consolidate()",
                                "free(): ", "realloc(): ", "munmap_chunk(): ", "double free",
                                "corrupted ", "Fatal Python error", "pure virtual method"}) ||
         (text.starts_with("*** ") && has(text, " detected ***"));
}

}  // namespace

bool starts_traceback(std::string_view line) {
  return has(line, "Traceback (most recent call last)") &&
         behind_prefixes(line, [](std::string_view text) {
           return starts_with_any(text, {"Traceback", "Exception Group Traceback"});
         });
}

bool tells_failure(std::string_view line) {
  const auto fails = [](std::string_view text) {
    return is_exception(text) || is_death(text) || is_abort(text);
  };
  const std::size_t shell = line.find(": line ");
  if (behind_prefixes(line, fails) ||
      (shell != line.npos && behind_prefixes(line.substr(shell + 7), is_death)) ||
      line.ends_with(": command not found") || has(line, ": can't open file '")) {
    return true;
  }
  const std::string lower = lowered(line);
  if (has(lower, "warn") && !has(line, "NCCL WARN")) return false;
  return has_any(lower, {"cuda error:", "cuda error ", "cuda error(", "cuda failure", "nccl error",
                         "cuda out of memory", "hip error", "cudnn_status_", "cublas_status_",
                         "out of memory error", "illegal memory access", "oom-kill",
                         "exited on signal", "non-zero exit"}) ||
         (has(lower, "return code = ") && !has(lower, "return code = 0"));
}

bool has_error_level(std::string_view line) {
  for (const std::string_view level : {"ERROR", "CRITICAL", "FATAL"}) {
    const std::size_t at = line.find(level);
    if (at == line.npos || (at > 0 && is_letter(static_cast<unsigned char>(line[at - 1]))))
      continue;
    std::string_view behind = line.substr(at + level.size());
    const bool ends = has("]:- \t", behind.substr(0, 1));
    behind.remove_prefix(std::min(behind.find_first_not_of("]:- \t"), behind.size()));
    if (ends && !number_at(behind)) return true;  // no error rate
  }
  return false;
}

bool looks_like_error(std::string_view line) {
  if (has(line, ": [Errno ") || line.ends_with(": command not found")) return true;
  if (!has_any(line, {"rror", "ERROR", "FATAL", "fault"})) return false;
  return line.ends_with("Error") ||
         has_any(line, {"Error:", "Error ", "ERROR", "error:", "FATAL", "Segmentation fault"});
}

}  // namespace assay::chain::stage
