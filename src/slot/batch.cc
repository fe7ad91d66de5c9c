#include "slot/batch.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <numeric>

#include "base/clock.h"
#include "base/text.h"
#include "device/plugin_abi.h"
#include "wire/arena.h"
#include "wire/frame.h"

namespace assay {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::uint64_t kMostMs = std::uint64_t{366} * 24 * 3'600'000;  // a year
// A lane whose socket has closed ends at once; after this time it is killed.
constexpr std::chrono::seconds kExitLimit{2};
constexpr std::chrono::seconds kOpenLimit{2};
// Deaths in one batch without a case to blame: someone kills lanes, or none can start.
constexpr int kUnexplainedLimit = 20;
// Between receiving a batch and starting its first job, a lane runs no user code.
constexpr std::int64_t kStartLimitNs = 60'000 * kMs;
// After the test lane ran out of time alone, the other lanes get this part of the limit. If they
// need more, the case is slow everywhere, and its verdict is known.
constexpr std::uint64_t kHurryPart = 10;
constexpr std::uint64_t kHurryLeastMs = 1000;
// A lane that needs this many times as long as the others hangs.
constexpr std::uint64_t kTimesOfHang = 1000;
// A lane keeps lent results until its next batch, which may come late. From kKeepOpenBytes on the
// slot asks for the memory at once, because cases of other slots wait for it.
constexpr std::int64_t kTakeBackLimitNs = 10'000 * kMs;

// The last line that a lane printed before it ended.
std::string last_line(const std::filesystem::path& log) {
  const auto text = read_file(log);
  const std::vector<std::string> lines = split_at(trimmed(text ? *text : ""), '\n');
  return lines.empty() ? "their log is empty" : lines.back();
}

// Whether this is the reply to the job at this index of the batch.
bool is_answer(const wire::Bytes& bytes, std::size_t index) {
  const auto reply = wire::open<wire::Reply>(bytes);
  return reply && (*reply)->index() == index;
}

std::uint64_t took_ms(const wire::Reply& reply) {
  const auto* stages = reply.nanoseconds();
  if (stages == nullptr) return 0;
  return std::accumulate(stages->begin(), stages->end(), std::uint64_t{0}) / kMs;
}

std::uint64_t lent_bytes(const wire::Reply& reply) {
  std::uint64_t sum = 0;
  for (const auto* leaves : {reply.outputs(), reply.gradients()}) {
    if (leaves == nullptr) continue;
    for (const wire::Leaf* leaf : *leaves) sum += leaf->lent() ? leaf->bytes() : 0;
  }
  return sum;
}

// The stage that the lane reports; the first one if a case has overwritten it.
std::size_t stage_of(const Lane& lane) {
  const std::size_t stage = lane.arena()->header().stage.load(std::memory_order_relaxed);
  return stage < wire::kStagesOfLane ? stage : 0;
}

// Whether the lane has answered an empty batch.
bool has_let_go(Lane& lane) {
  const std::int64_t give_up_ns = monotonic_ns() + kTakeBackLimitNs;
  while (true) {
    const auto frame = lane.reader().next();
    if (!frame) return false;
    if (*frame) return is_answer(**frame, 0);
    const std::int64_t left_ms = (give_up_ns - monotonic_ns()) / kMs;
    pollfd wait{lane.socket(), POLLIN, 0};
    if (left_ms <= 0) return false;
    if (::poll(&wait, 1, static_cast<int>(left_ms)) < 0 && errno != EINTR) return false;
    const auto open = lane.reader().feed(lane.socket());
    if (!open || !*open) return false;
  }
}

// A lane that only cannot differentiate still has results.
bool cannot_run(const wire::Reply& reply) {
  switch (reply.status()) {
    case wire::Status::no_kernel:
    case wire::Status::unsupported:
    case wire::Status::skipped:
    case wire::Status::refused:
      return reply.phase() == nullptr || reply.phase()->string_view() != "backward";
    default:
      return false;
  }
}

}  // namespace

bool is_unable(const LaneResult& ending) {
  if (ending.reply == nullptr || !cannot_run(*ending.reply)) return false;
  const auto* again = ending.reply->again();
  return again == nullptr || std::all_of(again->begin(), again->end(),
                                         [](const wire::Reply* run) { return cannot_run(*run); });
}

BatchRun::BatchRun(const SlotConfig& config, std::span<LaneSeat> seats,
                   const std::vector<wire::JobT>& jobs, OnJob on_job)
    : config_(config),
      seats_(seats),
      jobs_(jobs),
      on_job_(std::move(on_job)),
      states_(seats.size()),
      endings_(jobs.size()),
      hurries_(jobs.size()) {
  for (auto& of_job : endings_) of_job.resize(seats.size());
  for (const wire::JobT& job : jobs) {
    waits_.push_back(job.attempt.start != wire::Start::together && seats.size() > 1);
  }
}

