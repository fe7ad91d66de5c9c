#include "chain/campaign/campaign.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/interrupts.h"
#include "base/text.h"
#include "chain/campaign/formats.h"
#include "chain/campaign/queue.h"
#include "chain/campaign/remote.h"
#include "chain/fleet/fleet.h"
#include "chain/stage/stage_run.h"

namespace assay::chain::campaign {
namespace {

namespace fs = std::filesystem;
using stage::Clock;
using stage::Seconds;

constexpr double kGrace = 5;  // seconds that a model has to end its stages; chain run gives them 3
constexpr double kToStart = 60;  // seconds until a host must have said something

// A model's folder below the campaign's: its path without "..", and its mode.
fs::path folder_of(const Model& model) {
  fs::path folder = "models";
  for (const fs::path& part : fs::path(model.file).lexically_normal().relative_path()) {
    folder /= part == ".." ? fs::path("up") : part;
  }
  folder.replace_extension();
  return model.mode.empty() ? folder : folder / model.mode;
}

// A model that runs on a seat.
struct Active {
  std::size_t model = 0;
  std::unique_ptr<stage::StageRun> run;
  Fd lifeline;               // its stdin
  Clock::time_point heard;   // of its host
  bool began = false;        // the host has said something
  std::optional<int> ended;  // exit code of the model
  std::vector<StageEnd> stages;
  std::string last_line;
};

class Runner {
 public:
  Runner(const Campaign& campaign, const RunnerOptions& options, stage::Guard guard)
      : campaign_(campaign),
        options_(options),
        guard_(std::move(guard)),
        past_(read_history(options.history)),
        active_(campaign.seats.size()) {}

  Result<Findings> run() {
    ASSAY_TRY(known_, read_known(campaign_.known));
    ASSAY_CHECK(prepare());
    if (options_.started) options_.started();
    while (!queue_->done()) {
      for (std::size_t seat = 0; seat < active_.size(); ++seat) ASSAY_CHECK(fill(seat));
      wait();
      for (std::size_t seat = 0; seat < active_.size(); ++seat) {
        if (active_[seat].run) ASSAY_CHECK(watch(seat));
      }
    }
    return finish();
  }

 private:
  double now() const { return Seconds(Clock::now() - start_).count(); }

  // Makes the queue. Models in quarantine run last.
  Status prepare() {
    std::vector<QueuedModel> queued;
    for (const Model& model : campaign_.models) {
      ends_.emplace_back().key = model.key();
      const Past past = past_[model.key()];
      const bool last = campaign_.quarantine > 0 && past.failed >= campaign_.quarantine;
      queued.push_back({model.group, past.seconds, last});
    }
    std::vector<std::size_t> hosts;
    for (const Seat& seat : campaign_.seats) {
      const auto found = std::ranges::find(hosts_, seat.host);
      hosts.push_back(static_cast<std::size_t>(found - hosts_.begin()));
      if (found == hosts_.end()) hosts_.push_back(seat.host);
    }
    QueuePolicy policy;
    policy.retries = campaign_.retries;
    policy.hold = campaign_.limits.lost + kRemoteGrace;
    queue_.emplace(std::move(queued), hosts, policy);
    host_of_ = std::move(hosts);
    return begin_ends(campaign_.log_dir);
  }

  // Starts a model on an idle seat.
  Status fill(std::size_t seat_number) {
    const auto model_number = queue_->lease(seat_number, now());
    if (!model_number) return {};
    const Seat& seat = campaign_.seats[seat_number];
    const Model& model = campaign_.models[*model_number];
    const fs::path folder = campaign_.log_dir / folder_of(model);
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return fail(fmt::format("cannot create {}: {}", folder.string(), error.message()));
    ends_[*model_number].log = (folder_of(model) / "model.log").string();
    Active& active = active_[seat_number];
    active = {};
    active.model = *model_number;
    active.heard = Clock::now();
    stage::StageCommand command;
    command.log = (folder / "model.log").string();
    command.guard = &guard_;
    const bool here = seat.command.empty();
    command.argv = remote_words(campaign_.limits.lost, model_words(campaign_, model, seat));
    command.argv.insert(command.argv.begin(),
                        here || campaign_.program.empty() ? options_.self : campaign_.program);
    if (!here) {
      ASSAY_TRY(command.argv, fleet::remote_command(seat.command, seat.host, command.argv));
    }
    ASSAY_TRY(FdPair pipe, make_pipe());
    ASSAY_CHECK(set_nonblocking(pipe.second.get()));
    command.input = pipe.first.get();
    active.lifeline = std::move(pipe.second);
    stage::Limits limits;
    limits.stage = Seconds(campaign_.limits.model);
    limits.grace = Seconds(kGrace);
    auto run = stage::StageRun::start(
        command, limits, [&active](std::string_view line) { take_line(active, line); });
    if (!run) return tl::unexpected<Error>(run.error());
    active.run = std::make_unique<stage::StageRun>(std::move(*run));
    return {};
  }

