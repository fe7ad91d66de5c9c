// The analysis against made schedules, whose bubbles the literature's formulas give.

#include "timeline/analysis/analysis.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <random>

#include "support.h"
#include "timeline/analysis/page.h"
#include "timeline/analysis/pipelines.h"
#include "timeline/analysis/reports.h"
#include "timeline/intervals.h"

namespace assay::timeline {
namespace {

// An independent model of time: one bit a nanosecond.
std::vector<bool> bits(const Intervals& set) {
  std::vector<bool> result(200);
  for (const Interval& interval : set) {
    for (Nanos t = interval.begin; t < interval.end; ++t)
      result[static_cast<std::size_t>(t)] = true;
  }
  return result;
}

TEST(IntervalSets, AgreeWithBits) {
  std::mt19937 random(5);
  const auto any = [&] {
    Intervals set;
    for (unsigned n = random() % 12; n > 0; --n) {
      const Nanos begin = random() % 180;
      set.push_back({begin, begin + static_cast<Nanos>(random() % 20)});
    }
    return set;
  };
  for (int i = 0; i < 500; ++i) {
    const Intervals raw_a = any();
    const Intervals raw_b = any();
    const Intervals a = unite(raw_a);
    const Intervals b = unite(raw_b);
    const std::vector<bool> bits_a = bits(raw_a);
    const std::vector<bool> bits_b = bits(raw_b);
    EXPECT_EQ(bits(a), bits_a);
    EXPECT_EQ(measure(a), std::count(bits_a.begin(), bits_a.end(), true));
    std::vector<bool> both(200);
    std::vector<bool> only_a(200);
    for (std::size_t t = 0; t < 200; ++t) {
      both[t] = bits_a[t] && bits_b[t];
      only_a[t] = bits_a[t] && !bits_b[t];
    }
    EXPECT_EQ(bits(intersect(a, b)), both);
    EXPECT_EQ(bits(subtract(a, b)), only_a);
  }
}

// Runs each stage's list of jobs in order, each job as soon as its input is there: a forward of
// virtual stage v needs v-1's, a backward v+1's, weights need their own backward.
struct Simulation {
  struct Job {
    Pass pass;
    int micro;
    int chunk;
  };
  std::size_t stages;
  int chunks = 1;
  Nanos forward = 1000, backward = 2000, weight = 0;
  std::function<int(std::size_t stage, int chunk, int micro)> virtual_stage =
      [this](std::size_t stage, int chunk, int) {
        return static_cast<int>(stage) + chunk * static_cast<int>(stages);
      };

  std::vector<StageJobs> run(const std::vector<std::vector<Job>>& lists) const {
    std::vector<StageJobs> result(stages);
    std::map<std::tuple<Pass, int, int>, Nanos> done;  // (pass, virtual stage, micro batch)
    const int last = static_cast<int>(stages) * chunks - 1;
    std::vector<std::size_t> next(stages);
    std::vector<Nanos> free(stages);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stages; ++s) {
        while (next[s] < lists[s].size()) {
          const Job& job = lists[s][next[s]];
          const int v = virtual_stage(s, job.chunk, job.micro);
          Nanos ready = 0;
          std::tuple<Pass, int, int> input{job.pass, job.pass == Pass::forward ? v - 1 : v + 1,
                                           job.micro};
          if (job.pass == Pass::weight) input = {Pass::backward, v, job.micro};
          if (job.pass == Pass::backward && v == last) input = {Pass::forward, v, job.micro};
          if (!(job.pass == Pass::forward && v == 0)) {
            if (!done.contains(input)) break;
            ready = done[input];
          }
          const Nanos begin = std::max(ready, free[s]);
          const Nanos took = job.pass == Pass::forward    ? forward
                             : job.pass == Pass::backward ? backward
                                                          : weight;
          free[s] = begin + took;
          done[{job.pass, v, job.micro}] = free[s];
          result[s].push_back({job.pass, job.micro, job.chunk, begin, free[s]});
          ++next[s];
          moved = true;
        }
      }
    }
    for (std::size_t s = 0; s < stages; ++s)
      EXPECT_EQ(next[s], lists[s].size()) << "the schedule hangs";
    return result;
  }
};
using Job = Simulation::Job;

std::vector<std::vector<Job>> gpipe(std::size_t stages, int micros) {
  std::vector<std::vector<Job>> lists(stages);
  for (auto& list : lists) {
    for (int m = 0; m < micros; ++m) list.push_back({Pass::forward, m, 0});
    for (int m = 0; m < micros; ++m) list.push_back({Pass::backward, m, 0});
  }
  return lists;
}