Status BatchRun::run() {
  for (std::size_t seat = 0; seat < seats_.size(); ++seat) ASSAY_CHECK(start(seat));
  ASSAY_CHECK(serve());
  // Then the jobs for which the other seats waited. They come last, because a new batch overwrites
  // the results of the one before.
  for (std::size_t seat = 1; seat < seats_.size(); ++seat) ASSAY_CHECK(start(seat));
  ASSAY_CHECK(serve());
  take_back();
  return {};
}

// Sends an empty batch to lanes that lend much. A lane that does not answer is dropped without
// blame: all its results are compared.
void BatchRun::take_back() {
  std::vector<std::size_t> asked;
  for (std::size_t seat = 0; seat < seats_.size(); ++seat) {
    if (states_[seat].lent_bytes < kKeepOpenBytes || !seats_[seat].lane) continue;
    send_batch(seat, {});
    asked.push_back(seat);
  }
  for (const std::size_t seat : asked) {
    LaneSeat& at = seats_[seat];
    if (has_let_go(*at.lane)) continue;
    if (at.shared) at.shared->close_all();
    at.lane.reset();
  }
}

Status BatchRun::serve() {
  std::vector<pollfd> waits(seats_.size());
  while (std::any_of(states_.begin(), states_.end(), [](const SeatState& s) { return s.busy(); })) {
    for (std::size_t seat = 0; seat < seats_.size(); ++seat) {
      const bool wanted = states_[seat].busy();
      waits[seat] = {wanted ? seats_[seat].lane->socket() : -1, POLLIN, 0};
    }
    const int got = ::poll(waits.data(), waits.size(), poll_timeout_ms());
    if (got < 0 && errno != EINTR) return errno_error("poll");
    for (std::size_t seat = 0; got > 0 && seat < seats_.size(); ++seat) {
      if (waits[seat].revents != 0) ASSAY_CHECK(collect(seat));
    }
    ASSAY_CHECK(end_overdue());
    ASSAY_CHECK(end_long_wait());
  }
  return {};
}

Status BatchRun::give_up(std::string why) {
  gave_up_ = true;
  return fail(std::move(why));
}

// Gives the seat's lane, or a new one, all jobs that have not ended there.
Status BatchRun::start(std::size_t seat) {
  SeatState& state = states_[seat];
  const std::uint64_t lane_number = state.lane_number + 1;
  const bool careful = state.careful;
  state = {};
  state.lane_number = lane_number;
  state.careful = careful;
  for (std::size_t job = 0; job < jobs_.size(); ++job) {
    const bool waits = seat > 0 && waits_[job];
    if (!waits && !endings_[job][seat].done()) state.sent.push_back(job);
  }
  if (state.sent.empty()) return {};
  LaneSeat& at = seats_[seat];
  if (!at.lane) {
    auto spawned = at.source.spawn(at.arena, at.outside_mps || state.careful);
    if (!spawned) return give_up(spawned.error().message);
    at.lane = std::move(*spawned);
    at.arena = at.lane->arena();
    // If the kernel forbids it or the core is gone, the lane runs on any core.
    if (at.core) (void)at.lane->stay_on(*at.core);
    // Otherwise the lane would copy its first large results, which needs as much memory again.
    if (jobs_.front().test_case.bytes >= kKeepOpenBytes && !at.on_gpu())
      at.lane->wait_until_open(kOpenLimit);
  }
  // Lent results die with their lane, so the lane runs nothing else until they are compared.
  state.lends = jobs_.size() == 1 && jobs_.front().trial.perturbations == 0 &&
                (at.on_gpu() || at.lane->can_lend());
  state.since_ns = state.sent_ns = monotonic_ns();
  at.lane->count_cases(state.sent.size());
  send_batch(seat, state.sent);
  return {};
}

void BatchRun::send_batch(std::size_t seat, const std::vector<std::size_t>& jobs) {
  const SeatState& state = states_[seat];
  LaneSeat& at = seats_[seat];
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::Job>> sent;
  sent.reserve(jobs.size());
  for (const std::size_t job : jobs) sent.push_back(wire::pack(builder, jobs_[job]));
  const auto settings = wire::CaseSettings::Pack(builder, &config_.settings);
  const auto spec = wire::LaneSpec::Pack(builder, &at.spec);
  const auto vector = builder.CreateVector(sent);
  builder.Finish(wire::CreateBatch(builder, wire::kMessageVersion, settings, spec, state.lends,
                                   vector, state.careful, seats_.size() == 1));
  // A dead lane shows as end-of-file in collect().
  (void)at.lane->send(wire::bytes_of(builder));
}

