#include "record/recorder.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <span>

namespace assay::record {
namespace {

constexpr Nanos kNanosPerSecond = 1'000'000'000;
constexpr std::size_t kMaxDepth = 256;

struct OpenRange {
  std::string name;
  std::int32_t micro_batch = timeline::kNone;
  Nanos begin = 0;
  bool recorded = false;
};

std::vector<OpenRange>& open_ranges() {
  static thread_local std::vector<OpenRange> ranges;
  return ranges;
}

std::uint64_t thread_id() {
  static thread_local const auto id = static_cast<std::uint64_t>(::syscall(SYS_gettid));
  return id;
}

template <typename T>
bool parse(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// "A:B" from the environment; either may be empty.
template <typename T>
void read_window(const char* variable, T scale, T& first, T& end) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return;
  const std::string_view window(text);
  const std::size_t colon = window.find(':');
  T value{};
  if (parse(window.substr(0, colon), value)) first = value * scale;
  if (colon != std::string_view::npos && parse(window.substr(colon + 1), value))
    end = value * scale;
}

}  // namespace

Nanos now() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return Nanos{time.tv_sec} * kNanosPerSecond + time.tv_nsec;
}

std::optional<RecorderOptions> RecorderOptions::from_environment() {
  const char* const folder = std::getenv("ASSAY_RECORD_DIR");
  if (folder == nullptr || *folder == '\0') return std::nullopt;
  RecorderOptions options;
  options.folder = folder;
  read_window<std::int64_t>("ASSAY_RECORD_STEPS", 1, options.first_step, options.end_step);
  read_window<Nanos>("ASSAY_RECORD_SECONDS", kNanosPerSecond, options.first_time, options.end_time);
  options.waiting = std::getenv("ASSAY_RECORD_PAUSED") != nullptr;
  return options;
}

Recorder::Recorder(RecorderOptions options)
    : options_(std::move(options)), began_(now()), paused_(options_.waiting) {}

Recorder::~Recorder() {
  const std::lock_guard lock(mutex_);
  end_step_locked(now());
  write_block_locked();
}

Recorder* Recorder::instance() {
  // Destroyed at exit, which writes the last block.
  static const std::unique_ptr<Recorder> recorder = [] {
    auto options = RecorderOptions::from_environment();
    return options ? std::make_unique<Recorder>(std::move(*options)) : nullptr;
  }();
  return recorder.get();
}

bool Recorder::active() const {
  if (paused_) return false;
  const bool by_step = options_.first_step != std::numeric_limits<std::int64_t>::min() ||
                       options_.end_step != std::numeric_limits<std::int64_t>::max();
  const std::int64_t step = step_;
  if (by_step && (step < options_.first_step || step >= options_.end_step)) return false;
  if (options_.first_time == 0 && options_.end_time == std::numeric_limits<Nanos>::max())
    return true;
  const Nanos age = now() - began_;
  return age >= options_.first_time && age < options_.end_time;
}

void Recorder::begin_range(std::string_view name, std::int32_t micro_batch) {
  std::int64_t step = 0;
  if (parse(name, step)) begin_step(step);
  std::vector<OpenRange>& ranges = open_ranges();
  if (ranges.size() >= kMaxDepth) {
    // Too deep to keep: counted by its place so that its end is matched.
    ranges.push_back({});
    return;
  }
  ranges.push_back({std::string(name), micro_batch, now(), active()});
  RangeObserver* const observer = observer_;
  if (observer != nullptr && ranges.back().recorded) observer->range_begun(name, micro_batch);
}

void Recorder::begin_job(std::string_view text) {
  const std::size_t at = text.rfind('@');
  std::int32_t micro_batch = timeline::kNone;
  if (at != std::string_view::npos && parse(text.substr(at + 1), micro_batch) && micro_batch >= 0) {
    begin_range(text.substr(0, at), micro_batch);
  } else {
    begin_range(text);
  }
}

void Recorder::end_range() {
  std::vector<OpenRange>& ranges = open_ranges();
  if (ranges.empty()) return;
  const OpenRange range = std::move(ranges.back());
  ranges.pop_back();
  if (!range.recorded) return;
  if (RangeObserver* const observer = observer_) observer->range_ended();
  add({.name = range.name,
       .kind = timeline::Kind::host,
       .gpu = false,
       .job = range.micro_batch != timeline::kNone,
       .device = timeline::kNone,
       .lane = thread_id(),
       .begin = range.begin,
       .end = now(),
       .micro_batch = range.micro_batch});
}

void Recorder::begin_step(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  const Nanos time = now();
  end_step_locked(time);
  step_ = number;
  step_begin_ = time;
}

void Recorder::end_step_locked(Nanos time) {
  if (step_ != timeline::kNone && active()) {
    encoder_.add_step({step_, step_begin_, time});
  }
}

void Recorder::add(const timeline::RecordedSlice& slice) {
  const std::lock_guard lock(mutex_);
  add_locked(slice);
}

void Recorder::add_locked(const timeline::RecordedSlice& slice) {
  if (broken_) return;
  encoder_.add(slice);
  const Nanos flush_after = std::chrono::nanoseconds(kFlushEvery).count();
  if (encoder_.full() || slice.end - last_flush_ > flush_after) write_block_locked();
}

void Recorder::flush() {
  const std::lock_guard lock(mutex_);
  write_block_locked();
}

bool Recorder::open_file_locked() {
  const int pid = ::getpid();
  if (file_ && pid == pid_) return true;
  std::array<char, timeline::recording::kHostBytes> host{};
  static_cast<void>(::gethostname(host.data(), host.size() - 1));
  const auto path =
      options_.folder / (std::string(host.data()) + "." + std::to_string(pid) + ".assayrec");
  file_ = Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, 0644));
  pid_ = pid;
  if (!file_) return false;
  const std::string header =
      timeline::RecordingEncoder::header(static_cast<std::uint32_t>(pid), host.data());
  return write_all(file_.get(), std::as_bytes(std::span(header))).has_value();
}

void Recorder::write_block_locked() {
  last_flush_ = now();
  if (encoder_.empty() || broken_) return;
  const std::string block = encoder_.take_block();
  broken_ = !open_file_locked() || !write_all(file_.get(), std::as_bytes(std::span(block)));
}

}  // namespace assay::record
