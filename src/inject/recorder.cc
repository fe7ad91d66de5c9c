#include "inject/recorder.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <span>

namespace assay::inject {
namespace {

constexpr Nanos kNanosPerSecond = 1'000'000'000;
constexpr std::size_t kMaxDepth = 256;
constexpr const char* kSuffix = ".assayrec";

struct OpenRange {
  std::string name;
  std::int32_t micro_batch = timeline::kNone;
  Nanos begin = 0;
  bool recorded = false;
  bool step = false;
  std::uint64_t id = 0;
  std::uint64_t parent = 0;
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

bool RecorderOptions::by_step() const {
  return first_step != std::numeric_limits<std::int64_t>::min() ||
         end_step != std::numeric_limits<std::int64_t>::max();
}

bool RecorderOptions::by_time() const {
  return first_time != 0 || end_time != std::numeric_limits<Nanos>::max();
}

Recorder::Recorder(RecorderOptions options)
    : options_(std::move(options)), began_(now()), paused_(options_.waiting) {}

Recorder::~Recorder() { finish(); }

void Recorder::finish() {
  const std::lock_guard lock(mutex_);
  end_step_locked(now());
  write_block_locked();
}

Recorder* Recorder::instance() {
  // Never destroyed: threads of CUPTI and of the program may record until the very end.
  static Recorder* const recorder = [] {
    auto options = RecorderOptions::from_environment();
    if (!options) return static_cast<Recorder*>(nullptr);
    // A child must neither write what its parent had gathered nor find the mutex held.
    ::pthread_atfork([] { instance()->mutex_.lock(); }, [] { instance()->mutex_.unlock(); },
                     [] { instance()->after_fork_in_child(); });
    std::atexit([] { instance()->finish(); });
    return new Recorder(std::move(*options));  // NOLINT(cppcoreguidelines-owning-memory)
  }();
  return recorder;
}

void Recorder::after_fork_in_child() {
  encoder_ = {};
  const std::uint64_t mine = innermost_[thread_id()];
  innermost_.clear();
  if (mine != 0) innermost_.emplace(thread_id(), mine);
  only_range_ = mine;
  mutex_.unlock();
}

bool Recorder::active() const {
  if (paused_) return false;
  const std::int64_t step = step_;
  if (options_.by_step() && (step < options_.first_step || step >= options_.end_step)) return false;
  if (!options_.by_time()) return true;
  return age() >= options_.first_time && age() < options_.end_time;
}

void Recorder::on_change(std::function<void()> listener) {
  listener_ = std::move(listener);
  changed();
}

void Recorder::changed() const {
  if (listener_) listener_();
}

void Recorder::set_paused(bool paused) {
  paused_ = paused;
  changed();
}

std::uint64_t Recorder::current_range() const {
  const std::vector<OpenRange>& ranges = open_ranges();
  const std::uint64_t own = ranges.empty() ? 0 : ranges.back().id;
  // Ids grow with time: of a range and a step, the one that began later lies within the other.
  return std::max(own != 0 ? own : only_range_.load(), step_id_.load());
}

void Recorder::innermost_is(std::uint64_t range) {
  const std::lock_guard lock(mutex_);
  if (range == 0) {
    innermost_.erase(thread_id());
  } else {
    innermost_[thread_id()] = range;
  }
  only_range_ = innermost_.size() == 1 ? innermost_.begin()->second : 0;
}

void Recorder::begin_range(std::string_view name, std::int32_t micro_batch) {
  std::int64_t step = 0;
  const bool is_step = parse(name, step);
  if (is_step) begin_step(step);
  std::vector<OpenRange>& ranges = open_ranges();
  if (ranges.size() >= kMaxDepth || !active()) {
    // Kept by its place alone, so that its end is matched.
    OpenRange unrecorded;
    unrecorded.step = is_step;
    ranges.push_back(std::move(unrecorded));
    return;
  }
  const std::uint64_t parent = current_range();
  const std::uint64_t id = is_step ? step_id_.load() : next_id_++;
  ranges.push_back({std::string(name), micro_batch, now(), true, is_step, id, parent});
  innermost_is(id);
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
  const Nanos time = now();
  if (range.recorded) {
    innermost_is(ranges.empty() ? 0 : ranges.back().id);
    add({.name = range.name,
         .kind = timeline::Kind::host,
         .gpu = false,
         .job = range.micro_batch != timeline::kNone,
         .device = timeline::kNone,
         .lane = thread_id(),
         .begin = range.begin,
         .end = time,
         .micro_batch = range.micro_batch,
         .id = range.step ? 0 : range.id,
         .parent = range.parent});
  }
  if (!range.step) return;
  {
    const std::lock_guard lock(mutex_);
    end_step_locked(time);
  }
  changed();
}

void Recorder::begin_step(std::int64_t number) {
  {
    const std::lock_guard lock(mutex_);
    const Nanos time = now();
    end_step_locked(time);
    step_ = number;
    step_id_ = next_id_++;
    step_begin_ = time;
    step_recorded_ = active();
  }
  changed();
}

void Recorder::end_step_locked(Nanos time) {
  if (step_ == timeline::kNone) return;
  if (step_recorded_) encoder_.add_step({step_, step_begin_, time}, step_id_);
  step_ = timeline::kNone;
  step_id_ = 0;
}

void Recorder::add(const timeline::RecordedSlice& slice) {
  const std::lock_guard lock(mutex_);
  encoder_.add(slice);
  write_if_due_locked(slice.end);
}

void Recorder::add_launches(std::uint64_t range, std::span<const std::uint32_t> correlations) {
  const std::lock_guard lock(mutex_);
  encoder_.add_launches(range, correlations);
  write_if_due_locked(last_flush_);
}

void Recorder::add_note(std::string_view text) {
  const std::lock_guard lock(mutex_);
  encoder_.add_note(text);
}

void Recorder::add_lost(std::uint64_t records) {
  const std::lock_guard lock(mutex_);
  encoder_.add_lost(records);
}

void Recorder::write_if_due_locked(Nanos time) {
  const Nanos flush_after = std::chrono::nanoseconds(kFlushEvery).count();
  if (encoder_.full() || time - last_flush_ > flush_after) write_block_locked();
}

void Recorder::flush() {
  const std::lock_guard lock(mutex_);
  write_block_locked();
}

// Numbers of processes come again, in containers after every start: a file that is there belongs to
// an earlier process and stays.
Fd Recorder::create_file(const std::string& name, std::filesystem::path& path) const {
  constexpr int kTries = 10'000;
  for (int number = 1; number <= kTries; ++number) {
    path = options_.folder / (name + (number == 1 ? "" : "." + std::to_string(number)) + kSuffix);
    Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, 0644));
    if (file || errno != EEXIST) return file;
  }
  return {};
}

Status Recorder::open_file_locked() {
  const int pid = ::getpid();
  if (file_ && pid == pid_) return {};
  std::array<char, timeline::recording::kHostBytes> host{};
  static_cast<void>(::gethostname(host.data(), host.size() - 1));
  std::filesystem::path path;
  file_ = create_file(std::string(host.data()) + "." + std::to_string(pid), path);
  pid_ = pid;
  if (!file_) return errno_error("cannot write " + path.string());
  const std::string header =
      timeline::RecordingEncoder::header(static_cast<std::uint32_t>(pid), host.data());
  return write_all(file_.get(), std::as_bytes(std::span(header)));
}

void Recorder::write_block_locked() {
  last_flush_ = now();
  if (encoder_.empty()) return;
  const std::string block = encoder_.take_block();
  if (broken_) return;
  Status written = open_file_locked();
  if (written) written = write_all(file_.get(), std::as_bytes(std::span(block)));
  if (written) return;
  broken_ = true;
  const std::string line = "assay: process " + std::to_string(pid_) +
                           " is not recorded any further: " + written.error().message + "\n";
  // The program's own error output; nothing can be done where it is closed.
  static_cast<void>(write_all(STDERR_FILENO, std::as_bytes(std::span(line))));
}

}  // namespace assay::inject