Status BatchRun::collect(std::size_t seat) {
  Lane& lane = *seats_[seat].lane;
  const std::uint64_t lane_number = states_[seat].lane_number;
  auto open = lane.reader().feed(lane.socket());
  // Bytes behind the last answer wait for the next batch: results may still be lent.
  while (states_[seat].busy()) {
    auto frame = lane.reader().next();
    if (frame && !*frame) break;
    if (!frame || !is_answer(**frame, states_[seat].answered)) {
      return lost(seat, Loss::invalid_message);
    }
    ASSAY_CHECK(take(seat, std::move(**frame)));
    // The job runs again in a new lane; the end of this one no longer matters.
    if (states_[seat].lane_number != lane_number) return {};
  }
  if (open && *open) return {};
  return states_[seat].busy() ? lost(seat, Loss::ended) : Status();
}

Status BatchRun::take(std::size_t seat, wire::Bytes bytes) {
  SeatState& state = states_[seat];
  const std::size_t job = state.sent[state.answered++];
  if (state.busy() && (!state.at_hand || *state.at_hand < state.answered)) {
    state.at_hand =
        state.answered;  // the lane has answered the job before it, whatever its header says
    state.since_ns = monotonic_ns();
  }
  LaneResult& ending = endings_[job][seat];
  ending.bytes = std::move(bytes);
  ending.reply = flatbuffers::GetRoot<wire::Reply>(ending.bytes.data());
  ending.arena = seats_[seat].lane->arena();
  if (state.lends) {
    ending.lender = &*seats_[seat].lane;
    ending.shared = seats_[seat].shared.get();
    state.lent_bytes = lent_bytes(*ending.reply);
  }
  return finish_job(job);
}

// The seat's lane has died. Or it is killed now, because its time is up or its message is invalid.
// The running job is blamed; the successor gets the jobs without an answer.
Status BatchRun::lost(std::size_t seat, Loss how) {
  SeatState& state = states_[seat];
  LaneSeat& at = seats_[seat];
  const std::uint64_t lane_number = state.lane_number;
  if (how != Loss::ended) at.lane->kill();
  std::optional<LaneExit> exit;
  if (how == Loss::ended && at.lane->says_end_of_device()) {
    exit.emplace().code = kDeviceFaultExit;
  } else {
    ASSAY_TRY(exit, at.source.wait_exit(*at.lane, kExitLimit));
  }
  look_at_lane(seat);
  const auto ran_ns = static_cast<std::uint64_t>(monotonic_ns() - state.since_ns);
  const std::size_t stage = stage_of(*at.lane);
  const std::optional<std::size_t> blamed = to_blame(seat, how, exit);
  if (!blamed && ++unexplained_ > kUnexplainedLimit) {
    return give_up(fmt::format("lanes of {} keep ending before they run a case: {} ({})",
                               at.spec.label, last_line(at.source.log()),
                               at.source.log().string()));
  }
  state.careful = state.careful || (at.on_gpu() && !blamed);
  if (at.shared) at.shared->close_all();
  at.lane.reset();
  at.arena.reset();  // earlier answers point into it
  if (blamed) {
    LaneResult& ending = endings_[*blamed][seat];
    ending.blame = how == Loss::timed_out ? wire::Status::timed_out : wire::Status::crashed;
    ending.ran_ns[stage] = ran_ns;
    if (how == Loss::timed_out && jobs_[*blamed].trial.perturbations > 0) {
      ending.reason = "while the truth was computed";
    } else if (how == Loss::invalid_message) {
      ending.reason = "its answer is damaged";
    } else if (exit) {
      ending.exit = *exit;
      if (exit->code == kDeviceFaultExit)
        ending.reason = "its GPU reported a fault; the lane's log says which";
    }
    ASSAY_CHECK(finish_job(*blamed));
    if (state.lane_number != lane_number) return {};  // the job runs again already
    ASSAY_CHECK(skip_other_values(seat, *blamed));
    if (state.lane_number != lane_number) return {};
  }
  return start(seat);
}

// Skips the later trials of a case that killed its lane or hung. Earlier ones had ended: those
// whose replies were lost run again.
Status BatchRun::skip_other_values(std::size_t seat, std::size_t blamed) {
  for (std::size_t job = blamed + 1; job < jobs_.size(); ++job) {
    if (jobs_[job].test_case.id != jobs_[blamed].test_case.id || endings_[job][seat].done())
      continue;
    endings_[job][seat].blame = wire::Status::skipped;
    ASSAY_CHECK(finish_job(job));
  }
  return {};
}