std::vector<std::vector<Job>> one_f_one_b(std::size_t stages, int micros, bool weights = false) {
  std::vector<std::vector<Job>> lists(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    const int warm_up = std::min(micros, static_cast<int>(stages - s) - 1);
    int f = 0;
    int w = 0;
    for (; f < warm_up; ++f) lists[s].push_back({Pass::forward, f, 0});
    for (int b = 0; b < micros; ++b) {
      if (f < micros) lists[s].push_back({Pass::forward, f++, 0});
      lists[s].push_back({Pass::backward, b, 0});
      // ZB-H1 puts off the weights of a stage by its place, to fill the drain.
      if (weights && b >= static_cast<int>(s)) lists[s].push_back({Pass::weight, w++, 0});
    }
    while (weights && w < micros) lists[s].push_back({Pass::weight, w++, 0});
  }
  return lists;
}

struct Shape {
  std::size_t stages;
  int micros;
};

TEST(Schedules, BubblesOfGpipeAnd1F1BAreTheFormula) {
  for (const auto& [stages, micros] : {Shape{2, 4}, Shape{4, 8}, Shape{8, 16}, Shape{4, 3}}) {
    const double formula =
        static_cast<double>(stages - 1) / (micros + static_cast<double>(stages) - 1);
    const Simulation simulation{.stages = stages};
    const Schedule g = recognise_schedule(simulation.run(gpipe(stages, micros)));
    EXPECT_EQ(g.kind, ScheduleKind::gpipe) << stages << " " << micros;
    EXPECT_NEAR(g.ideal_bubble, formula, 1e-9);
    EXPECT_NEAR(g.measured_bubble, formula, 1e-9);
    const Schedule f = recognise_schedule(simulation.run(one_f_one_b(stages, micros)));
    EXPECT_EQ(f.kind, ScheduleKind::one_f_one_b) << stages << " " << micros;
    EXPECT_NEAR(f.ideal_bubble, formula, 1e-9);
    EXPECT_NEAR(f.measured_bubble, formula, 1e-9);
    EXPECT_EQ(f.micro_batches, static_cast<std::size_t>(micros));
  }
}

TEST(Schedules, ZeroBubbleBeats1F1B) {
  const Simulation simulation{.stages = 4, .forward = 1000, .backward = 1000, .weight = 1000};
  const Schedule schedule = recognise_schedule(simulation.run(one_f_one_b(4, 12, true)));
  EXPECT_EQ(schedule.kind, ScheduleKind::zero_bubble);
  // (P-1)(F+B-W) = 3 units beside 12 * 3 of work.
  EXPECT_NEAR(schedule.ideal_bubble, 3.0 / 39.0, 1e-9);
  EXPECT_GE(schedule.measured_bubble, schedule.ideal_bubble - 1e-9);
  EXPECT_LT(schedule.measured_bubble, 6.0 / 42.0);  // 1F1B with the same work
}

// Megatron's interleaved order for P=2, V=2: chunks take turns every P micro batches.
TEST(Schedules, InterleavedIsToldByItsChunks) {
  const Simulation simulation{.stages = 2, .chunks = 2};
  std::vector<std::vector<Job>> lists(2);
  std::vector<Job> forwards;
  std::vector<Job> backwards;
  for (int group = 0; group < 4; group += 2) {
    for (int chunk = 0; chunk < 2; ++chunk) {
      for (int m = group; m < group + 2; ++m) {
        forwards.push_back({Pass::forward, m, chunk});
        backwards.push_back({Pass::backward, m, 1 - chunk});
      }
    }
  }
  for (std::size_t s = 0; s < 2; ++s) {
    std::size_t f = 0;
    for (; f < (s == 0 ? 4U : 2U); ++f) lists[s].push_back(forwards[f]);
    for (const Job& backward : backwards) {
      if (f < forwards.size()) lists[s].push_back(forwards[f++]);
      lists[s].push_back(backward);
    }
  }
  const Schedule schedule = recognise_schedule(simulation.run(lists));
  EXPECT_EQ(schedule.kind, ScheduleKind::interleaved);
  EXPECT_EQ(schedule.chunks, 2U);
  EXPECT_NEAR(schedule.ideal_bubble, 1.0 / (2 * 4 + 1), 1e-9);  // (P-1)/(VM+P-1)
}

