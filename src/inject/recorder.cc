#include "inject/recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>

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

// Returns the value of the first variable that is set to a number.
template <typename T>
T number_from(std::initializer_list<const char*> variables, T fallback) {
  for (const char* variable : variables) {
    T value{};
    if (const char* const text = std::getenv(variable); text != nullptr && parse(text, value)) {
      return value;
    }
  }
  return fallback;
}

// Reads "A:B" from an environment variable; either may be empty.
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
  options.every = std::max<std::int64_t>(1, number_from<std::int64_t>({"ASSAY_RECORD_EVERY"}, 1));
  options.ring = number_from<Nanos>({"ASSAY_RECORD_RING"}, 0) * kNanosPerSecond;
  options.hang = number_from<Nanos>({"ASSAY_RECORD_HANG"}, 0) * kNanosPerSecond;
  options.slow = number_from<double>({"ASSAY_RECORD_SLOW"}, 0);
  options.rank = number_from<std::int32_t>(
      {"RANK", "PADDLE_TRAINER_ID", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}, timeline::kNone);
  options.world_size = number_from<std::int32_t>(
      {"WORLD_SIZE", "PADDLE_TRAINERS_NUM", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"},
      timeline::kNone);
  return options;
}

bool RecorderOptions::by_step() const {
  return every > 1 || first_step != std::numeric_limits<std::int64_t>::min() ||
         end_step != std::numeric_limits<std::int64_t>::max();
}

bool RecorderOptions::by_time() const {
  return first_time != 0 || end_time != std::numeric_limits<Nanos>::max();
}

Recorder::Recorder(RecorderOptions options)
    : options_(std::move(options)), began_(now()), paused_(options_.waiting) {}

Recorder::~Recorder() {
  watcher_.reset();
  finish();
}

void Recorder::finish() {
  const std::lock_guard lock(mutex_);
  end_step_locked(now());
  write_block_locked();
}

Recorder* Recorder::instance() {
  // Never destroyed, because threads of CUPTI and the program may record until the process ends.
  static Recorder* const recorder = [] {
    auto options = RecorderOptions::from_environment();
    if (!options) return static_cast<Recorder*>(nullptr);
    // A forked child must neither write its parent's data nor find the mutex locked.
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
  ring_.take();
  hangs_.forget();
  // Threads are not inherited, so the child must not join the parent's.
  static_cast<void>(watcher_.release());  // NOLINT(bugprone-unused-return-value)
  mutex_.unlock();
}

bool Recorder::active() const {
  if (paused_) return false;
  const std::int64_t step = step_;
  if (options_.by_step() &&
      (step < options_.first_step || step >= options_.end_step || step % options_.every != 0)) {
    return false;
  }
  if (!options_.by_time()) return true;
  return age() >= options_.first_time && age() < options_.end_time;
}

void Recorder::on_change(std::function<void()> listener) {
  listener_ = std::move(listener);
  changed();
}

void Recorder::on_deliver(std::function<void(bool all)> deliver) {
  const std::lock_guard lock(mutex_);
  deliver_ = std::move(deliver);
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
  // Ids increase with time, so of a range and a step the later one is the inner one.
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
    // Only a placeholder, so that the end of the range is matched.
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
  if (options_.slow > 0) {
    if (std::string slow = slow_steps_.ended(step_, time - step_begin_); !slow.empty()) {
      reason_ = std::move(slow);
    }
  }
  step_ = timeline::kNone;
  step_id_ = 0;
}

void Recorder::add(const timeline::RecordedSlice& slice) {
  const std::lock_guard lock(mutex_);
  encoder_.add(slice);
  if (slice.gpu && options_.hang > 0) hangs_.ended(static_cast<std::uint32_t>(slice.id), now());
  write_if_due_locked(slice.end);
}

void Recorder::collective_launched(std::uint32_t correlation, std::string_view name) {
  const std::lock_guard lock(mutex_);
  hangs_.collective_launched(correlation, name, now());
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

// Process ids are reused, in containers after every start. An existing file belongs to an earlier
// process and is kept.
Fd Recorder::create_file(const std::filesystem::path& folder, const std::string& name,
                         std::filesystem::path& path) const {
  constexpr int kTries = 10'000;
  for (int number = 1; number <= kTries; ++number) {
    path = folder / (name + (number == 1 ? "" : "." + std::to_string(number)) + kSuffix);
    Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, 0644));
    if (file || errno != EEXIST) return file;
  }
  return {};
}