// The job to blame for a lane's end. Jobs before the running one had ended, but their replies were
// lost; they run again without blame. So does everything if the fork server took the lane with it.
// A GPU fault is blamed only in a lane that does not share its MPS.
std::optional<std::size_t> BatchRun::to_blame(std::size_t seat, Loss how,
                                              const std::optional<LaneExit>& exit) const {
  const SeatState& state = states_[seat];
  if (how == Loss::invalid_message) return state.sent[state.answered];
  if (how == Loss::timed_out) {
    const std::size_t at_hand = std::max(state.at_hand.value_or(0), state.answered);
    // The GPU may be at any job without an answer.
    const bool unsure = seats_[seat].on_gpu() && !state.careful;
    if (unsure && (!state.at_hand || at_hand > state.answered)) return std::nullopt;
    return state.sent[at_hand];
  }
  const bool outside_mps = seats_[seat].outside_mps || state.careful;
  if (exit && exit->code == kDeviceFaultExit && !outside_mps) return std::nullopt;
  const wire::ArenaHeader& header = seats_[seat].lane->arena()->header();
  const std::uint32_t running = header.running.load(std::memory_order_acquire);
  if (!exit) return std::nullopt;
  if (running < state.sent.size() && running >= state.answered) return state.sent[running];
  // A lane is idle after its last reply. If that is missing, a case has prevented it.
  const bool started = header.started_ns.load(std::memory_order_relaxed) >= state.sent_ns;
  const bool silent = running == wire::kIdle && started && exit->code != kDeviceFaultExit;
  return silent ? std::optional(state.sent[state.answered]) : std::nullopt;
}

// The test lane has run the first trial of a case, which decides for the others. A kernel that is
// missing is missing under all values; after a crash or a hang no other trial runs. A case that ran
// out of memory has its verdict, or runs again.
void BatchRun::end_wait(std::size_t job) {
  const LaneResult& first = endings_[job].front();
  const bool starved =
      first.reply != nullptr && first.reply->status() == wire::Status::out_of_memory;
  const bool unable = is_unable(first) || starved;
  for (std::size_t other = job; other < jobs_.size(); ++other) {
    if (jobs_[other].test_case.id != jobs_[job].test_case.id) continue;
    waits_[other] = false;
    const bool useless = unable || (other != job && first.blame.has_value());
    for (std::size_t seat = 1; useless && seat < seats_.size(); ++seat) {
      endings_[other][seat].blame = wire::Status::skipped;
      endings_[other][seat].reason =
          fmt::format("not asked: the {} lane {}", seats_.front().spec.label,
                      starved ? "has too little memory" : "cannot run this");
    }
  }
  hurries_[job] = first.blame == wire::Status::timed_out;
}

Status BatchRun::finish_job(std::size_t job) {
  if (waits_[job]) end_wait(job);
  std::vector<LaneResult>& endings = endings_[job];
  for (const LaneResult& ending : endings) {
    if (!ending.done()) return {};
  }
  Status status = on_job_(job, endings);
  for (const LaneResult& ending : endings) {
    if (ending.shared != nullptr) ending.shared->close_large();
  }
  if (!status && std::any_of(endings.begin(), endings.end(), [](const LaneResult& ending) {
        return ending.lender != nullptr && !ending.lender->alive();
      })) {
    return run_again(job);
  }
  for (LaneResult& ending : endings) {
    ending.bytes = {};
    ending.arena.reset();
  }
  return status;
}

// A lane was killed from outside while the slot read its results.
Status BatchRun::run_again(std::size_t job) {
  if (++unexplained_ > kUnexplainedLimit) return give_up("lanes keep dying while they are idle");
  for (std::size_t seat = 0; seat < seats_.size(); ++seat) {
    endings_[job][seat] = {};
    if (seats_[seat].shared) seats_[seat].shared->close_all();
    seats_[seat].lane.reset();
    ASSAY_CHECK(start(seat));
  }
  return {};
}

// The start of a running job moves while its lane compiles. One that lies further ahead is a lie.
void BatchRun::look_at_lane(std::size_t seat) {
  SeatState& state = states_[seat];
  const wire::ArenaHeader& header = seats_[seat].lane->arena()->header();
  const std::uint32_t running = header.running.load(std::memory_order_acquire);
  if (running >= state.sent.size() || (state.at_hand && running < *state.at_hand)) return;
  const std::int64_t now = monotonic_ns();
  const std::int64_t started = header.started_ns.load(std::memory_order_relaxed);
  if (state.at_hand == running && started > now + wire::kMostCompileNs) return;
  state.at_hand = running;
  state.since_ns = std::clamp(started, std::min(state.since_ns, now), now);
}