  static void take_line(Active& active, std::string_view line) {
    active.heard = Clock::now();
    const RemoteWord word = read_remote_line(line);
    active.began = active.began || word.is_word;
    if (word.ended) active.ended = word.ended;
    if (word.is_word) return;
    if (auto stages = read_model_line(line)) {
      active.stages = std::move(*stages);
    } else {
      active.last_line = line;
    }
  }

  void wait() {
    std::vector<pollfd> fds{{interrupts_.fd(), POLLIN, 0}};
    Clock::time_point next = Clock::now() + std::chrono::seconds(1);
    for (const Active& active : active_) {
      if (!active.run) continue;
      active.run->add_to(fds);
      next = std::min(next, active.run->deadline());
    }
    double seconds = Seconds(next - Clock::now()).count();
    seconds = std::max(0.0, std::min(seconds, queue_->next_time(now()) - now()));
    ::poll(fds.data(), fds.size(), static_cast<int>(std::ceil(seconds * 1000)));
    while (interrupts_.next() != 0) interrupt();
  }

  void interrupt() {
    queue_->stop();
    for (Active& active : active_) {
      if (!active.run) continue;
      if (interrupted_) active.run->kill();  // a second Ctrl-C
      active.lifeline.reset();               // a run cleans up by itself when its stdin closes
    }
    interrupted_ = interrupted_ ? interrupted_ : Clock::now();
  }

  // Ends a host's run that says nothing, and takes the end of a run.
  Status watch(std::size_t seat_number) {
    Active& active = active_[seat_number];
    if (active.lifeline) (void)!::write(active.lifeline.get(), "\n", 1);
    const double silence = Seconds(Clock::now() - active.heard).count();
    // A job of Slurm may wait for its machine for hours.
    const bool queued = !active.began && campaign_.seats[seat_number].host.starts_with("slurm ");
    const double most = active.began ? campaign_.limits.lost : kToStart + campaign_.limits.lost;
    if (!queued && silence > most) {
      active.run->stop(stage::StageState::silent, fmt::format("heard nothing for {:.0f} s", most));
    }
    if (interrupted_ && Clock::now() - *interrupted_ > Seconds(kRemoteGrace + 1)) {
      active.run->stop(stage::StageState::interrupted, "");
    }
    const auto outcome = active.run->tick();
    if (!outcome) return {};
    active.run.reset();
    return settle(seat_number, *outcome);
  }

  Status settle(std::size_t seat_number, const stage::Outcome& outcome) {
    Active& active = active_[seat_number];
    ModelEnd& end = ends_[active.model];
    end.host = campaign_.seats[seat_number].host;
    end.seconds = outcome.seconds;
    end.stages = std::move(active.stages);
    end.detail = why_of(end.stages, active.last_line);
    const bool timed_out = outcome.state == stage::StageState::timed_out;
    Queue::End how = Queue::End::failed;
    if (interrupted_) {
      how = Queue::End::stopped;
    } else if (!active.ended && !timed_out) {
      how = active.began ? Queue::End::lost : Queue::End::missed;
      const std::string why =
          outcome.state == stage::StageState::silent ? outcome.detail : outcome.exit.describe();
      end.detail = fmt::format("{}: {}{}{}", end.host, why, active.last_line.empty() ? "" : ": ",
                               active.last_line);
      say(fmt::format("{} {}: {}", active.began ? "lost" : "not reached", end.key, end.detail));
    } else if (timed_out) {
      end.state = "timed_out";
      end.detail = outcome.detail;
    } else {
      end.state = state_of(*active.ended);
      how = end.passed() ? Queue::End::passed : Queue::End::failed;
    }
    queue_->end(seat_number, how, now());
    end.tries = queue_->tries(active.model);
    const Queue::State state = queue_->state(active.model);
    if (state == Queue::State::waiting) {
      if (how == Queue::End::failed) say(fmt::format("again  {}: {}", end.key, end.detail));
      end.state = "not_run";
      return tell_given_up(seat_number);
    }
    if (state == Queue::State::lost) end.state = "lost";
    if (end.passed()) end.detail.clear();
    ++ended_;
    say(fmt::format("{} {} {:.1f} s{}{} [{}/{}]", end.state, end.key, end.seconds,
                    end.host.empty() ? "" : " on ", end.host, ended_, ends_.size()));
    return append_end(campaign_.log_dir, end);
  }

