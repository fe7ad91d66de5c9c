#include "chain/stage/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/text.h"
#include "chain/stage/log_line.h"
#include "chain/stage/train_log.h"

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

// `Traceback (most recent call last)`.
bool starts_traceback(std::string_view line) {
  return has(line, "Traceback (most recent call last)") &&
         behind_prefixes(line, [](std::string_view text) {
           return starts_with_any(text, {"Traceback", "Exception Group Traceback"});
         });
}

// An exception (`torch.OutOfMemoryError: …`), a death by signal (`Killed`), an abort of glibc or
// C++, an error of CUDA or NCCL, or a launcher's word on a child that failed.
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

// A line of the level ERROR, CRITICAL or FATAL.
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

// A line worth showing beside a stage that failed; it need not be an error.
bool looks_like_error(std::string_view line) {
  if (has(line, ": [Errno ") || line.ends_with(": command not found")) return true;
  if (!has_any(line, {"rror", "ERROR", "FATAL", "fault"})) return false;
  return line.ends_with("Error") ||
         has_any(line, {"Error:", "Error ", "ERROR", "error:", "FATAL", "Segmentation fault"});
}

constexpr std::size_t kLongestLine = 4096;
constexpr std::size_t kLongestError = 300;
constexpr int kGoesOn = 2;  // steps after an error that a training has survived

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

struct Count {
  double value = 0;
  std::optional<double> total;
  std::string_view behind;  // the text after it, without blanks in front
};

std::string_view without_blanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

// The count at the front of a text: `3/20]`, `3 of 20`, `3, …`. Of a fraction (`0.25, …`) nothing
// but its value.
std::optional<Count> count_at(std::string_view text) {
  std::size_t length = digits_at_front(text);
  if (length == 0) return std::nullopt;
  if (text.substr(length).starts_with('.')) length += 1 + digits_at_front(text.substr(length + 1));
  Count count{*number_of(text.substr(0, length)), {}, without_blanks(text.substr(length))};
  for (const std::string_view between : {"/", "of ", "out of "}) {
    if (!count.behind.starts_with(between)) continue;
    const std::string_view total = without_blanks(count.behind.substr(between.size()));
    count.total = number_of(total);
    count.behind = without_blanks(total.substr(digits_at_front(total)));
    break;
  }
  return count;
}

// A count without a name, as progress bars have it: `[30/100]`, `[640/60000 (1%)]`, `30/100
// [00:01`.
std::optional<Count> bar_in(std::string_view line) {
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (digits_at_front(line.substr(at)) == 0) continue;
    const auto count = count_at(line.substr(at));
    const std::size_t last = at > 0 ? line.find_last_not_of(' ', at - 1) : line.npos;
    const char before = last != line.npos && line[last] == '[' ? '[' : at > 0 ? line[at - 1] : ' ';
    const char behind = count->behind.empty() ? ' ' : count->behind.front();
    const bool in_brackets = before == '[' && (behind == ']' || behind == '(');
    if (count->total && (in_brackets || (behind == '[' && (before == ' ' || before == '|'))))
      return count;
    at += digits_at_front(line.substr(at));
  }
  return std::nullopt;
}

// Returns whether the counter has another value now.
bool note(Counter& counter, const std::optional<Count>& count) {
  if (!count) return false;
  const bool advances = !counter.seen || count->value != counter.last;
  if (!counter.seen) counter.least = counter.last = count->value;
  // A bar begins again at its first count. What falls otherwise is none.
  if (count->value < counter.last && count->value > counter.least) counter.falls = true;
  counter.least = std::min(counter.least, count->value);
  counter.fraction = counter.fraction || count->value != std::floor(count->value);
  counter.seen = true;
  counter.stride = std::max(counter.stride, count->value - counter.last);
  counter.last = count->value;
  if (count->total) counter.total = count->total;
  return advances;
}

// A message that a training ended early, but no count of its patience (`counter: 3 out of 10`).
bool stops_early(std::string_view line) {
  const std::string lower = lowered(line);
  return has(lower, "stop") && !has(lower, "counter") && !has(lower, "patience") &&
         (has(lower, "early") || has(lower, "signaling trainer"));
}

// A line of an evaluation, whose counts are its own.
bool counts_an_evaluation(std::string_view line) {
  return has(line, "val") && (has(line, "eval") || has(line, "Eval"));
}

}  // namespace

void Evidence::take_failure(std::string_view line) {
  const bool fails = tells_failure(line);
  if (fails || looks_like_error(line)) last_error_ = std::string(line.substr(0, kLongestError));
  if (has(line, "No space left on device")) disk_full_ = true;
  // What the interpreter ignores at its own end is harmless: down to the line of the exception.
  if (has(line, "Exception ignored ")) ignores_ = true;
  if (starts_traceback(line) && !ignores_) traceback_ = true;
  if (fails && !ignores_) {
    fails_ = true;
    lines_since_ = advances_since_ = 0;
  } else if (!has(line, "frame #")) {
    ++lines_since_;
  }
  if (fails) ignores_ = false;
  ends_in_error_level_ = has_error_level(line);
}

