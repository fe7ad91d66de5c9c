#include "timeline/importers/job_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/values.h"
#include "timeline/names.h"

namespace assay::timeline {
namespace {

namespace fs = std::filesystem;

// Enough for months; bounds the memory that a hostile log can take.
constexpr std::size_t kMaxSteps = 1U << 18U;
constexpr std::size_t kMaxOpenRanges = 1024;
constexpr std::string_view kLogPrefix = "workerlog.";
constexpr std::string_view kMachinePrefix = "machine";

bool is_ignored(std::string_view type) { return type == "recv_forward" || type == "send_backward"; }

Result<std::vector<std::string>> entries_after(const fs::path& folder, std::string_view prefix) {
  std::vector<std::string> rest;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string entry = it->path().filename().string();
    if (entry.starts_with(prefix)) rest.push_back(entry.substr(prefix.size()));
  }
  if (error)
    return usage_error(fmt::format("cannot list {}: {}", folder.string(), error.message()));
  std::ranges::sort(rest, stands_before);
  return rest;
}

Status add_logs(const fs::path& folder, const std::string& machine, std::vector<int> devices,
                std::vector<JobLogFile>& logs) {
  if (devices.empty()) {
    ASSAY_TRY(const auto suffixes, entries_after(folder, kLogPrefix));
    for (const std::string& suffix : suffixes) {
      if (int device = 0; read_number(suffix, device)) devices.push_back(device);
    }
    if (devices.empty()) return usage_error(fmt::format("no workerlog.K in {}", folder.string()));
  }
  for (const int device : devices) {
    fs::path path = folder / fmt::format("{}{}", kLogPrefix, device);
    std::error_code error;
    if (!fs::exists(path, error)) {
      return usage_error(
          fmt::format("{} is missing, but --devices names device {}", path.string(), device));
    }
    logs.push_back({std::move(path), machine, device});
  }
  return {};
}

// The steps of all logs read so far.
struct StepFold {
  std::vector<Step> by_jobs;  // the i-th step of each log
  std::map<std::int64_t, Step> by_marks;
  // The first step of the schedule window by machine. The machine's last log decides, as in
  // Paddle's script.
  std::map<std::string, std::int64_t> first;
  bool full = false;
};

class StepTracker {
 public:
  StepTracker(StepFold& fold, std::string machine, Nanos offset)
      : fold_(fold), machine_(std::move(machine)), offset_(offset) {}

  void job(const JobLogRecord& job) {
    if (first_type_.empty() && job.type != "default") first_type_ = job.type;
    if (job.type == first_type_ && job.micro_batch == 0) {
      close();
      begin_ = job.begin;
    }
    if (!first_begin_) first_begin_ = job.begin;
    end_ = job.end;
  }

  void window(std::int64_t first_step) {
    // A log may have several windows; steps of jobs are numbered from the first one.
    if (!window_seen_) fold_.first[machine_] = first_step;
    window_seen_ = true;
  }

  void push(const JobLogRecord& record) {
    if (open_.size() < kMaxOpenRanges) {
      open_.emplace_back(record.number, record.begin);
    } else {
      ++too_deep_;
    }
  }

  void pop(Nanos time) {
    if (too_deep_ > 0) {
      --too_deep_;
      return;
    }
    if (open_.empty()) {
      ++unmatched_;
      return;
    }
    const auto [number, begin] = open_.back();
    open_.pop_back();
    if (number == kNone) return;
    if (time < begin || (fold_.by_marks.size() == kMaxSteps && !fold_.by_marks.contains(number))) {
      ++unmatched_;
      return;
    }
    Step& step = fold_.by_marks[number];
    step.number = number;
    widen(step, Span{begin + offset_, time + offset_});
  }

  // Returns the number of step marks without a counterpart.
  std::uint64_t finish() {
    // A window without any micro batch 0 is one step.
    if (!begin_ && index_ == 0) begin_ = first_begin_;
    close();
    for (const auto& [number, begin] : open_) unmatched_ += number == kNone ? 0U : 1U;
    return unmatched_;
  }

 private:
  void close() {
    if (!begin_) return;
    if (index_ == fold_.by_jobs.size()) {
      if (index_ == kMaxSteps) {
        fold_.full = true;
        return;
      }
      fold_.by_jobs.emplace_back();
    }
    widen(fold_.by_jobs[index_++], Span{*begin_ + offset_, end_ + offset_});
    begin_.reset();
  }

  StepFold& fold_;
  std::string machine_;
  Nanos offset_;
  std::string first_type_;
  std::optional<Nanos> begin_;
  std::optional<Nanos> first_begin_;
  Nanos end_ = 0;
  std::size_t index_ = 0;
  bool window_seen_ = false;
  std::vector<std::pair<std::int64_t, Nanos>> open_;
  std::uint64_t too_deep_ = 0;
  std::uint64_t unmatched_ = 0;
};

class JobSlices {
 public:
  JobSlices(std::uint32_t track, Nanos offset, Strings& strings)
      : track_(track), offset_(offset), strings_(strings) {}

  Slice slice(const JobLogRecord& job) {
    if (job.type != last_type_ || last_type_.empty()) {
      last_type_ = job.type;
      last_name_ = strings_.intern(job.type);
      last_kind_ = kind_of_job(job.type);
    }
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    return {.begin = job.begin + offset_,
            .end = job.end + offset_,
            .job = job.number,
            .name = last_name_,
            .category = last_name_,
            .track = track_,
            .micro_batch = static_cast<std::int32_t>(std::min(job.micro_batch, kMost)),
            .kind = last_kind_};
  }