  // The first stage that did not pass, or else the last line.
  static std::string why_of(const std::vector<StageEnd>& stages, const std::string& last_line) {
    const auto bad =
        std::ranges::find_if(stages, [](const StageEnd& stage) { return stage.state != "passed"; });
    if (bad == stages.end()) return last_line;
    return fmt::format("{} {}: {}", bad->name, bad->state, bad->detail);
  }

  static std::string state_of(int code) {
    // Exit codes of `assay chain run`.
    return code == 0 ? "passed" : code == 1 ? "failed" : code == 2 ? "refused" : "trouble";
  }

  Status tell_given_up(std::size_t seat_number) {
    const std::size_t host = host_of_[seat_number];
    if (queue_->given_up(host) && !hosts_[host].empty()) {
      say(fmt::format("host {} is given up", std::exchange(hosts_[host], "")));
    }
    return {};
  }

  void say(const std::string& line) const {
    if (options_.show) options_.show(one_line(line) + "\n");
  }

  Result<Findings> finish() {
    Findings findings = judged(std::move(ends_), known_);
    findings.interrupted = interrupted_.has_value();
    const fs::path& folder = campaign_.log_dir;
    const std::string& name = campaign_.name;
    ASSAY_CHECK(write_file(folder / "matrix.txt", matrix_text(findings, true)));
    ASSAY_CHECK(write_file(
        folder / "campaign.json",
        json_report(name, findings).dump(1, ' ', false, nlohmann::json::error_handler_t::replace)));
    ASSAY_CHECK(write_file(folder / "junit.xml", junit(name, findings)));
    ASSAY_CHECK(write_file(folder / "summary.md", markdown(name, findings)));
    ASSAY_TRY(const std::string page, html(name, findings));
    ASSAY_CHECK(write_file(folder / "index.html", page));
    ASSAY_CHECK(write_file(folder / "known.toml", known_text(findings.failures)));
    if (!findings.interrupted) {
      ASSAY_CHECK(write_history(options_.history, std::move(past_), findings.models));
    }
    return findings;
  }

  const Campaign& campaign_;
  const RunnerOptions& options_;
  stage::Guard guard_;
  const Interrupts interrupts_;
  History past_;
  std::vector<Failure> known_;
  std::optional<Queue> queue_;
  std::vector<ModelEnd> ends_;        // by model
  std::vector<Active> active_;        // by seat; never resized: output handlers refer to it
  std::vector<std::string> hosts_;    // "" once its end was told
  std::vector<std::size_t> host_of_;  // by seat
  std::optional<Clock::time_point> interrupted_;
  const Clock::time_point start_ = Clock::now();
  std::size_t ended_ = 0;
};

}  // namespace

std::vector<std::string> model_words(const Campaign& campaign, const Model& model,
                                     const Seat& seat) {
  std::error_code error;
  const fs::path folder = fs::absolute(campaign.log_dir / folder_of(model), error);
  std::vector<std::string> words{"run", model.file};
  if (!model.mode.empty()) words.push_back(model.mode);
  words.insert(words.end(), {"-C", fs::canonical(campaign.directory, error).string(), "--store",
                             (folder / "chain.db").string(), "--output-root", folder.string(),
                             "--resume", "--report-line"});
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {flag, value});
  };
  const auto number = [](double value) {
    return value < 0 ? std::string() : fmt::format("{:g}", value);
  };
  add("--gpus", seat.gpus);
  add("--stage-limit", number(campaign.limits.stage));
  add("--idle-limit", number(campaign.limits.idle));
  words.insert(words.end(), campaign.flags.begin(), campaign.flags.end());
  return words;
}

Result<Findings> run_campaign(const Campaign& campaign, const RunnerOptions& options) {
  std::error_code error;
  fs::create_directories(campaign.log_dir, error);
  if (error) {
    return fail(fmt::format("cannot create {}: {}", campaign.log_dir.string(), error.message()));
  }
  ASSAY_TRY(stage::Guard guard, stage::Guard::start());
  return Runner(campaign, options, std::move(guard)).run();
}

}  // namespace assay::chain::campaign
