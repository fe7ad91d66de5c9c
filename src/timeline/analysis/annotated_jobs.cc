#include "timeline/analysis/annotated_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <sstream>

#include "base/fd.h"

namespace assay::timeline {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

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

// "attn(F)": a part of a forward.
std::optional<JobName> parse_part(std::string_view name) {
  if (name.size() < 4 || !name.ends_with(')') || name[name.size() - 3] != '(') return std::nullopt;
  return pass_of_letter(name[name.size() - 2]);
}

// "F", "B3", "W0.1", "F_3", "2F0" (stage, pass, micro batch), all of them behind "PP:" too.
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
    // What follows a second point is a number of the writer's own.
    if (at < name.size() && name[at] == '.') number_at(name, ++at);
  }
  return at == name.size() ? job : std::nullopt;
}

// Words that the names of jobs are made of, beside numbers; any other word means something else.
std::optional<JobName> parse_words(std::string_view name) {
  static const std::set<std::string, std::less<>> kForward{"forward", "fwd"};
  static const std::set<std::string, std::less<>> kBackward{"backward", "bwd"};
  static const std::set<std::string, std::less<>> kWeight{"weight", "wgrad", "w"};
  static const std::set<std::string, std::less<>> kInput{"input", "dgrad", "b"};
  static const std::set<std::string, std::less<>> kBeside{
      "step", "pass",        "compute",      "exec", "micro", "batch", "microbatch",
      "mb",   "forwardpass", "backwardpass", "grad", "of",    "func"};
  constexpr std::size_t kMaxName = 80;
  if (name.size() > kMaxName) return std::nullopt;
  // "DistributedDataParallel.forward", "PipelineEngine._exec_forward_pass": the last part counts.
  if (const std::size_t point = name.rfind('.'); point != std::string_view::npos) {
    name.remove_prefix(point + 1);
  }
  JobName job;
  bool forward = false;
  bool backward = false;
  bool weight = false;
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
    std::string word;
    for (; at < name.size() && is_letter(name[at]); ++at) {
      word += static_cast<char>(name[at] | 0x20);
    }
    forward |= kForward.contains(word) || word == "forwardpass";
    backward |= kBackward.contains(word) || word == "backwardpass";
    weight |= kWeight.contains(word);
    job.split |= kInput.contains(word);
    if (!kForward.contains(word) && !kBackward.contains(word) && !kWeight.contains(word) &&
        !kInput.contains(word) && !kBeside.contains(word) && word != "chunk" && word != "stage") {
      return std::nullopt;
    }
    word_before = word;
  }
  if (word_before == "wgrad" || word_before == "dgrad") backward = true;
  if (forward == backward) return std::nullopt;
  if (backward) job.pass = weight ? Pass::weight : Pass::backward;
  return job;
}

struct Range {
  Nanos begin = 0;
  Nanos end = 0;
  JobName job;
  StringId name = 0;
  std::int32_t count = 0;  // of its name, in its step
};

// The named ranges of one thread, ordered by begin, the outer ones first.
using ThreadRanges = std::vector<Range>;

// The innermost range around a time.
const Range* range_at(const ThreadRanges& ranges, Nanos time) {
  constexpr int kMaxLook = 1000;  // ranges that ended before, within one outer range
  auto it = std::partition_point(ranges.begin(), ranges.end(),
                                 [&](const Range& range) { return range.begin <= time; });
  for (int looked = 0; it != ranges.begin() && looked < kMaxLook; ++looked) {
    --it;
    if (time < it->end) return &*it;
  }
  return nullptr;
}

class JobFinder {
 public:
  JobFinder(Trace& trace, const JobNames& names) : trace_(trace) {
    for (const Slice& slice : trace.slices) {
      const Track& track = trace.tracks[slice.track];
      if (track.gpu || track.jobs || slice.end <= slice.begin) continue;
      const std::string_view category = trace.strings.text(slice.category);
      if (category != "user_annotation" && category != "nvtx") continue;
      add_range(slice, names);
    }
    for (const RankStep& mark : trace.rank_steps) steps_[mark.source].push_back(mark.step.begin);
    for (auto& [source, begins] : steps_) std::sort(begins.begin(), begins.end());
    for (auto& [source, threads] : ranges_) count_names(source, threads);
  }

  void add_jobs() {
    if (ranges_.empty()) return;
    gather();
    std::vector<Slice> jobs;
    for (const auto& [key, span] : spans_) {
      const auto& [range, device] = key;
      Slice job;
      job.begin = span.begin;
      job.end = span.end;
      job.name = range->name;
      job.micro_batch = range->job.micro_batch != kNone ? range->job.micro_batch : range->count;
      job.category = trace_.strings.intern_valid(category_of(*range, device.first));
      job.kind = Kind::compute;
      job.track = track_of(device);
      jobs.push_back(job);
    }
    if (jobs.empty()) return;
    trace_.slices.insert(trace_.slices.end(), jobs.begin(), jobs.end());
    trace_.sort();
  }

 private:
  using Device = std::pair<std::uint32_t, std::int32_t>;  // source, number

