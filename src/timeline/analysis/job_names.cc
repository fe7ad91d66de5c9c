#include "timeline/analysis/job_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "base/fd.h"
#include "base/text.h"
#include "timeline/names.h"

namespace assay::timeline {
namespace {

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }  // for lower-case text

std::int32_t number_at(std::string_view text, std::size_t& at) {
  std::int32_t number = kNone;
  const auto result = std::from_chars(text.data() + at, text.data() + text.size(), number);
  at = static_cast<std::size_t>(result.ptr - text.data());
  return result.ec == std::errc() ? number : kNone;
}

std::optional<JobName> pass_of_letter(char letter) {
  if (letter == 'F') return JobName{.pass = Pass::forward};
  if (letter == 'W') return JobName{.pass = Pass::weight};
  if (letter != 'B' && letter != 'I') return std::nullopt;
  return JobName{.pass = Pass::backward, .split = letter == 'I'};
}

// Parses "attn(F)", a part of a forward.
std::optional<JobName> parse_part(std::string_view name) {
  if (name.size() < 4 || !name.ends_with(')') || name[name.size() - 3] != '(') return std::nullopt;
  return pass_of_letter(name[name.size() - 2]);
}

// Parses "F", "B3", "W0.1", "F_3" and "2F0" (stage, pass, micro batch), each optionally after
// "PP:".
std::optional<JobName> parse_letter(std::string_view name) {
  if (name.starts_with("PP:")) name.remove_prefix(3);
  std::size_t at = 0;
  const std::int32_t stage = !name.empty() && is_digit(name[0]) ? number_at(name, at) : kNone;
  if (at >= name.size()) return std::nullopt;
  std::optional<JobName> job = pass_of_letter(name[at++]);
  if (!job) return std::nullopt;
  job->stage = stage;
  if (at < name.size() && (name[at] == '_' || name[at] == ' ' || name[at] == '-')) ++at;
  if (at == name.size()) return job;
  if (!is_digit(name[at])) return std::nullopt;
  job->micro_batch = number_at(name, at);
  if (at < name.size() && name[at] == '/') {
    ++at;
    if (number_at(name, at) == kNone) return std::nullopt;
  }
  if (at < name.size() && name[at] == '.') {
    ++at;
    job->stage = number_at(name, at);
    // A number after a second point has no meaning here.
    if (at < name.size() && name[at] == '.') number_at(name, ++at);
  }
  return at == name.size() ? job : std::nullopt;
}

using Jobs = std::vector<JobName>;

Jobs as_list(const std::optional<JobName>& job) { return job ? Jobs{*job} : Jobs(); }

// Parses "(0F1;1B0)OVERLAP_F_B" (torch.distributed.pipelining) and "F1&B0".
Jobs parse_overlapped(std::string_view name) {
  if (name.starts_with("PP:")) name.remove_prefix(3);
  constexpr std::string_view kMark = "OVERLAP_F_B";
  char separator = '&';
  if (name.ends_with(kMark)) {
    name.remove_suffix(kMark.size());
    if (!name.starts_with('(') || !name.ends_with(')')) return {};
    name = name.substr(1, name.size() - 2);
    separator = ';';
  }
  Jobs jobs;
  for (const std::string& part : split_at(name, separator)) {
    const auto job = parse_letter(part);
    if (!job) return {};
    jobs.push_back(*job);
  }
  return jobs.size() == 2 && jobs[0].pass != jobs[1].pass ? jobs : Jobs();
}

// The number after an ignored word tells nothing.
enum class Word : std::uint8_t { forward, backward, weight, input, overlap, stage, ignored, other };

std::optional<Word> known_word(std::string_view word) {
  static const std::map<std::string_view, Word> kWords{
      {"forward", Word::forward},  {"fwd", Word::forward},      {"backward", Word::backward},
      {"bwd", Word::backward},     {"weight", Word::weight},    {"wgrad", Word::weight},
      {"w", Word::weight},         {"input", Word::input},      {"dgrad", Word::input},
      {"b", Word::input},          {"overlap", Word::overlap},  {"overlapped", Word::overlap},
      {"combined", Word::overlap}, {"chunk", Word::stage},      {"stage", Word::stage},
      {"step", Word::other},       {"pass", Word::other},       {"compute", Word::other},
      {"exec", Word::other},       {"micro", Word::other},      {"batch", Word::other},
      {"microbatch", Word::other}, {"mb", Word::other},         {"grad", Word::other},
      {"of", Word::other},         {"func", Word::other},       {"helper", Word::other},
      {"iter", Word::ignored},     {"iteration", Word::ignored}};
  const auto found = kWords.find(word);
  return found == kWords.end() ? std::nullopt : std::optional(found->second);
}

// Parses names of words and numbers, such as "_exec_forward_pass"; any unknown word means no job.
Jobs parse_words(std::string_view written) {
  constexpr std::size_t kLongest = 80;
  if (written.size() > kLongest) return {};
  // Of "PipelineEngine._exec_forward_pass" and "schedule: forward 2", the last part counts; of
  // "forward: stage=2", all.
  std::string name;
  for (const char c : written.substr(written.rfind('.') + 1)) {
    const bool capital = c >= 'A' && c <= 'Z';
    if (capital && !name.empty() && is_letter(name.back())) name += ' ';  // of "ForwardStep"
    name += c;
  }
  name = lowered(name);
  if (const std::size_t colon = name.rfind(':'); name.find("ward", colon) < name.size()) {
    name.erase(0, colon + 1);
  }
  JobName job;
  std::set<Word> words;
  std::string_view last;
  char between = 0;  // the last character behind a number, other than blanks
  bool numbered = false;
  for (std::size_t at = 0; at < name.size();) {
    if (is_digit(name[at])) {
      const auto word = known_word(last);
      // Of "3/8" and "3 of 8", the second number is the total.
      const bool total = numbered && (last == "of" || between == '/');
      const std::int32_t number = number_at(name, at);
      if (!total && word != Word::ignored) {
        (word == Word::stage ? job.stage : job.micro_batch) = number;
      }
      numbered = true;
      between = 0;
      continue;
    }
    if (name[at] != ' ') between = name[at];
    const std::size_t begin = at;
    while (at < name.size() && is_letter(name[at])) ++at;
    if (at == begin) {
      ++at;
      continue;
    }
    last = std::string_view(name).substr(begin, at - begin);
    const auto word = known_word(last);
    if (!word) return {};
    words.insert(*word);
  }
  const bool forward = words.contains(Word::forward);
  const bool backward = words.contains(Word::backward) || last == "wgrad" || last == "dgrad";
  const bool overlapped = words.contains(Word::overlap);
  job.split = words.contains(Word::input);
  if (forward && backward && overlapped) {
    JobName other = job;
    other.pass = Pass::backward;
    return {job, other};
  }
  if (forward == backward || overlapped) return {};
  if (backward) job.pass = words.contains(Word::weight) ? Pass::weight : Pass::backward;
  return {job};
}

}  // namespace

