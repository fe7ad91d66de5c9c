// The figures of the engine as a whole, each beside what it is compared to. Run on an idle machine:
//   engine_bench [FIGURE…]     without a figure: all of them
// Figures that need real frameworks or ../shared say so and are left out where those are absent.

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>

#include "base/atomic_file.h"
#include "case/corpus.h"
#include "cli.h"
#include "lane/fork_server.h"
#include "lane/lane.h"
#include "schedule/cost.h"
#include "wire/job.h"

namespace assay {
namespace {

using testing::Cli;
using Clock = std::chrono::steady_clock;

constexpr double kEngineV2Seconds = 406;  // of sample_core, shared/corpora/README.md

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

std::string shared(const std::string& file) {
  const char* folder = std::getenv("ASSAY_SHARED");
  return (folder != nullptr ? std::string(folder) : std::string(ASSAY_SOURCE_DIR) + "/../shared") +
         "/corpora/" + file;
}

// CPU seconds of all that this program has started and that has ended. It adopts what its children
// leave behind, so that lanes count which their fork server did not live to reap.
double cpu_seconds_of_children() {
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// `assay api` with the real frameworks.
std::vector<std::string> real(const Cli& cli, std::vector<std::string> more) {
  std::vector<std::string> arguments{"api", "--test_cpu=True", "--quiet=True",
                                     "--settings=real.toml", "--log_dir=" + cli.run().string()};
  (void)write_file(cli.folder() / "real.toml", "version = 1\n");
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// Whether no tensor of the case, nor one that a list in it may be the shape of, is larger than
// that.
bool is_small(const Case& parsed, std::uint64_t elements) {
  for (const Argument& argument : parsed.arguments()) {
    if (!argument.value.is(ValueKind::list) && !argument.value.is(ValueKind::tuple)) continue;
    double product = 1;
    for (const Value extent : argument.value.children()) {
      if (extent.is(ValueKind::integer)) product *= static_cast<double>(extent.integer());
    }
    if (product > static_cast<double>(elements)) return false;
  }
  return estimate_cost(parsed).elements <= elements;
}

// Every `step`-th small case of the public corpora.
std::vector<std::string> small_cases(const Cli& cli, std::uint64_t elements, std::size_t step) {
  const std::filesystem::path unpacked = cli.folder() / "corpora.txt";
  {
    const auto out = open_for_append(unpacked);
    SpawnOptions options;
    options.argv = {"xz", "-dc", shared("paddle_api_configs.txt.xz")};
    options.fds = {{out->get(), 1}};
    auto xz = Process::spawn(options);
    if (!xz || !xz->wait()) return {};
  }
  std::vector<std::string> lines;
  auto reader = CorpusReader::open(unpacked);
  CorpusLine line;
  Case scratch;
  std::size_t seen = 0;
  while (reader && reader->next(line).value_or(false)) {
    if (parse_case(line.text, scratch) && is_small(scratch, elements) && seen++ % step == 0) {
      lines.emplace_back(line.text);
    }
  }
  return lines;
}

// What each stage took in each lane; gives what was spent inside the framework.
double print_stages(const nlohmann::json& report) {
  double calls = 0;
  for (const auto& [lane, stages] : report["seconds"].items()) {
    for (const auto& [stage, seconds] : stages.items()) {
      fmt::print("  {:>7} {:<9} {:6.2f} s\n", lane, stage, seconds.get<double>());
      if (stage == "forward" || stage == "backward") calls += seconds.get<double>();
    }
  }
  return calls;
}

void empty_lanes_once(const char* how, std::vector<std::string> more) {
  Cli cli;
  constexpr int kMany = 20'000;
  std::vector<std::string> lines;
  for (int i = 0; i < kMany; ++i)
    lines.push_back(fmt::format("paddle.fake.echo(Tensor([1], \"float32\"), {})", i));
  const std::string one = cli.write_cases({lines.front()}, "one.txt");
  const std::string all = cli.write_cases(lines);
  auto began = Clock::now();
  cli.call({"api", "--test_cpu=True", "--quiet=True", "--num_workers_per_gpu=1", "--log_dir=warm",
            "--api_config_file=" + one});
  const double start = seconds_since(began);
  began = Clock::now();
  more.insert(more.end(), {"--quiet=True", "--num_workers_per_gpu=1", "--api_config_file=" + all});
  cli.call_api(more);
  const double wall = seconds_since(began);
  const auto report = cli.report();
  fmt::print(
      "empty lanes, {}: {:.1f} µs of engine per case ({} cases, {} pass, {:.2f} s, start-up {:.2f} "
      "s; aim ≤ 50)\n",
      how, (wall - start) / kMany * 1e6, kMany, report["outcomes"]["pass"].get<int>(), wall, start);
  print_stages(report);
}

// What engineV2 does: its values, its tolerance.
std::vector<std::string> like_v2() { return {"--values=usual", "--tolerance=engineV2"}; }

void empty_lanes() {
  empty_lanes_once("as engineV2 does it", like_v2());
  empty_lanes_once("under all values", {});
}

// How fast memory is that nobody has touched yet. A virtual machine may have to fetch it from its
// host first: then large cases cost what the host needs, and more in a first run than in a second.
void first_touch() {
  constexpr std::size_t kBytes = std::size_t{1} << 31;
  constexpr std::size_t kHugePage = std::size_t{1} << 21;
  for (const char* const which : {"first", "second"}) {
    void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    (void)::madvise(memory, kBytes, MADV_HUGEPAGE);
    const auto began = Clock::now();
    for (std::size_t at = 0; at < kBytes; at += kHugePage) static_cast<char*>(memory)[at] = 1;
    fmt::print("{} touch of fresh memory: {:.1f} GB/s\n", which,
               static_cast<double>(kBytes) / seconds_since(began) / 1e9);
    ::munmap(memory, kBytes);
  }
}

void sample_core_once(const char* how, std::vector<std::string> more) {
  Cli cli;
  const double cpu_before = cpu_seconds_of_children();
  const auto began = Clock::now();
  more.insert(more.end(),
              {"--num_workers_per_gpu=2", "--api_config_file=" + shared("sample_core.txt")});
  cli.call(real(cli, more));
  const double wall = seconds_since(began);
  const double cpu = cpu_seconds_of_children() - cpu_before;
  const auto report = cli.report();
  fmt::print(
      "sample_core, {}, 2 slots: {:.1f} s with start-up, {:.0f} times engineV2's {} s (aim: ≥ 80, "
      "on a slow host 50 times what it takes there); {} cases: {}\n",
      how, wall, kEngineV2Seconds / wall, kEngineV2Seconds, report["cases"].get<int>(),
      report["outcomes"].dump());
  const double calls = print_stages(report);
  fmt::print(
      "  inside framework calls (forward, backward): {:.0f}% of {:.1f} s of CPU, start-up included "
      "(aim 70)\n",
      100 * calls / cpu, cpu);
}

void sample_core() {
  ::setenv("ASSAY_STAGE_CLOCK", "cpu", 1);  // see src/native/stage_clock.h
  for (int round = 0; round < 3; ++round) sample_core_once("as engineV2 does it", like_v2());
  sample_core_once("under all values", {});
  ::unsetenv("ASSAY_STAGE_CLOCK");
}

void small() {
  Cli cli;
  const auto lines = small_cases(cli, 20'000, 5);
  const std::string one = cli.write_cases({lines.front()}, "one.txt");
  const std::string all = cli.write_cases(lines);
  auto arguments = real(cli, {"--num_workers_per_gpu=2", "--api_config_file=" + one});
  arguments[4] = "--log_dir=warm";
  auto began = Clock::now();
  cli.call(arguments);
  const double start = seconds_since(began);
  began = Clock::now();
  std::vector<std::string> more = like_v2();
  more.insert(more.end(), {"--num_workers_per_gpu=2", "--api_config_file=" + all});
  cli.call(real(cli, more));
  const double wall = seconds_since(began);
  fmt::print(
      "cases of ≤ 20,000 elements, 2 slots: {:.0f} cases/s without start-up ({} cases in {:.2f} s, "
      "start-up {:.2f} s; aim ≥ 5,000 on a fast host, 2,500 on a slow one)\n",
      static_cast<double>(lines.size()) / std::max(0.01, wall - start), lines.size(), wall, start);
}

void storm() {
  Cli cli;
  std::vector<std::string> lines;
  for (int i = 1; i <= 1000; ++i) {
    lines.push_back(fmt::format("paddle.pdist(Tensor([0, {}], \"float32\"), 2.0)", i));
    lines.push_back(fmt::format("paddle.abs(Tensor([{}], \"float32\"))", i));
  }
  const std::string cases = cli.write_cases(lines);
  const auto began = Clock::now();
  cli.call(real(cli, {"--num_workers_per_gpu=2", "--api_config_file=" + cases}));
  const double wall = seconds_since(began);
  const auto outcomes = cli.report()["outcomes"];
  fmt::print(
      "a storm of 1,000 crashing cases among 1,000 good ones: {:.1f} s, {} crash, {} pass (aim ≤ "
      "60 s)\n",
      wall, outcomes["crash"].get<int>(), outcomes["pass"].get<int>());
}

// A case that sleeps for long among many that sleep for a moment: how long after it the run ends.
void longest() {
  constexpr double kLong = 6;
  constexpr double kShort = 0.02;
  constexpr int kMany = 800;
  constexpr int kSlots = 4;
  Cli cli;
  const auto took = [&](const std::string& name, const std::vector<std::string>& lines,
                        const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"api",
                                       "--test_cpu=True",
                                       "--quiet=True",
                                       fmt::format("--num_workers_per_gpu={}", kSlots),
                                       "--api_config_file=" + cli.write_cases(lines, name + ".txt"),
                                       "--log_dir=" + name};
    for (const auto& each : {like_v2(), more}) {
      arguments.insert(arguments.end(), each.begin(), each.end());
    }
    const auto began = Clock::now();
    const auto done = cli.call(arguments);
    if (!done.status.ok()) fmt::print("longest: {}\n", done.output);
    return seconds_since(began);
  };
  std::vector<std::string> all;
  for (int i = 1; i <= kMany; ++i) {
    all.push_back(fmt::format("paddle.fake.slow(Tensor([{}], \"float32\"), {})", i, kShort));
  }
  const double start = took("start", {all.front()}, {}) - kShort;
  all.insert(all.begin() + kMany / 2,
             fmt::format("paddle.fake.slow(Tensor([1000000], \"float32\"), {})", kLong));
  const double rest = kMany * kShort;
  const std::pair<std::string, std::vector<std::string>> unknown{"nothing known", {}};
  const std::pair<std::string, std::vector<std::string>> known{"times known",
                                                               {"--costs-from=" + unknown.first}};
  for (const auto& [what, more] : {unknown, known}) {
    const double after = took(what, all, more) - start - kLong;
    fmt::print(
        "a case of {} s among {} s of others, {} slots, {}: the run ends {:.2f} s after it would "
        "alone, {:.1f}% of the others (aim ≤ 5%)\n",
        kLong, rest, kSlots, what, after, 100 * after / rest);
  }
}

// From the death of a lane to its successor having answered.
void lane_back() {
  Cli cli;
  // Beside the assay program, not beside this one.
  const std::filesystem::path root = ASSAY_SOURCE_DIR;
  const LanePackage package{root / "python", std::filesystem::path(ASSAY_LIBRARY_DIR)};
  const std::string python = std::string(ASSAY_SOURCE_DIR) + "/.venv/paddle/bin/python";
  const FrameworkConfig config{"paddle", python, {}, {}};
  auto server = ForkServer::start(config, package, cli.folder() / "server.log");
  if (!server || !server->wait_ready(std::chrono::minutes(3))) {
    fmt::print("lane back after a crash: left out, Paddle cannot be imported\n");
    return;
  }
  LaneSource source(server->address(), "cpu", cli.folder() / "lane.log");
  auto lane = source.spawn(nullptr);
  std::vector<double> times;
  for (int round = 0; round < 21 && lane; ++round) {
    const auto began = Clock::now();
    lane->kill();
    (void)source.wait_exit(*lane, std::chrono::seconds(2));
    lane = source.spawn(lane->arena());
    flatbuffers::FlatBufferBuilder builder;
    wire::JobT job;
    job.test_case.id = 1;
    job.test_case.text = "paddle.abs(Tensor([1], \"float32\"))";
    const auto jobs =
        builder.CreateVector(std::vector<flatbuffers::Offset<wire::Job>>{wire::pack(builder, job)});
    const wire::CaseSettingsT defaults;
    const auto settings = wire::CaseSettings::Pack(builder, &defaults);
    const wire::LaneSpecT own;
    const auto spec = wire::LaneSpec::Pack(builder, &own);
    builder.Finish(wire::CreateBatch(builder, wire::kMessageVersion, settings, spec, false, jobs));
    (void)lane->send(wire::bytes_of(builder));
    (void)wire::receive_frame(lane->socket());
    times.push_back(seconds_since(began) * 1000);
  }
  std::sort(times.begin(), times.end());
  fmt::print(
      "lane back after a crash, its first case answered: median {:.1f} ms, worst {:.1f} ms of {} "
      "(aim ≤ 50)\n",
      times[times.size() / 2], times.back(), times.size());
}

void planned() {
  Cli cli;
  constexpr int kMany = 300'000;
  std::vector<std::string> lines;
  for (int i = 0; i < kMany; ++i) {
    lines.push_back(
        fmt::format("paddle.add(Tensor([{}, 16, 1, 118], \"float32\"), Tensor([{}, 118], "
                    "\"float32\"), name=\"{}\")",
                    1 + i % 97, 1 + i % 13, i));
  }
  const std::string cases = cli.write_cases(lines);
  auto arguments = real(cli, {"--num_workers_per_gpu=2", "--api_config_file=" + cases});
  const auto began = Clock::now();
  Process process = cli.start(arguments);
  double first = 0;
  while (first == 0 && seconds_since(began) < 120) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto wal = read_file(cli.run() / "lanes" / "slot0-paddle-test.log");
    if (wal) first = seconds_since(began);
  }
  std::this_thread::sleep_for(std::chrono::seconds(8));
  const auto status = read_file(fmt::format("/proc/{}/status", process.pid()));
  const std::size_t at = status ? status->find("VmHWM:") : std::string::npos;
  const double peak =
      at == std::string::npos ? 0 : std::strtod(status->c_str() + at + 6, nullptr) / 1024;
  process.signal(SIGINT);
  (void)process.wait();
  const auto report = cli.report();
  fmt::print(
      "300,000 cases planned: supervisor's peak {:.0f} MB (aim ≤ 100); first lane at work after "
      "{:.1f} s (aim: first verdict ≤ 15 s); {} verdicts after {:.0f} s\n",
      peak, first, report["cases"].get<int>(), first + 8);
}

int run(const std::vector<std::string>& wanted) {
  const std::vector<std::pair<std::string, std::function<void()>>> figures{
      {"first_touch", first_touch}, {"empty_lanes", empty_lanes},
      {"lane_back", lane_back},     {"small", small},
      {"sample_core", sample_core}, {"storm", storm},
      {"longest", longest},         {"planned", planned}};
  for (const auto& [figure, measure] : figures) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), figure) == wanted.end())
      continue;
    if ((figure == "small" || figure == "sample_core") &&
        !std::filesystem::exists(shared("sample_core.txt"))) {
      fmt::print("{}: left out, there is no {}\n", figure, shared("sample_core.txt"));
      continue;
    }
    measure();
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  return assay::run({argv + 1, argv + argc});
}