// After this time the lane of this seat hangs, as far as other lanes have finished the job; nullopt
// if they tell nothing. A compiled call says nothing about the time of an eager one, and the first
// job of a lane on a GPU includes the creation of its context.
std::optional<std::uint64_t> BatchRun::hang_ms(std::size_t seat, std::size_t job) const {
  const LaneSeat& at = seats_[seat];
  const bool is_first =
      states_[seat].answered == 0 && at.lane->cases_run() == states_[seat].sent.size();
  const std::uint64_t from_ms = jobs_[job].attempt.hang_from_ms;
  if (from_ms == 0 || (at.on_gpu() && is_first)) return std::nullopt;
  std::optional<std::uint64_t> limit_ms;
  for (std::size_t other = 0; other < seats_.size(); ++other) {
    const wire::Reply* reply = endings_[job][other].reply;
    if (reply == nullptr || reply->status() != wire::Status::ok) continue;
    if (seats_[other].spec.execution != at.spec.execution) return std::nullopt;
    const std::uint64_t times = std::min(took_ms(*reply), kMostMs / kTimesOfHang) * kTimesOfHang;
    limit_ms = std::max({limit_ms.value_or(0), from_ms, times});
  }
  return limit_ms;
}

std::int64_t BatchRun::deadline_ns(std::size_t seat) {
  SeatState& state = states_[seat];
  if (!state.busy()) return std::numeric_limits<std::int64_t>::max();
  look_at_lane(seat);
  if (!state.at_hand) return state.since_ns + kStartLimitNs;
  const std::size_t index = state.sent[*state.at_hand];
  const wire::JobT& job = jobs_[index];
  const std::uint64_t perturbations = job.trial.perturbations;
  const std::uint64_t times = perturbations == 0 ? 1 : 2 * perturbations;
  std::uint64_t limit_ms = std::min(job.attempt.limit_ms, hang_ms(seat, index).value_or(kMostMs));
  limit_ms = std::min(std::min(limit_ms, kMostMs) * times, kMostMs);
  if (seat > 0 && hurries_[index]) {
    limit_ms = std::min(limit_ms, std::max(limit_ms / kHurryPart, kHurryLeastMs));
  }
  return state.since_ns + static_cast<std::int64_t>(limit_ms) * kMs;
}

int BatchRun::poll_timeout_ms() {
  std::int64_t next = std::numeric_limits<std::int64_t>::max();
  for (std::size_t seat = 0; seat < seats_.size(); ++seat) next = std::min(next, deadline_ns(seat));
  const std::int64_t left_ms = (next - monotonic_ns()) / kMs + 1;
  return static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, 1000));
}

Status BatchRun::end_overdue() {
  for (std::size_t seat = 0; seat < seats_.size(); ++seat) {
    if (states_[seat].busy() && monotonic_ns() > deadline_ns(seat)) {
      ASSAY_CHECK(collect(seat));  // an answer may have come meanwhile
      if (states_[seat].busy() && monotonic_ns() > deadline_ns(seat)) {
        ASSAY_CHECK(lost(seat, Loss::timed_out));
      }
    }
  }
  return {};
}

// The first lane has worked for long on a case for which the others wait. They begin, to tell
// whether it hangs. Their new batch overwrites results: jobs that are not compared run again.
Status BatchRun::end_long_wait() {
  const SeatState& first = states_.front();
  if (!first.busy() || !first.at_hand) return {};
  const std::size_t job = first.sent[*first.at_hand];
  const wire::AttemptT& attempt = jobs_[job].attempt;
  const auto from_ns = static_cast<std::int64_t>(attempt.hang_from_ms) * kMs;
  if (!waits_[job] || from_ns == 0 || monotonic_ns() - first.since_ns < from_ns) return {};
  if (attempt.memory != wire::MemoryNeed::estimated) return {};
  if (std::any_of(states_.begin() + 1, states_.end(), [](const SeatState& s) { return s.busy(); }))
    return {};
  for (std::size_t other = job; other < jobs_.size(); ++other) {
    if (jobs_[other].test_case.id == jobs_[job].test_case.id) waits_[other] = false;
  }
  for (std::size_t seat = 1; seat < seats_.size(); ++seat) {
    for (auto& endings : endings_) {
      if (!endings[seat].bytes.empty()) endings[seat] = {};
    }
    ASSAY_CHECK(start(seat));
  }
  return {};
}

}  // namespace assay
