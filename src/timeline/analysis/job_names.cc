#include "timeline/analysis/job_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <sstream>

#include "base/fd.h"
#include "base/text.h"
#include "timeline/input/characters.h"

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
  switch (letter) {
    case 'F':
      return JobName{.pass = Pass::forward};
    case 'B':
      return JobName{.pass = Pass::backward};
    case 'I':
      return JobName{.pass = Pass::backward, .split = true};
    case 'W':
      return JobName{.pass = Pass::weight};
    default:
      return std::nullopt;
  }
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

Jobs parse_words(std::string_view written) {
  static const std::set<std::string, std::less<>> kForward{"forward", "fwd"};
  static const std::set<std::string, std::less<>> kBackward{"backward", "bwd"};
  static const std::set<std::string, std::less<>> kWeight{"weight", "wgrad", "w"};
  static const std::set<std::string, std::less<>> kInput{"input", "dgrad", "b"};
  static const std::set<std::string, std::less<>> kBeside{
      "step", "pass",        "compute",      "exec", "micro", "batch", "microbatch",
      "mb",   "forwardpass", "backwardpass", "grad", "of",    "func"};
  constexpr std::size_t kLongest = 80;
  if (written.size() > kLongest) return {};
  const std::string lower = lowered(written);
  std::string_view name = lower;
  // "DistributedDataParallel.forward", "PipelineEngine._exec_forward_pass": the last part counts.
  if (const std::size_t point = name.rfind('.'); point != std::string_view::npos) {
    name.remove_prefix(point + 1);
  }
  static const std::set<std::string, std::less<>> kOverlapped{"overlap", "overlapped", "combined"};
  JobName job;
  bool forward = false;
  bool backward = false;
  bool weight = false;
  bool overlapped = false;
  std::string word_before;
  for (std::size_t at = 0; at < name.size();) {
    if (is_digit(name[at])) {
      const std::int32_t number = number_at(name, at);
      const bool of_stage = word_before == "chunk" || word_before == "stage";
      (of_stage ? job.stage : job.micro_batch) = number;
      continue;
    }
    if (!is_letter(name[at])) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < name.size() && is_letter(name[at])) ++at;
    const std::string word(name.substr(begin, at - begin));
    forward |= kForward.contains(word) || word == "forwardpass";
    backward |= kBackward.contains(word) || word == "backwardpass";
    weight |= kWeight.contains(word);
    overlapped |= kOverlapped.contains(word);
    job.split |= kInput.contains(word);
    if (!kForward.contains(word) && !kBackward.contains(word) && !kWeight.contains(word) &&
        !kInput.contains(word) && !kBeside.contains(word) && !kOverlapped.contains(word) &&
        word != "chunk" && word != "stage") {
      return {};
    }
    word_before = word;
  }
  if (word_before == "wgrad" || word_before == "dgrad") backward = true;
  if (forward && backward && overlapped) {
    JobName other = job;
    other.pass = Pass::backward;
    return {job, other};
  }
  if (forward == backward || overlapped) return {};
  if (backward) job.pass = weight ? Pass::weight : Pass::backward;
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
    const auto* known = std::find_if(kPasses.begin(), kPasses.end(),
                                     [&](const auto& entry) { return entry.first == pass; });
    if (known == kPasses.end() || pattern == std::string::npos) {
      return usage_error(
          fmt::format("{} line {}: give forward, backward or weight, and a regular expression",
                      path.string(), number));
    }
    std::string expression = line.substr(pattern);
    while (!expression.empty() && (expression.back() == '\r' || expression.back() == ' ')) {
      expression.pop_back();
    }
    try {
      names.rules_.push_back({known->second, std::regex(expression)});
    } catch (const std::regex_error& error) {
      return usage_error(fmt::format("{} line {}: {}", path.string(), number, error.what()));
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