TEST(Schedules, DualPipeEntersAtBothEnds) {
  // Micro batches 0..3 go down, 4..7 up: on stage s they run chunk 0 and chunk 1.
  Simulation simulation{.stages = 4};
  simulation.virtual_stage = [](std::size_t stage, int chunk, int) {
    return chunk == 0 ? static_cast<int>(stage) : 3 - static_cast<int>(stage);
  };
  std::vector<std::vector<Job>> lists(4);
  for (std::size_t s = 0; s < 4; ++s) {
    std::vector<Job> down;
    std::vector<Job> up;
    for (int m = 0; m < 4; ++m) {
      down.push_back({Pass::forward, m, 0});
      up.push_back({Pass::forward, m + 4, 1});
    }
    const bool near_top = s < 2;
    for (int m = 0; m < 4; ++m) {
      lists[s].push_back(near_top ? down[static_cast<std::size_t>(m)]
                                  : up[static_cast<std::size_t>(m)]);
      lists[s].push_back(near_top ? up[static_cast<std::size_t>(m)]
                                  : down[static_cast<std::size_t>(m)]);
    }
    for (int m = 0; m < 4; ++m) {
      lists[s].push_back({Pass::backward, near_top ? m + 4 : m, near_top ? 1 : 0});
      lists[s].push_back({Pass::backward, near_top ? m : m + 4, near_top ? 0 : 1});
    }
  }
  EXPECT_EQ(recognise_schedule(simulation.run(lists)).kind, ScheduleKind::dualpipe);
}

TEST(Schedules, ChaosIsNotRecognised) {
  std::vector<StageJobs> stages(2);
  for (StageJobs& jobs : stages) {
    const Pass order[] = {Pass::forward,  Pass::forward, Pass::forward,
                          Pass::backward, Pass::forward, Pass::backward};
    // The second stage runs behind the first: two at once would be copies of one stage.
    Nanos t = &jobs == stages.data() ? 0 : 30;
    for (const Pass pass : order) {
      jobs.push_back({pass, static_cast<int>(t % 3), 0, t, t + 1});
      ++t;
    }
  }
  EXPECT_EQ(recognise_schedule(stages).kind, ScheduleKind::unknown);
}

TEST(Schedules, JobTypesOfPaddle) {
  PipelineJob job;
  EXPECT_TRUE(parse_job_type("forward", job));
  EXPECT_EQ(job.chunk, 0);
  EXPECT_TRUE(parse_job_type("backward_w1", job));
  EXPECT_EQ(job.pass, Pass::weight);
  EXPECT_EQ(job.chunk, 1);
  EXPECT_TRUE(parse_job_type("forward12", job));
  EXPECT_EQ(job.chunk, 12);
  EXPECT_FALSE(parse_job_type("optimizer", job));
  EXPECT_FALSE(parse_job_type("forwarding", job));
}

class Shares : public testing::Test {
 protected:
  void add(std::uint32_t track, Kind kind, Nanos begin, Nanos end, const char* category = "x",
           int micro = kNone) {
    const StringId id = trace_.strings.intern(category);
    trace_.slices.push_back({.begin = begin,
                             .end = end,
                             .name = id,
                             .category = id,
                             .track = track,
                             .micro_batch = micro,
                             .kind = kind});
  }
  void add_track(const char* label, int device, const char* machine = "") {
    Track track;
    track.label = label;
    track.device = device;
    track.machine = machine;
    track.gpu = true;
    trace_.tracks.push_back(track);
  }
  Trace trace_;
};

// Worked by hand: two streams of one GPU, one step of 100 ns.
TEST_F(Shares, OfOneStepWithTwoStreams) {
  add_track("GPU 0 stream 7", 0);
  add_track("GPU 0 stream 13", 0);
  for (Track& track : trace_.tracks) track.process = "python 77";  // as importers of processes do
  trace_.steps = {{5, 0, 100}};
  add(0, Kind::compute, 10, 40);
  add(1, Kind::communication, 30, 60);  // 10 hidden, 20 exposed
  add(1, Kind::memory, 55, 65);         // 5 beside communication, 5 alone
  add(0, Kind::compute, 70, 90);
  add(0, Kind::compute, 95, 120);  // 5 within the step
  trace_.sort();
  const Analysis analysis = analyse(trace_);
  ASSERT_EQ(analysis.devices.size(), 1U);
  EXPECT_EQ(analysis.devices[0].label, "GPU:0");
  const TimeShare& time = analysis.devices[0].steps[0];
  EXPECT_EQ(time.compute, 55);
  EXPECT_EQ(time.communication, 30);
  EXPECT_EQ(time.hidden_communication, 10);
  EXPECT_EQ(time.memory, 5);
  EXPECT_EQ(time.idle, 20);  // 0-10, 65-70, 90-95
  EXPECT_THAT(time.idle_by, testing::ElementsAre(0, 0, 0, 20, 0, 0));
  EXPECT_EQ(time.compute + time.exposed_communication() + time.memory + time.idle, time.span);
}

