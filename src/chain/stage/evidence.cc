#include "chain/stage/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "base/text.h"
#include "chain/stage/log_line.h"

namespace assay::chain::stage {
namespace {

constexpr std::size_t kLongestLine = 4096;
constexpr std::size_t kLongestError = 300;

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

struct Count {
  double value = 0;
  std::optional<double> total;
};

// The count at the front of a text: `3/20]`, `3, …`. Nothing for a fraction.
std::optional<Count> count_at(std::string_view text) {
  const std::size_t length = digits_at_front(text);
  if (length == 0) return std::nullopt;
  Count count{*number_of(text.substr(0, length)), std::nullopt};
  text.remove_prefix(length);
  if (text.starts_with('.')) return std::nullopt;
  const std::size_t slash = text.find_first_not_of(' ');
  if (slash == std::string_view::npos || text[slash] != '/') return count;
  const std::size_t total = text.find_first_not_of(' ', slash + 1);
  if (total != std::string_view::npos) count.total = number_of(text.substr(total));
  return count;
}

// True for `Traceback …` at the front of a line, also indented by a launcher or behind the rank
// (`[rank0]: `).
bool starts_traceback(std::string_view line) {
  const std::size_t at = line.find("Traceback (most recent call last)");
  if (at == std::string_view::npos) return false;
  std::string_view before = line.substr(0, at);
  while (!before.empty()) {
    const std::size_t end = before.front() == '[' ? before.find(']') : 0;
    if (end == std::string_view::npos ||
        (end == 0 && before.front() != ' ' && before.front() != ':' && before.front() != '\t')) {
      return false;
    }
    before.remove_prefix(end + 1);
  }
  return true;
}

void note(Counter& counter, const std::optional<Count>& count) {
  if (!count) return;
  if (!counter.seen) counter.first = counter.last = count->value;
  counter.seen = true;
  counter.stride = std::max(counter.stride, count->value - counter.last);
  counter.last = count->value;
  if (count->total) counter.total = count->total;
}

bool has(std::string_view line, std::string_view text) {
  return line.find(text) != std::string_view::npos;
}

bool looks_like_error(std::string_view line) {
  if (has(line, ": [Errno ") || line.ends_with(": command not found")) return true;
  if (!has(line, "rror") && !has(line, "ERROR") && !has(line, "FATAL") && !has(line, "fault")) {
    return false;
  }
  return line.ends_with("Error") || has(line, "Error:") || has(line, "Error ") ||
         has(line, "ERROR") || has(line, "error:") || has(line, "FATAL") ||
         has(line, "Segmentation fault");
}

// A line of an evaluation, whose counts are its own.
bool counts_an_evaluation(std::string_view line) {
  return has(line, "val") && (has(line, "eval") || has(line, "Eval"));
}

}  // namespace

void Evidence::take(std::string_view line) {
  line = line.substr(0, kLongestLine);
  if (starts_traceback(line) && !ignored_) traceback_ = true;
  if (bad_number_.empty()) {
    if (const std::string_view bad = bad_number_in(line); !bad.empty()) {
      bad_number_ = fmt::format("{} in `{}`", bad, trimmed(line.substr(0, kLongestError)));
    }
  }
  stopped_early_ = stopped_early_ || has(lowered(line), "early stop");
  if (has(line, "\"run_stop\"") && has(line, "\"aborted\"")) aborted_ = true;
  ignored_ = line.starts_with("Exception ignored in");  // at the interpreter's own end: harmless
  if (has(line, "No space left on device")) disk_full_ = true;
  if (looks_like_error(line)) last_error_ = std::string(line.substr(0, kLongestError));
  if (counts_an_evaluation(line)) return;
  for (auto pair = take_pair(line); pair; pair = take_pair(line)) {
    const std::string name = lowered(pair->name.substr(0, pair->name.find('/')));
    const bool steps = name == "iter" || name == "iteration" || name == "step" ||
                       name == "global_step" || name == "iters" || name == "steps";
    if (name == "epoch") note(epoch_, count_at(pair->value));
    if (steps) note(step_, count_at(pair->value));
  }
}

std::string Evidence::unfinished(const std::vector<std::string>& argv) const {
  if (aborted_) return "its log says run_stop with the status aborted";
  if (stopped_early_) return {};
  const std::optional<double> asked = epoch_.total ? epoch_.total : epochs_asked(argv);
  // Counts start at 0 or at 1. A first count above 1 is one of a training that was resumed.
  const double base = epoch_.first == 1 ? 1 : 0;
  // A log may count only some of the epochs, too.
  if (epoch_.seen && asked && epoch_.last + std::max(1.0, epoch_.stride) - base < *asked) {
    return fmt::format("its log ends at epoch {:g} of {:g}", epoch_.last, *asked);
  }
  // A log counts only some of the steps. Where it counts epochs, a single step may stand for each.
  if (asked || !step_.total || step_.stride == 0) return {};
  if (step_.last + step_.stride < *step_.total) {
    return fmt::format("its log ends at step {:g} of {:g}", step_.last, *step_.total);
  }
  return {};
}

std::optional<double> epochs_asked(const std::vector<std::string>& argv) {
  constexpr std::array<std::string_view, 7> kNames{
      "epochs", "epoch", "epoch_num", "num_epochs", "max_epochs", "max_epoch", "num_train_epochs"};
  for (std::size_t i = argv.size(); i-- > 1;) {
    const std::string_view word = argv[i];
    const std::size_t equals = word.find('=');
    std::string name = lowered(word.substr(0, equals));
    name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
    std::ranges::replace(name, '-', '_');
    if (const std::size_t dot = name.rfind('.'); dot != std::string::npos) name.erase(0, dot + 1);
    if (std::ranges::find(kNames, name) == kNames.end()) continue;
    if (equals != std::string_view::npos) return number_of(word.substr(equals + 1));
    if (word.starts_with('-') && i + 1 < argv.size()) return number_of(argv[i + 1]);
  }
  return std::nullopt;
}

}  // namespace assay::chain::stage