Result<Fd> Recorder::new_file_locked(const std::filesystem::path& folder) {
  pid_ = ::getpid();
  std::array<char, timeline::recording::kHostBytes> host{};
  static_cast<void>(::gethostname(host.data(), host.size() - 1));
  std::filesystem::path path;
  Fd file = create_file(folder, std::string(host.data()) + "." + std::to_string(pid_), path);
  if (!file) return errno_error("cannot write " + path.string());
  timeline::RecordingEncoder first;
  first.add_identity(options_.rank, options_.world_size);
  const std::string head =
      timeline::RecordingEncoder::header(static_cast<std::uint32_t>(pid_), host.data()) +
      first.take_block();
  ASSAY_CHECK(write_all(file.get(), std::as_bytes(std::span(head))));
  return file;
}

Status Recorder::open_file_locked() {
  if (file_ && ::getpid() == pid_) return {};
  ASSAY_TRY(file_, new_file_locked(options_.folder));
  return {};
}

void Recorder::say_broken_locked(const Status& why) {
  broken_ = true;
  const std::string line = "assay: process " + std::to_string(::getpid()) +
                           " is no longer recorded: " + why.error().message + "\n";
  // If the program has closed its error output, the message is lost.
  static_cast<void>(write_all(STDERR_FILENO, std::as_bytes(std::span(line))));
}

void Recorder::write_block_locked() {
  last_flush_ = now();
  if (encoder_.empty()) return;
  std::string block = encoder_.take_block();
  if (broken_) return;
  if (options_.keeps_ring()) {
    ring_.push(std::move(block), last_flush_);
    watch_locked();
    return;
  }
  Status written = open_file_locked();
  if (written) written = write_all(file_.get(), std::as_bytes(std::span(block)));
  if (!written) say_broken_locked(written);
}

// The thread starts with the first block: a process that records nothing needs none, and a forked
// child starts its own.
void Recorder::watch_locked() {
  if (watcher_ != nullptr) return;
  watcher_ = std::make_unique<std::jthread>([this](const std::stop_token& stop) { watch(stop); });
}

void Recorder::watch(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(kLookEvery);
    if (const std::string reason = reason_to_write(); !reason.empty()) ask(reason);
    if (const auto dump = dumps_.next()) write_dump(*dump);
  }
}

// The caller must not hold the mutex, because delivered work is added.
void Recorder::deliver(bool all) {
  std::function<void(bool)> deliver;
  {
    const std::lock_guard lock(mutex_);
    deliver = deliver_;
  }
  if (deliver) deliver(all);
}

std::string Recorder::reason_to_write() {
  bool overdue = false;
  {
    const std::lock_guard lock(mutex_);
    overdue = options_.hang > 0 && hangs_.overdue(now());
  }
  // Work that has ended may be in a buffer that unfinished work keeps open.
  if (overdue) deliver(true);
  const std::lock_guard lock(mutex_);
  std::string reason = std::exchange(reason_, {});
  if (options_.hang > 0) {
    std::string stuck = hangs_.stuck(now());
    if (stuck.empty() && step_ != timeline::kNone && !step_recorded_) {
      stuck = hangs_.stuck_in_step(step_, now() - step_begin_);
    }
    if (!stuck.empty()) reason = std::move(stuck);
  }
  return reason;
}

void Recorder::ask(const std::string& reason) {
  if (now() < quiet_until_) return;
  quiet_until_ = now() + options_.ring;
  const std::string who = options_.rank == timeline::kNone
                              ? "process " + std::to_string(::getpid())
                              : "rank " + std::to_string(options_.rank);
  const Status asked = dumps_.ask(who + ": " + reason);
  if (asked) return;
  const std::lock_guard lock(mutex_);
  if (!broken_) say_broken_locked(asked);
}

void Recorder::write_dump(const DumpFolders::Dump& dump) {
  quiet_until_ = now() + options_.ring;
  const bool hangs = dump.reason.find("hang: ") != std::string::npos;
  deliver(hangs);
  const std::lock_guard lock(mutex_);
  if (!dump.reason.empty()) encoder_.add_note(dump.reason);
  // Unfinished work is only worth a note if it hangs.
  if (hangs) {
    if (step_ != timeline::kNone) {
      encoder_.add_note(fmt::format("in step {} for {:.1f} s", step_.load(),
                                    static_cast<double>(now() - step_begin_) / kNanosPerSecond));
    }
    for (const LaunchedCollective& one : hangs_.collectives()) {
      encoder_.add_collective(one.sequence, one.launched, one.ended, one.name);
    }
  }
  write_block_locked();
  const std::string blocks = ring_.take();
  if (broken_) return;
  Result<Fd> file = new_file_locked(dump.folder);
  Status written = file ? Status() : tl::unexpected(file.error());
  if (written) written = write_all(file->get(), std::as_bytes(std::span(blocks)));
  if (!written) say_broken_locked(written);
}

}  // namespace assay::inject