// Stage 1 waits for stage 0's forward until 10, then 5 more that nobody else explains.
TEST_F(Shares, IdleTimeHasACause) {
  add_track("GPU:0", 0, "a");
  add_track("GPU:1", 1, "b");
  trace_.steps = {{0, 0, 50}};
  add(0, Kind::compute, 0, 10, "forward", 0);
  add(0, Kind::compute, 10, 25, "forward", 1);
  add(1, Kind::compute, 10, 20, "forward", 0);
  add(1, Kind::compute, 30, 40, "forward", 1);
  trace_.sort();
  const Analysis analysis = analyse(trace_);
  EXPECT_THAT(analysis.devices[0].steps[0].idle_by, testing::ElementsAre(0, 15, 0, 10, 0, 0));
  EXPECT_THAT(analysis.devices[1].steps[0].idle_by, testing::ElementsAre(10, 0, 5, 15, 0, 0));
  EXPECT_EQ(analysis.critical_stage, 0U);
  EXPECT_EQ(analysis.slowest_machine, "a");
}

// The optimizers begin when the last backward of the pipeline has ended.
TEST_F(Shares, AnOptimizerWaitsForOtherStages) {
  add_track("GPU:0", 0);
  add_track("GPU:1", 1);
  trace_.steps = {{0, 0, 44}};
  add(0, Kind::compute, 0, 10, "forward", 0);
  add(1, Kind::compute, 10, 20, "forward", 0);
  add(1, Kind::compute, 20, 30, "backward", 0);
  add(0, Kind::compute, 30, 40, "backward", 0);
  add(0, Kind::compute, 42, 44, "optimizer", 0);
  add(1, Kind::compute, 42, 44, "optimizer", 0);
  trace_.sort();
  const Analysis analysis = analyse(trace_);
  EXPECT_THAT(analysis.devices[0].steps[0].idle_by, testing::ElementsAre(0, 0, 20, 2, 0, 0));
  EXPECT_THAT(analysis.devices[1].steps[0].idle_by, testing::ElementsAre(10, 0, 10, 2, 0, 0));
}

TEST(Pipelines, OfAGroupHaveTheOrderOfTheirMicroBatches) {
  const std::vector<std::int32_t> order{2, 0, 1};  // rank of each stage
  std::vector<StageDevice> devices(3);
  for (std::int32_t stage = 0; stage < 3; ++stage) {
    StageDevice& device = devices[static_cast<std::size_t>(order[static_cast<std::size_t>(stage)])];
    device.rank = order[static_cast<std::size_t>(stage)];
    for (std::int32_t batch = 0; batch < 2; ++batch) {
      const Nanos forward = 10 * (stage + batch);
      const Nanos backward = 100 + 20 * (2 - stage + batch);
      device.jobs.push_back({.micro_batch = batch, .begin = forward, .end = forward + 10});
      device.jobs.push_back(
          {.pass = Pass::backward, .micro_batch = batch, .begin = backward, .end = backward + 20});
    }
  }
  const std::vector<std::vector<std::int32_t>> groups{{0, 1, 2}};
  const Pipelines found = find_pipelines(devices, groups, false);
  ASSERT_EQ(found.devices.size(), 1U);
  EXPECT_EQ(found.devices[0], (std::vector<std::size_t>{2, 0, 1}));
}

TEST_F(Shares, ReportsAreWellFormed) {
  add_track("GPU:<0>", 0);
  trace_.steps = {{0, 0, 50}};
  add(0, Kind::compute, 0, 10, "a<b&c", 0);
  const Analysis analysis = analyse(trace_);
  const auto json = nlohmann::json::parse(analysis_json(analysis));
  EXPECT_EQ(json.at("version"), 1);
  EXPECT_EQ(json.at("devices")[0].at("total").at("compute_ns"), 10);
  const std::string html = analysis_html(analysis, trace_);
  EXPECT_THAT(html, testing::HasSubstr("a\\u003cb\\u0026c"));
  EXPECT_THAT(html, testing::Not(testing::HasSubstr("GPU:<0>")));
  // The page holds the answers as data.
  const std::string data = analysis_html(analysis, trace_, "", "\"culprits\": [\"rank 3\"]");
  const std::string mark = "id=\"analysis\">";
  const std::size_t at = data.find(mark) + mark.size();
  const auto held = nlohmann::json::parse(data.substr(at, data.find("</script>", at) - at));
  EXPECT_EQ(held.at("culprits")[0], "rank 3");
  EXPECT_EQ(held.at("devices")[0].at("label"), "GPU:<0>");
  EXPECT_THAT(counters_of(analysis)[0].points,
              testing::ElementsAre(std::pair(0, 20.0), std::pair(50, 0.0)));
}

TEST_F(Shares, AnEmptyTraceSaysSo) {
  EXPECT_THAT(analysis_table(analyse(trace_)), testing::HasSubstr("no GPU work to analyse"));
}

}  // namespace
}  // namespace assay::timeline