  void add_range(const Slice& slice, const JobNames& names) {
    const auto [known, is_new] = parsed_.try_emplace(slice.name);
    if (is_new) known->second = names.parse(trace_.strings.text(slice.name));
    if (!known->second) return;
    ranges_[trace_.tracks[slice.track].source][slice.track].push_back(
        {slice.begin, slice.end, *known->second, slice.name, 0});
  }

  // The micro batch of a job whose name has none is how many of that name came before it.
  void count_names(std::uint32_t source, std::map<std::uint32_t, ThreadRanges>& threads) {
    for (auto& [thread, ranges] : threads) {
      std::map<std::pair<StringId, std::ptrdiff_t>, std::int32_t> counts;
      const std::vector<Nanos>& begins = steps_[source];
      for (Range& range : ranges) {
        const auto step = std::upper_bound(begins.begin(), begins.end(), range.begin);
        range.count = counts[{range.name, step - begins.begin()}]++;
        if (range.job.stage != kNone) stages_[source].insert(range.job.stage);
        if (range.job.pass == Pass::weight) split_.insert(source);
      }
    }
  }

  const Range* range_of(const Launch& launch) const {
    const std::uint32_t source = trace_.tracks[launch.track].source;
    const auto threads = ranges_.find(source);
    if (threads == ranges_.end()) return nullptr;
    if (const auto own = threads->second.find(launch.track); own != threads->second.end()) {
      return range_at(own->second, launch.begin);
    }
    // A thread that names nothing works for one that does: autograd's for the caller of backward.
    for (const auto& [thread, ranges] : threads->second) {
      if (const Range* range = range_at(ranges, launch.begin)) return range;
    }
    return nullptr;
  }

  void gather() {
    for (const Slice& slice : trace_.slices) {
      if (slice.detail == kNoIndex || !trace_.tracks[slice.track].gpu) continue;
      const Detail& detail = trace_.details[slice.detail];
      if (detail.launch == kNoIndex) continue;
      const Range* const range = range_of(trace_.launches[detail.launch]);
      if (range == nullptr) continue;
      const Track& track = trace_.tracks[slice.track];
      examples_.try_emplace({track.source, track.device}, slice.track);
      const auto [span, is_new] =
          spans_.try_emplace({range, {track.source, track.device}}, Span{slice.begin, slice.end});
      span->second.begin = std::min(span->second.begin, slice.begin);
      span->second.end = std::max(span->second.end, slice.end);
    }
  }

  std::string category_of(const Range& range, std::uint32_t source) const {
    std::string category = "forward";
    if (range.job.pass == Pass::weight) category = "backward_w";
    if (range.job.pass == Pass::backward) {
      category = range.job.split || split_.contains(source) ? "backward_b" : "backward";
    }
    // A stage's chunks are numbered by the order of the pipeline's stages that it runs.
    const auto stages = stages_.find(source);
    if (range.job.stage == kNone || stages == stages_.end()) return category;
    const auto chunk = std::distance(stages->second.begin(), stages->second.find(range.job.stage));
    return chunk == 0 ? category : fmt::format("{}{}", category, chunk);
  }

  std::uint32_t track_of(const Device& device) {
    const auto [entry, is_new] = tracks_.try_emplace(device, 0);
    if (!is_new) return entry->second;
    Track track = trace_.tracks[examples_.at(device)];
    track.jobs = true;
    track.chrome_tid.clear();
    const std::string gpu =
        track.device == kNone ? "jobs" : fmt::format("GPU {} · jobs", track.device);
    track.label = track.rank == kNone ? gpu : fmt::format("rank {} · {}", track.rank, gpu);
    entry->second = static_cast<std::uint32_t>(trace_.tracks.size());
    trace_.tracks.push_back(std::move(track));
    return entry->second;
  }

  struct Span {
    Nanos begin;
    Nanos end;
  };

  Trace& trace_;
  std::map<StringId, std::optional<JobName>> parsed_;
  std::map<std::uint32_t, std::map<std::uint32_t, ThreadRanges>> ranges_;  // by source, by track
  std::map<std::uint32_t, std::vector<Nanos>> steps_;                      // where they begin
  std::map<std::uint32_t, std::set<std::int32_t>> stages_;
  std::set<std::uint32_t> split_;  // sources whose weights' gradients are jobs of their own
  std::map<std::pair<const Range*, Device>, Span> spans_;
  std::map<Device, std::uint32_t> examples_;  // a track of the device
  std::map<Device, std::uint32_t> tracks_;
};

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

std::optional<JobName> JobNames::parse(std::string_view name) const {
  constexpr std::size_t kMaxMatched = 1024;
  if (name.size() > kMaxMatched) return std::nullopt;
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
    return job;
  }
  if (!rules_.empty()) return std::nullopt;
  if (auto job = parse_part(name)) return job;
  if (auto job = parse_letter(name)) return job;
  return parse_words(name);
}

void add_annotated_jobs(Trace& trace, const JobNames& names) {
  // Jobs that the trace has already (of a recording, of a merge) are what they are.
  for (const Track& track : trace.tracks) {
    if (track.jobs) return;
  }
  JobFinder(trace, names).add_jobs();
}

}  // namespace assay::timeline
