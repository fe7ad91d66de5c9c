// Random logs, read by Paddle's own script and by us: the same events.

#include <gmock/gmock.h>

#include <random>

#include "support.h"
#include "timeline/merge.h"

namespace assay::timeline {
namespace {

using test::TempFolder;

class RandomLog {
 public:
  explicit RandomLog(unsigned seed) : random_(seed) {}

  std::string text() {
    std::string log;
    window(log);
    double now = 1.7e12 + pick(1000);
    const std::vector<std::string> firsts{"forward", "forward0", "train", "forward_1", "F"};
    const std::vector<std::string> types{"recv_forward", "forward",    "backward", "send_backward",
                                         "backward_b",   "backward_w", "default",  "lr",
                                         "backward1",    "optimizer2", "Stepper",  "GPU"};
    const std::string& first = firsts[static_cast<std::size_t>(pick(5))];
    const int steps = 1 + pick(4);
    for (int step = 0; step < steps; ++step) {
      int job = 0;
      if (pick(2) == 0) add(log, job++, "default", 0, now);
      for (int micro = 0; micro < 3; ++micro) add(log, job++, first, micro, now);
      for (int more = pick(12); more > 0; --more) {
        const std::string& type = types[static_cast<std::size_t>(pick(12))];
        add(log, job++, type, 1 + pick(3), now);
      }
      add(log, job++, "optimizer", 0, now);
      if (pick(3) == 0) window(log);  // another run of the profiler: only a log's first one counts
      if (pick(3) == 0) now -= 5.0;   // a clock that was set: jobs overlap those before
    }
    return log;
  }

 private:
  void window(std::string& log) {
    log += "I1120 sched.cc:9] Schedule Profiler start at step " + std::to_string(pick(4)) +
           " and end at step 99\n";
  }

  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

  void add(std::string& log, int job, const std::string& type, int micro, double& now) {
    char begin[32];
    char end[32];
    std::snprintf(begin, sizeof begin, "%.6f", now);
    now += 0.001 * (1 + pick(9000));
    std::snprintf(end, sizeof end, "%.6f", now);
    now += 0.001 * pick(500);
    std::string line = test::job_line(job, type, micro, begin, end);
    switch (pick(16)) {
      case 0:  // a line that breaks off, then the whole one on the same line
        line = line.substr(0, line.find("), type")) + line;
        break;
      case 1:  // cut: no job at all
        line = line.substr(0, line.find("micro")) + "\n";
        break;
      case 2:  // another process writes on
        line.back() = ' ';
        line += "step 3, loss 2.5\n";
        break;
      case 3:
        line += "NVIDIA Profiler Process Info: Job\nProfiler Info: Job (x)\n";
        break;
      case 4:  // a terminal's line ends
        line.insert(line.size() - 1, "\r");
        break;
      case 5:  // two records share a line
        line.back() = '|';
        break;
      case 6:  // a named range, as the NVTX hook prints them, is no step
        line += "NVTX range push: attention, time: 1.5\nNVTX range pop, time: 1.6\n";
        break;
      case 7:  // whole milliseconds
        std::snprintf(begin, sizeof begin, "%.0f", now);
        line = test::job_line(job, type, micro, begin, begin);
        break;
      default:
        break;
    }
    log += line;
  }

  std::mt19937 random_;
};

// The end event of a begin event.
std::string ended(std::string event) {
  const std::size_t at = event.find("\"ph\":\"B\"");
  return at == std::string::npos ? event : event.replace(at + 6, 1, "E");
}

TEST(Parity, AgreesWithPaddlesScriptOnRandomLogs) {
  const auto python = test::venv_python("paddle");
  if (python.empty()) GTEST_SKIP() << "no .venv/paddle: Paddle's own script cannot be asked";
  const TempFolder folder;
  constexpr unsigned kFolders = 40;
  std::vector<std::string> argv{
      python.string(), std::string(ASSAY_SOURCE_DIR) + "/tests/timeline/paddle_job_trace.py",
      "0,1"};
  for (unsigned i = 0; i < kFolders; ++i) {
    const auto run = folder / ("run" + std::to_string(i));
    for (unsigned machine = 0; machine < 2; ++machine) {
      const bool multi = i % 2 == 1;
      if (!multi && machine == 1) continue;
      const auto place = multi ? run / ("machine" + std::to_string(machine)) : run;
      for (unsigned device = 0; device < 2; ++device) {
        test::write(place / ("workerlog." + std::to_string(device)),
                    RandomLog(i * 8 + machine * 2 + device).text());
      }
    }
    argv.push_back(run.string());
  }
  const auto ran = test::run_program(argv, folder.path());
  if (ran.code != 0) GTEST_SKIP() << "Paddle's script does not run here: exit code " << ran.code;

  for (unsigned i = 0; i < kFolders; ++i) {
    const auto run = folder / ("run" + std::to_string(i));
    const TempFolder out;
    const auto merged =
        merge_job_logs({.log_dir = run, .devices = {0, 1}, .multi_machine = i % 2 == 1}, {},
                       OutputPaths::in(out.path()));
    ASSERT_TRUE(merged) << merged.error().message;
    for (const char* file : {"pipeline_profile.json", "pipeline_profile_perfetto.json"}) {
      const auto ours = test::event_times(test::read_json(out / file));
      const auto theirs = test::event_times(test::read_json(run / file));
      ASSERT_EQ(ours.size(), theirs.size()) << i << " " << file;
      for (const auto& [event, paddle_times] : theirs) {
        std::vector<double> times = paddle_times;
        // Where a device ends a step before another has ended the one before, the script lets the
        // step begin after its end. Ours is then empty, at its end.
        const auto end = theirs.find(ended(event));
        if (event.find("\"cat\":\"step\"") != std::string::npos && end != theirs.end()) {
          times[0] = std::min(times[0], end->second[0]);
        }
        const auto found = ours.find(event);
        ASSERT_NE(found, ours.end()) << i << " " << event;
        ASSERT_EQ(found->second.size(), times.size()) << i << " " << event;
        for (std::size_t n = 0; n < times.size(); ++n) {
          // The script begins a step at 0 where a log's window opens in the middle of one.
          if (times[n] == 0) continue;
          ASSERT_NEAR(found->second[n], times[n], 0.26) << i << " " << event;
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay::timeline