 private:
  std::uint32_t track_;
  Nanos offset_;
  Strings& strings_;
  std::string last_type_;
  StringId last_name_ = 0;
  Kind last_kind_ = Kind::compute;
};

// Reads a log; gives its jobs to `take` and adds its steps to `fold`.
Result<FileReport> survey_log(const JobLogFile& log, Nanos offset, JobFilter filter,
                              JobSlices convert, StepFold& fold, const TakeSlice& take) {
  ASSAY_TRY(JobLogReader reader, JobLogReader::open(log.path));
  StepTracker steps(fold, log.machine, offset);
  JobLogRecord record;
  std::uint64_t jobs = 0;
  std::uint64_t ignored = 0;
  for (;;) {
    ASSAY_TRY(const bool more, reader.next(record));
    if (!more) break;
    switch (record.what) {
      case JobLogRecord::What::job: {
        const bool leave_out = is_ignored(record.type);
        ++(leave_out ? ignored : jobs);
        if (!leave_out) steps.job(record);
        if (!leave_out || filter == JobFilter::all) ASSAY_CHECK(take(convert.slice(record)));
        break;
      }
      case JobLogRecord::What::window:
        steps.window(record.number);
        break;
      case JobLogRecord::What::push:
        steps.push(record);
        break;
      case JobLogRecord::What::pop:
        steps.pop(record.begin);
        break;
    }
  }
  FileReport report = std::move(reader.report());
  report.unmatched_steps = steps.finish();
  report.kept = jobs;
  report.ignored = ignored;
  if (report.unrelated()) {
    report.notes.emplace_back(
        "no job, step or schedule line: this is not a job log, or profiling was off");
  }
  return report;
}

std::vector<Step> resolve_steps(StepFold& fold) {
  std::vector<Step> steps;
  if (!fold.by_marks.empty()) {
    for (const auto& [number, step] : fold.by_marks) steps.push_back(step);
  } else {
    steps = std::move(fold.by_jobs);
    std::int64_t first = 0;
    for (const auto& [machine, step] : fold.first) first = std::max(first, step);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      steps[i].number = first + static_cast<std::int64_t>(i);
    }
  }
  // Steps of different devices overlap; the row shows steps end to end.
  for (std::size_t i = 1; i < steps.size(); ++i) {
    steps[i].begin = std::min(std::max(steps[i].begin, steps[i - 1].end), steps[i].end);
  }
  return steps;
}

}  // namespace

Result<std::vector<JobLogFile>> find_job_logs(const JobLogOptions& options) {
  std::vector<JobLogFile> logs;
  if (!options.multi_machine) {
    ASSAY_CHECK(add_logs(options.log_dir, "", options.devices, logs));
    return logs;
  }
  ASSAY_TRY(const auto machines, entries_after(options.log_dir, kMachinePrefix));
  for (const std::string& machine : machines) {
    const fs::path folder = options.log_dir / fmt::format("{}{}", kMachinePrefix, machine);
    std::error_code error;
    if (!fs::is_directory(folder, error)) continue;
    ASSAY_CHECK(add_logs(folder, machine, options.devices, logs));
  }
  if (logs.empty()) {
    return usage_error(fmt::format("no machineK folder in {}", options.log_dir.string()));
  }
  return logs;
}

Result<JobLogSurvey> survey_job_logs(std::span<const JobLogFile> logs,
                                     std::span<const Nanos> offsets, JobFilter filter,
                                     Strings& strings,
                                     const std::function<Result<TakeSlice>()>& begin_log) {
  JobLogSurvey survey;
  StepFold fold;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const JobSlices convert(static_cast<std::uint32_t>(i + 1), offsets[i], strings);
    ASSAY_TRY(const TakeSlice take, begin_log());
    ASSAY_TRY(FileReport report, survey_log(logs[i], offsets[i], filter, convert, fold, take));
    survey.files.push_back(std::move(report));
  }
  if (fold.full) {
    survey.notes.push_back(
        fmt::format("more than {} steps: the Step row has only the first ones", kMaxSteps));
  }
  survey.steps = resolve_steps(fold);
  return survey;
}

std::vector<Track> job_log_tracks(std::span<const JobLogFile> logs) {
  std::vector<Track> tracks;
  tracks.push_back({.label = "STEP", .chrome_tid = "Step", .process = "", .machine = ""});
  for (const JobLogFile& log : logs) {
    const std::string suffix = log.machine.empty() ? "" : fmt::format("(machine:{})", log.machine);
    tracks.push_back({.label = fmt::format("GPU:{}{}", log.device, suffix),
                      .chrome_tid = fmt::format("GPU{}{}", log.device, suffix),
                      .process = "",
                      .machine = log.machine,
                      .device = log.device,
                      .gpu = true});
  }
  return tracks;
}

std::vector<Slice> step_slices(std::span<const Step> steps, Strings& strings) {
  std::vector<Slice> slices;
  slices.reserve(steps.size());
  const StringId category = strings.intern("step");
  for (const Step& step : steps) {
    slices.push_back({.begin = step.begin,
                      .end = step.end,
                      .name = strings.intern(fmt::format("step{}", step.number)),
                      .category = category});
  }
  std::ranges::sort(slices, {}, &Slice::begin);
  return slices;
}

}  // namespace assay::timeline
