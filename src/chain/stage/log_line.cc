#include "chain/stage/log_line.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>

#include "base/text.h"

namespace assay::chain::stage {
namespace {

bool is_letter(char c) {
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'z';
}
bool is_name(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '@'; }

std::size_t skip(std::string_view text, std::size_t at, std::string_view characters) {
  return std::min(text.find_first_not_of(characters, at), text.size());
}

// The number without its separators of thousands: "1234.5" of "1,234.5 samples/s".
std::string without_commas(std::string_view text) {
  constexpr std::size_t kGroup = 3;
  std::string number(text.substr(0, digits_at_front(text)));
  while (text.remove_prefix(digits_at_front(text)), text.starts_with(',')) {
    const std::size_t digits = digits_at_front(text.substr(1));
    if (number.empty() || digits != kGroup) return number;
    text.remove_prefix(1);
    number += text.substr(0, digits);
  }
  return number += text.substr(0, std::min<std::size_t>(text.size(), 40));
}

// The length of `nan`, `-inf` or `Infinity` at the front of a text; 0 if it is none.
std::size_t bad_number_at(std::string_view text) {
  const std::size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  for (const std::string_view word : {"infinity", "nan", "inf"}) {
    const std::size_t end = sign + word.size();
    if (lowered(text.substr(sign, word.size())) != word) continue;
    if (end == text.size() || !is_name(text[end])) return end;
  }
  return 0;
}

}  // namespace

std::optional<Pair> take_pair(std::string_view& line, std::string_view before) {
  std::size_t at = 0;
  while (at < line.size() && !is_name(line[at])) ++at;
  if (at == line.size()) return std::nullopt;
  const std::size_t start = at;
  const auto joins = [&](std::size_t i) {  // train/loss
    return line[i] == '/' && i > start && i + 1 < line.size() && is_letter(line[i - 1]) &&
           is_letter(line[i + 1]);
  };
  while (at < line.size() && (is_name(line[at]) || joins(at))) ++at;
  Pair pair{line.substr(start, at - start), before, {}, {}, false};
  if (at + 1 < line.size() && line[at] == '(' && is_letter(line[at + 1])) {
    const std::size_t close = std::min(line.find(')', at), line.size());
    pair.kind = line.substr(at + 1, close - at - 1);
    at = close;
  }
  std::size_t value = skip(line, skip(line, at, "\"')"), " \t");
  pair.marked = value < line.size() && (line[value] == ':' || line[value] == '=');
  value = skip(line, value, pair.marked ? ":= \t\"'[(" : " \t\"'[(|");
  pair.value = line.substr(value);
  line.remove_prefix(at);
  return pair;
}

std::optional<double> number_at(std::string_view text) {
  for (const std::string_view around : {"tensor(", "Tensor("}) {
    if (text.starts_with(around)) text.remove_prefix(around.size());
  }
  if (const std::size_t bad = bad_number_at(text); bad > 0) {
    const bool nan = (text[bad - 1] | 0x20) == 'n';
    return nan ? std::nan("") : text.starts_with('-') ? -HUGE_VAL : HUGE_VAL;
  }
  const std::string plain = without_commas(text);
  double value = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (error != std::errc() || end == plain.data()) return std::nullopt;
  return value;
}

std::string_view bad_number_in(std::string_view line) {
  constexpr std::string_view kBefore = ":=,([{|\t";
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (at > 0 && (is_name(line[at - 1]) || line[at - 1] == '-' || line[at - 1] == '.')) continue;
    const std::size_t length = bad_number_at(line.substr(at));
    if (length == 0) continue;
    std::size_t last = at;  // behind the character before it
    while (last > 0 && line[last - 1] == ' ') --last;
    const bool value = last > 0 && (kBefore.find(line[last - 1]) != std::string_view::npos ||
                                    (line[last - 1] >= '0' && line[last - 1] <= '9'));
    if (value) return line.substr(at, length);
  }
  return {};
}

}  // namespace assay::chain::stage
