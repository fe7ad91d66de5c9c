#include "chain/run/stage_loop.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"
#include "nvml/nvml.h"

namespace assay::chain::run {
namespace {

// Paddle lists devices as `gpu:0`; plugged-in device types are in a list of their own.
constexpr const char* kHasDevice =
    "import sys, paddle.device as d; "
    "seen = d.get_available_device() + (d.get_available_custom_device() or []); "
    "sys.exit(sys.argv[1] not in [name.split(':')[0] for name in seen])";

}  // namespace

bool Availability::says_yes(const std::string& python, const std::string& program,
                            const std::string& about) {
  const auto [entry, fresh] = answers_.try_emplace(python + " " + program + " " + about, false);
  if (!fresh) return entry->second;
  SpawnOptions options;
  options.argv = {python, "-c", program, about};
  // Output of a stand-in interpreter would only confuse the user.
  const auto nowhere = open_for_append("/dev/null");
  if (nowhere) options.fds = {{nowhere->get(), 1}, {nowhere->get(), 2}};
  auto process = Process::spawn(options);
  if (process) {
    constexpr std::chrono::seconds kLongest{60};  // after that the answer is no
    const auto status = process->wait_at_most(kLongest);
    entry->second = status && status->ok();
  }
  return entry->second;
}

std::string Availability::missing(const plan::Stage& stage) {
  const bool other = !stage.needs_device.empty() && stage.needs_device != "gpu" &&
                     stage.needs_device != "cpu" && stage.device != "cpu";
  if (other && !says_yes(stage.argv.front(), kHasDevice, stage.needs_device)) {
    return fmt::format("needs the device {} (Paddle of {} sees none)", stage.needs_device,
                       stage.argv.front());
  }
  const bool many = stage.device.find(',') != std::string::npos && stage.hosts.empty();
  if (!many) return {};
  const std::size_t wanted = split_at(stage.device, ',').size();
  const std::size_t gpus = nvml_gpu_names().size();
  if (gpus == 0 || gpus >= wanted) return {};  // without any GPU the framework itself tells
  return fmt::format("needs {} GPUs (NVML sees {})", wanted, gpus);
}

using stage::StageState;

StageLoop::StageLoop(const plan::Plan& plan, const RunOptions& options, stage::Guard guard,
                     Ledger ledger)
    : plan_(plan),
      options_(options),
      guard_(std::move(guard)),
      ledger_(std::move(ledger)),
      sources_(sources_of(".", plan)) {}

Status StageLoop::begin(Job& job, stage::StageCommand command, bool same_inputs) {
  job.identity = identity_of(*job.stage, command, sources_.state);
  if (options_.resume && same_inputs) {
    ASSAY_TRY(const bool kept, ledger_.keep_earlier(job));
    if (kept) return {};
  }
  if (std::string missing = availability_.missing(*job.stage); !missing.empty()) {
    return ledger_.end_unstarted(job, StageState::unavailable, std::move(missing));
  }
  ASSAY_CHECK(ledger_.begin(job));
  command.guard = &guard_;
  auto run = stage::StageRun::start(command, options_.limits,
                                    [&job](std::string_view line) { job.read(line); });
  if (!run) return ledger_.end(job, {StageState::not_started, run.error().message, {}, 0, 0, {}});
  job.run = std::make_unique<stage::StageRun>(std::move(*run));
  ledger_.progress().started(*job.stage);
  return {};
}

void StageLoop::wait(std::vector<pollfd> fds, stage::StageRun* more) {
  std::vector<stage::StageRun*> runs;
  if (more != nullptr) runs.push_back(more);
  for (const Job& job : jobs_) {
    if (job.run) runs.push_back(job.run.get());
  }
  fds.push_back({interrupts_.fd(), POLLIN, 0});
  stage::Clock::time_point next = stage::Clock::now() + std::chrono::seconds(1);
  for (const stage::StageRun* run : runs) {
    run->add_to(fds);
    next = std::min(next, run->deadline());
  }
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(next - stage::Clock::now()).count();
  ::poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(0, left)));
  while (interrupts_.next() != 0) {
    for (stage::StageRun* run : runs) {
      if (interrupted_) run->kill();  // a second Ctrl-C
      run->stop(StageState::interrupted, "the run was ended");
    }
    interrupted_ = true;
  }
}

Status StageLoop::collect(const Settle& settle, const Ended& ended) {
  std::string running;
  for (Job& job : jobs_) {
    if (!job.run) continue;
    auto outcome = job.run->tick();
    job.look();
    ledger_.heed(job, outcome);
    if (!outcome) {
      running += (running.empty() ? "" : " | ") + job.progress();
      continue;
    }
    job.run.reset();
    const ExitStatus exit = outcome->exit;
    ASSAY_CHECK(ledger_.end(job, settle(job, std::move(*outcome))));
    if (ended) ended(job, exit);
  }
  if (!running.empty()) ledger_.progress().tick(running);
  return ledger_.show(jobs_);
}

Result<RunResult> StageLoop::finish() {
  ASSAY_CHECK(keep_made_files(".", plan_, sources_));
  return ledger_.finish(jobs_, interrupted_, stage::Seconds(stage::Clock::now() - start_).count());
}

}  // namespace assay::chain::run
