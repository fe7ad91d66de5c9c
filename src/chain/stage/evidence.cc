#include "chain/stage/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "base/text.h"

namespace assay::chain::stage {
namespace {

constexpr std::size_t kLongestLine = 4096;
constexpr std::size_t kLongestError = 300;

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

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

// The count behind a word: `epoch: [3/20]`, `Epoch 3, …`, `iter=10/100`.
std::optional<Count> count_behind(std::string_view line, std::string_view word) {
  constexpr std::string_view kBetween = " :=[(\t";
  for (std::size_t at = 0; (at = line.find(word, at)) != std::string_view::npos; ++at) {
    if (at > 0 && is_letter(line[at - 1])) continue;
    std::string_view rest = line.substr(at + word.size());
    const std::size_t digits = rest.find_first_not_of(kBetween);
    if (digits == 0 || digits == std::string_view::npos) continue;
    rest.remove_prefix(digits);
    const std::size_t length = digits_at_front(rest);
    if (length == 0) continue;
    Count count{*number_of(rest.substr(0, length)), std::nullopt};
    rest.remove_prefix(length);
    const std::size_t slash = rest.find_first_not_of(' ');
    if (slash != std::string_view::npos && rest[slash] == '/') {
      const std::size_t total = rest.find_first_not_of(' ', slash + 1);
      if (total != std::string_view::npos) count.total = number_of(rest.substr(total));
    } else if (length < digits_at_front(rest) || rest.starts_with('.')) {
      continue;  // a fraction counts nothing
    }
    return count;
  }
  return std::nullopt;
}

void note(Counter& counter, const std::optional<Count>& count) {
  if (!count) return;
  if (!counter.seen) counter.first = counter.last = counter.before = count->value;
  counter.seen = true;
  if (count->value != counter.last) counter.before = counter.last;
  counter.last = count->value;
  if (count->total) counter.total = count->total;
}

bool looks_like_error(std::string_view line) {
  constexpr std::array<std::string_view, 6> kSigns{"Error:", "Error ", "ERROR",
                                                   "error:", "FATAL",  "Segmentation fault"};
  return line.ends_with("Error") || std::ranges::any_of(kSigns, [&](std::string_view sign) {
           return line.find(sign) != std::string_view::npos;
         });
}

}  // namespace

void Evidence::take(std::string_view line) {
  line = line.substr(0, kLongestLine);
  if (line.starts_with("Traceback (most recent call last)")) traceback_ = true;
  if (line.find("No space left on device") != std::string_view::npos) disk_full_ = true;
  if (looks_like_error(line)) last_error_ = std::string(line.substr(0, kLongestError));
  const std::string small = lower(line);
  if (small.find("eval") != std::string::npos || small.find("test:") != std::string::npos) return;
  note(epoch_, count_behind(small, "epoch"));
  const auto steps = count_behind(small, "iter");
  note(step_, steps ? steps : count_behind(small, "step"));
}

std::string Evidence::unfinished(const std::vector<std::string>& argv) const {
  const std::optional<double> asked = epoch_.total ? epoch_.total : epochs_asked(argv);
  // Counts start at 0 or at 1. A first count above 1 is one of a training that was resumed.
  const double base = epoch_.first == 1 ? 1 : 0;
  if (epoch_.seen && asked && epoch_.last + 1 - base < *asked) {
    return fmt::format("its log ends at epoch {:g} of {:g}", epoch_.last, *asked);
  }
  const double stride = std::max(1.0, step_.last - step_.before);
  const bool is_last_epoch = !epoch_.seen || !asked || epoch_.last + 1 - base >= *asked;
  if (step_.seen && step_.total && is_last_epoch && step_.last + stride < *step_.total) {
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
    std::string name = lower(word.substr(0, equals));
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