Result<JobNames> JobNames::read(const std::filesystem::path& path) {
  ASSAY_TRY(const std::string text, read_file(path));
  JobNames names;
  std::istringstream lines(text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    const std::size_t cut = line.find_first_of(" \t", begin);
    const std::string pass = line.substr(begin, cut - begin);
    const std::size_t pattern =
        cut == std::string::npos ? std::string::npos : line.find_first_not_of(" \t", cut);
    constexpr std::array<std::pair<std::string_view, Pass>, 3> kPasses{
        {{"forward", Pass::forward}, {"backward", Pass::backward}, {"weight", Pass::weight}}};
    const auto* known =
        std::ranges::find(kPasses, pass, [](const auto& entry) { return entry.first; });
    if (known == kPasses.end() || pattern == std::string::npos) {
      return usage_error(
          fmt::format("{}:{}: expected forward, backward or weight, and a regular expression",
                      path.string(), number));
    }
    std::string expression = line.substr(pattern);
    while (!expression.empty() && (expression.back() == '\r' || expression.back() == ' ')) {
      expression.pop_back();
    }
    try {
      names.rules_.push_back({known->second, std::regex(expression)});
    } catch (const std::regex_error& error) {
      return usage_error(fmt::format("{}:{}: {}", path.string(), number, error.what()));
    }
  }
  return names;
}

std::vector<JobName> JobNames::parse(std::string_view name) const {
  constexpr std::size_t kMaxMatched = 1024;
  if (name.size() > kMaxMatched) return {};
  for (const Rule& rule : rules_) {
    std::match_results<std::string_view::const_iterator> match;
    if (!std::regex_match(name.begin(), name.end(), match, rule.pattern)) continue;
    JobName job{.pass = rule.pass};
    const auto group = [&](std::size_t index) {
      std::size_t at = 0;
      return index < match.size() && match[index].matched
                 ? number_at(std::string_view(match[index].first, match[index].second), at)
                 : kNone;
    };
    job.micro_batch = group(1);
    job.stage = group(2);
    return {job};
  }
  if (!rules_.empty()) return {};
  if (Jobs jobs = parse_overlapped(name); !jobs.empty()) return jobs;
  if (Jobs jobs = as_list(parse_part(name)); !jobs.empty()) return jobs;
  if (Jobs jobs = as_list(parse_letter(name)); !jobs.empty()) return jobs;
  return parse_words(name);
}

}  // namespace assay::timeline