void Evidence::take(std::string_view line) {
  line = line.substr(0, kLongestLine);
  take_failure(line);
  if (bad_number_.empty()) {
    if (const std::string_view bad = bad_number_in(line); !bad.empty()) {
      bad_number_ = fmt::format("{} in `{}`", bad, trimmed(line.substr(0, kLongestError)));
    }
  }
  if (has(line, "\"run_start\"") && has(line, ":::MLLOG")) running_ = true;
  if (has(line, "\"run_stop\"")) {
    running_ = false;
    aborted_ = aborted_ || has(line, "\"aborted\"");
  }
  const bool stops = stops_early(line);
  take_counts(line);
  stopped_early_ = stopped_early_ || stops;
}

void Evidence::take_counts(std::string_view whole) {
  if (counts_an_evaluation(whole)) return;
  const std::string text = columns_.as_pairs(whole);
  std::string_view line = text;
  const bool bar = has(lowered(line), "loss") && note(bar_, bar_in(line));
  bool advances = false;
  bool has_loss = false;
  struct {
    std::optional<double> total;  // under a name of its own
    bool counted = false;
  } epoch, step;
  for (auto pair = take_pair(line); pair; pair = take_pair(line, pair->name)) {
    std::string name = lowered(pair->name.substr(0, pair->name.find('/')));
    has_loss = has_loss || is_loss(name);
    bool total = false;
    for (const std::string_view prefix : {"total_", "max_", "current_", "global_"}) {
      if (!name.starts_with(prefix)) continue;
      name.erase(0, prefix.size());
      total = prefix == "total_" || prefix == "max_";
    }
    const bool epochs = name == "epoch" || (total && name == "epochs");
    const bool steps = name == "iter" || name == "iteration" || name == "step" || name == "iters" ||
                       name == "steps";
    const auto count = count_at(pair->value);
    if ((!epochs && !steps) || !count || is_evaluation(pair->kind) || pair->before == "best")
      continue;
    // `epoch: 0.25` of the Hugging Face Trainer, but not `epoch: 3.5 s`.
    const bool fraction = count->value != std::floor(count->value);
    if (fraction && (steps || (!count->behind.empty() && std::isalpha(static_cast<unsigned char>(
                                                             count->behind.front())) != 0)))
      continue;
    auto& here = steps ? step : epoch;
    if (total) {
      here.total = count->value;
    } else {
      here.counted = true;
      advances = note(steps ? step_ : epoch_, count) || advances;
    }
  }
  if (step.counted && step.total) step_.total = step.total;
  if (epoch.counted && epoch.total) epoch_.total = epoch.total;
  if (!counted()) advances = bar || (has_loss && !bar_.seen);
  if (advances) stopped_early_ = false;  // it was a setting
  if (advances || bar) ++advances_since_;
}

bool Evidence::ends_in_error(bool trains) const {
  constexpr int kLastLines = 5;  // of a stage that counts nothing
  const bool last = trains ? advances_since_ < kGoesOn : lines_since_ <= kLastLines;
  return (fails_ && last) || ends_in_error_level_;
}

std::string Evidence::unfinished(const std::vector<std::string>& argv) const {
  if (aborted_) return "its log says run_stop with the status aborted";
  if (running_) return "its log says run_start and never run_stop";
  if (stopped_early_) return {};
  const std::optional<double> asked = epoch_.total ? epoch_.total : epochs_asked(argv);
  // Counts start at 0 or at 1. A first count above 1 is one of a training that was resumed.
  const double base = epoch_.least == 1 ? 1 : 0;
  // A log may count only some of the epochs, too. Fractions are rounded.
  const double stride =
      epoch_.fraction ? 1.05 * epoch_.stride : std::max(1.0, epoch_.stride) - base;
  if (epoch_.seen && asked && epoch_.last + stride < *asked) {
    return fmt::format("its log ends at epoch {:g} of {:g}", epoch_.last, *asked);
  }
  // A log counts only some of the steps. Where it counts epochs, a single step may stand for each.
  const Counter& step = step_.total ? step_ : bar_;
  if (asked || !step.total || step.stride == 0 || (bar_.falls && !step_.total)) return {};
  if (step.last + step.stride < *step.total) {
    return fmt::format("its log ends at step {:g} of {:g}", step.last, *step.total);
  }
  return {};
}

namespace {

// The number that a command line gives one of these names.
std::optional<double> asked_for(const std::vector<std::string>& argv,
                                std::span<const std::string_view> names) {
  for (std::size_t i = argv.size(); i-- > 1;) {
    const std::string_view word = argv[i];
    const std::size_t equals = word.find('=');
    std::string name = lowered(word.substr(0, equals));
    name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
    std::ranges::replace(name, '-', '_');
    if (const std::size_t dot = name.rfind('.'); dot != std::string::npos) name.erase(0, dot + 1);
    if (std::ranges::find(names, name) == names.end()) continue;
    if (equals != std::string_view::npos) return number_of(word.substr(equals + 1));
    if (word.starts_with('-') && i + 1 < argv.size()) return number_of(argv[i + 1]);
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> epochs_asked(const std::vector<std::string>& argv) {
  constexpr std::array<std::string_view, 7> kNames{
      "epochs", "epoch", "epoch_num", "num_epochs", "max_epochs", "max_epoch", "num_train_epochs"};
  constexpr std::array<std::string_view, 1> kSteps{"max_steps"};  // goes before epochs
  return asked_for(argv, kSteps).value_or(0) > 0 ? std::nullopt : asked_for(argv, kNames);
}

}  // namespace assay::chain::stage
