// Slots on GPUs, where none is: a plug-in whose GPUs are host memory (tests/device/fake_device.cc),
// a management library that tells of them, and fake frameworks.

#include "gpu.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/file.h>

#include <algorithm>
#include <map>

#include "base/fd.h"
#include "store/open_store.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// Idle lanes keep contexts and the frameworks' caches. (So little room is left that none are
// spare.)
TEST_F(Gpu, WhatRanOutOfMemoryIsAloneOnItsGpuWhenItRunsAgain) {
  const std::string notes = (cli_.folder() / "notes").string();
  std::vector<std::string> all{"paddle.fake.needs_all_memory(Tensor([100], \"float32\"), \"" +
                               notes + "\")"};
  for (int size = 1; size <= 30; ++size) all.push_back(fake("echo", size));
  const CliResult result = run({"--api_config_file=" + cli_.write_cases(all), "--num_gpus=1",
                                "--num_workers_per_gpu=2", "--required_memory=12"});
  EXPECT_EQ(result.status.code, 0) << result.output;
  EXPECT_THAT(*read_file(notes), AllOf(StartsWith("not alone\nalone\n"), Not(HasSubstr("\nnot"))));
  EXPECT_EQ(cli_.report()["flags"]["contaminated"], 1);
}

TEST_F(Gpu, CasesGetTheVerdictsThatTheyGetOnACpu) {
  const std::vector<std::string> lines{
      fake("echo"),         fake("wrong"),       fake("raises"),      fake("no_kernel"),
      fake("crash"),        fake("both_raise"),  fake("nonsense"),    fake("exit", 5),
      fake("many_numbers"), fake("many_listed"), fake("contaminated")};
  const std::string cases = cli_.write_cases(lines);
  const CliResult on_gpu = run({"--api_config_file=" + cases, "--num_workers_per_gpu=2"});
  EXPECT_EQ(on_gpu.status.code, 1) << on_gpu.output;
  EXPECT_THAT(on_gpu.output, HasSubstr("2 workers on GPU 0 (Fake GPU"));
  Cli other;
  const CliResult on_cpu = other.call_api({"--api_config_file=" + other.write_cases(lines)});
  EXPECT_EQ(cli_.outcomes(), other.outcomes());
  EXPECT_EQ(cli_.outcomes().size(), lines.size());
  EXPECT_EQ(cli_.outcomes().at(fake("wrong")), "mismatch");
  EXPECT_TRUE(all_gone(cli_.folder().string()));
}

// 20 MB each: the lane runs them alone and lends them, the slot opens them and measures there.
TEST_F(Gpu, LargeResultsAreMeasuredWhereTheyLie) {
  const std::string cases =
      cli_.write_cases({fake("echo", 5'000'000), fake("wrong", 5'000'001), fake("echo", 3)});
  const CliResult result = run({"--api_config_file=" + cases});
  EXPECT_THAT(cli_.outcomes(), UnorderedElementsAre(Pair(fake("echo", 5'000'000), "pass"),
                                                    Pair(fake("wrong", 5'000'001), "mismatch"),
                                                    Pair(fake("echo", 3), "pass")))
      << result.output;
}

// The lane has nothing else to do, and other slots wait for the memory.
TEST_F(Gpu, WhatALaneHasLentIsFreeOnceItIsCompared) {
  set("FAKE_TELLS_OF_RELEASES", "1");
  const std::string cases = cli_.write_cases({fake("echo", 20'000'000)});
  const CliResult result = run({"--api_config_file=" + cases, "--num_workers_per_gpu=1"});
  EXPECT_THAT(cli_.outcomes(), UnorderedElementsAre(Pair(fake("echo", 20'000'000), "pass")))
      << result.output;
  EXPECT_THAT(lane_log("slot0-paddle-test.log"), HasSubstr("released while 0 tensors are alive"));
  EXPECT_THAT(lane_log("slot0-torch-reference.log"),
              HasSubstr("released while 0 tensors are alive"));
}

// Nobody else can have what a lane's framework keeps: on GPUs of 80 GB one case in a hundred of
// middling size ran out of memory beside idle lanes.
TEST_F(Gpu, WhatACaseOfMiddlingSizeLeavesIsGivenBack) {
  set("FAKE_TELLS_OF_RELEASES", "1");
  for (const std::string& line : {fake("echo", 2'000'000), fake("echo", 300'000)}) {
    const std::string cases = cli_.write_cases({line});
    const CliResult result =
        run({"--api_config_file=" + cases, "--num_workers_per_gpu=1", "--values=usual"});
    EXPECT_EQ(cli_.outcomes().at(line), "pass") << result.output;
    EXPECT_THAT(lane_log("slot0-paddle-test.log"), HasSubstr("released while")) << line;
    std::filesystem::remove_all(cli_.run());
  }
}

// 48 MB go into the arena, the first 32 MiB of which are pinned: no copy may lie across their end.
TEST_F(Gpu, LargeResultsThatCannotBeSharedAreCopied) {
  set("FAKE_DEVICE_NO_SHARING", "1");
  const std::string cases =
      cli_.write_cases({fake("echo", 12'000'000), fake("wrong", 12'000'001), fake("echo", 3)});
  const CliResult result = run({"--api_config_file=" + cases, "--num_workers_per_gpu=1"});
  EXPECT_THAT(cli_.outcomes(), UnorderedElementsAre(Pair(fake("echo", 12'000'000), "pass"),
                                                    Pair(fake("wrong", 12'000'001), "mismatch"),
                                                    Pair(fake("echo", 3), "pass")))
      << result.output;
}

// Each second attempt has a lane under test of its own. Its reference may have run those of the
// cases before: another context on a GPU takes longer than a hundred cases.
// Both that poison leave their lane wrong, and in each order of the retries one is before the
// innocents.
TEST_F(Gpu, RetriesShareALaneWithNoOtherApi) {
  std::vector<std::string> lines;
  for (const char* name : {"poisons", "victim", "victim", "victim", "worsens"}) {
    lines.push_back(
        fmt::format("paddle.fake.{}(Tensor([{}], \"float32\"), 0.02)", name, lines.size() + 1));
  }
  const CliResult result = run({"--api_config_file=" + cli_.write_cases(lines),
                                "--num_workers_per_gpu=1", "--values=usual"});
  const nlohmann::json report = cli_.report();
  EXPECT_EQ(report["outcomes"]["mismatch"], 2) << result.output;
  EXPECT_EQ(report["flags"]["flaky"], 3);
}

TEST_F(Gpu, SecondAttemptsShareAReferenceLane) {
  set("FAKE_TELLS_OF_LANES", "1");
  const std::string cases = cli_.write_cases(
      {fake("wrong", 3), fake("wrong", 4), fake("wrong", 5), fake("wrong", 6), fake("echo")});
  const CliResult result = run({"--api_config_file=" + cases, "--num_workers_per_gpu=1"});
  EXPECT_EQ(cli_.outcomes().at(fake("wrong", 6)), "mismatch") << result.output;
  constexpr std::string_view kFirst = "a lane runs its first case";
  EXPECT_EQ(times(lane_log("slot0-paddle-test.log"), kFirst), 1U + 4U);
  EXPECT_EQ(times(lane_log("slot0-torch-reference.log"), kFirst), 1U + 1U);
}

// The verdict of each case in words, by its text.
std::map<std::string, std::string> messages_in(const Cli& cli) {
  std::map<std::string, std::string> messages;
  const auto store = open_store(cli.run(), StoreMode::existing);
  const Status read = (*store)->each_finished([&](const FinishedCase& finished) -> Status {
    messages.emplace(finished.text, finished.verdict.message);
    return {};
  });
  EXPECT_TRUE(read);
  return messages;
}

// The next cases are admitted by it (tests/schedule/queue_test.cc).
TEST_F(Gpu, WhatALargeCaseTookThereIsInItsRecord) {
  set("FAKE_PEAK_KB", "20000");
  run({"--api_config_file=" + cli_.write_cases({fake("echo", 2'000'000), fake("echo")}),
       "--num_workers_per_gpu=1", "--values=usual"});
  std::map<std::string, std::vector<std::uint64_t>> took_kb;
  const auto store = open_store(cli_.run(), StoreMode::existing);
  const Status read = (*store)->each_finished([&](const FinishedCase& finished) -> Status {
    ASSAY_TRY(const wire::Record* record, wire::open<wire::Record>(finished.record));
    for (const wire::LaneRecord* lane : *record->trials()->Get(0)->lanes()) {
      took_kb[std::string(finished.text)].push_back(lane->device_kb());
    }
    return {};
  });
  EXPECT_TRUE(read);
  EXPECT_THAT(took_kb,
              UnorderedElementsAre(Pair(fake("echo", 2'000'000), ElementsAre(20'000, 20'000)),
                                   Pair(fake("echo"), ElementsAre(0, 0))));
}

// A spare lane's context would be made while another is timed.
TEST_F(Gpu, NoLanesAreSpareWhereLanesAreTimed) {
  set("FAKE_TELLS_OF_SPARES", "1");
  const auto told = [&](const std::string& mode) {
    run({"--api_config=" + fake("echo"), "--num_gpus=1", "--num_workers_per_gpu=1", mode});
    const std::string log = lane_log("slot0-paddle-test.log");
    std::filesystem::remove_all(cli_.run());
    return log;
  };
  EXPECT_THAT(told("--accuracy=True"), HasSubstr("spares: 2"));
  EXPECT_THAT(told("--paddle_torch_gpu_performance=True"), HasSubstr("spares: none"));
}

// What is on the host is brought to the GPU and measured there, with what the host would find: 20
// MB are three blocks, in the last of which the second one is wrong as well.
TEST_F(Gpu, ALaneOnTheCpuIsMeasuredOnTheOthersGpu) {
  const std::vector<std::string> lines{fake("wrong", 5'000'001),
                                       fake("wrong_at_both_ends", 5'000'001)};
  const std::string told = (cli_.folder() / "measured").string();
  set("FAKE_TELLS_OF_MEASURING", told.c_str());
  run({"--api_config_file=" + cli_.write_cases(lines), "--test_cpu=True"});
  const auto measured = read_file(told);
  ASSERT_TRUE(measured);
  EXPECT_THAT(*measured, HasSubstr("2097152\n2097152\n805697\n"));
  Cli other;
  other.call_api({"--api_config_file=" + other.write_cases(lines), "--num_gpus=0"});
  EXPECT_EQ(cli_.outcomes(), other.outcomes());
  EXPECT_EQ(messages_in(cli_), messages_in(other));
  EXPECT_THAT(messages_in(cli_).at(lines.back()), HasSubstr("2 of 5000001"));
}

TEST_F(Gpu, ALaneOnTheCpuIsComparedWithOneOnAGpu) {
  const std::string cases = cli_.write_cases(
      {fake("echo", 5'000'000), fake("wrong", 5'000'001), fake("wrong", 4), fake("where")});
  const CliResult result = run({"--api_config_file=" + cases, "--test_cpu=True"});
  EXPECT_THAT(cli_.outcomes(),
              UnorderedElementsAre(Pair(fake("echo", 5'000'000), "pass"),
                                   Pair(fake("wrong", 5'000'001), "mismatch"),
                                   Pair(fake("wrong", 4), "mismatch"), Pair(fake("where"), "pass")))
      << result.output;
}

TEST_F(Gpu, TestCpuMeansTheTestLaneAlone) {
  const std::string cases = cli_.write_cases({fake("where")});
  run({"--api_config_file=" + cases});
  EXPECT_EQ(cli_.outcomes().at(fake("where")),
            "mismatch");  // "gpu:0", and the reference says "cpu"
}

// The fault shows when the GPU is asked for a whole batch: its cases run again one by one, and the
// one that did it is blamed.
TEST_F(Gpu, AFaultIsBlamedOnItsCaseAlone) {
  std::vector<std::string> lines;
  for (int size = 1; size <= 20; ++size) lines.push_back(fake("echo", size));
  lines.insert(lines.begin() + 9, fake("gpu_fault"));
  const CliResult result =
      run({"--api_config_file=" + cli_.write_cases(lines), "--num_workers_per_gpu=1"});
  const auto outcomes = cli_.outcomes();
  ASSERT_EQ(outcomes.size(), 21U) << result.output;
  for (const auto& [text, outcome] : outcomes) {
    EXPECT_EQ(outcome, text == fake("gpu_fault") ? "crash" : "pass") << text;
  }
  EXPECT_THAT(result.output, HasSubstr("its GPU reported a fault"));
  EXPECT_THAT(lane_log("slot0-paddle-test.log"), HasSubstr("a pretended fault"));
}

TEST_F(Gpu, WorkersTakeTurnsOnTheGpus) {
  set("FAKE_NVML_GPUS", "2");
  const std::string cases = cli_.write_cases({fake("echo"), fake("echo", 4), fake("echo", 5)});
  const CliResult result =
      run({"--api_config_file=" + cases, "--num_workers_per_gpu=2", "--accuracy_dual_gpu=True"});
  EXPECT_EQ(result.status.code, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("4 workers on GPU 0"), HasSubstr("GPU 1 (Fake GPU")));
}

// With their memory, their MPS and their number of workers.
TEST_F(Gpu, LanesThatNameTheirGpuHaveSeatsOnIt) {
  set("FAKE_NVML_GPUS", "2");
  const std::filesystem::path file = cli_.folder() / "assay.toml";
  ASSERT_TRUE(write_file(file, *read_file(file) +
                                   "[lanes.mine]\nframework = \"paddle\"\ndevice = \"cuda:1\"\n"
                                   "[lanes.theirs]\nframework = \"torch\"\ndevice = \"gpu:1\"\n"));
  const std::string cases = "--api_config_file=" + cli_.write_cases({fake("where"), fake("echo")});
  const auto run_on = [&](const std::string& test, const std::string& reference,
                          const std::vector<std::string>& more = {}) {
    std::vector<std::string> all{cases, "--test-lane=" + test, "--reference-lane=" + reference,
                                 "--num_workers_per_gpu=2"};
    all.insert(all.end(), more.begin(), more.end());
    const CliResult result = run(all);
    std::filesystem::remove_all(cli_.run());
    return result;
  };
  for (const auto& [test, reference] : std::map<std::string, std::string>{
           {"mine", "theirs"}, {"paddle:cuda:1", "torch:cuda:1"}, {"paddle:gpu:1", "torch"}}) {
    const CliResult result = run_on(test, reference);
    EXPECT_THAT(result.output,
                AllOf(HasSubstr("2 workers on GPU 1"), HasSubstr("no MPS"), HasSubstr("gpu:1"),
                      Not(HasSubstr("GPU 0")), Not(HasSubstr("run on the CPU"))))
        << test;
  }
  const CliResult none = run_on("mine", "theirs", {"--num_gpus=0"});
  EXPECT_EQ(none.status.code, 2);
  EXPECT_THAT(none.output, HasSubstr("a lane names gpu:1"));
  const CliResult missing = run_on("paddle:cuda:7", "theirs");
  EXPECT_EQ(missing.status.code, 2);
  EXPECT_THAT(missing.output, HasSubstr("gpu:7"));
}

// A daemon in name only: what matters is who is told of it, and that it ends with the run.
TEST_F(Gpu, LanesShareItByMpsAndSuspectsDoNot) {
  const std::string folder = cli_.folder().string();
  daemon("test \"$1\" = -f || { cat >>" + folder + "/said; exit; }\necho $$ >>" + folder +
         "/daemons\ntouch $CUDA_MPS_PIPE_DIRECTORY/control; exec sleep 1000\n");
  const std::string cases = cli_.write_cases({fake("mps"), fake("echo")});
  const CliResult result = run({"--api_config_file=" + cases, "--num_workers_per_gpu=2"});
  EXPECT_THAT(cli_.outcomes(),
              UnorderedElementsAre(Pair(fake("mps"), "pass"), Pair(fake("echo"), "pass")));
  EXPECT_THAT(result.output, HasSubstr("first mismatch (result: got text shared")) << result.output;
  const auto said = read_file(cli_.folder() / "said");
  EXPECT_TRUE(said && *said == "quit\n");
  const auto daemons = read_file(cli_.folder() / "daemons");
  ASSERT_TRUE(daemons);
  EXPECT_FALSE(std::filesystem::exists("/proc/" + daemons->substr(0, daemons->find('\n'))));

  Cli declined;
  declined.call_api({"--api_config_file=" + cases, "--mps=False"});
  EXPECT_EQ(*read_file(cli_.folder() / "daemons"), *daemons) << "nothing more was started";
}

// CUDA's error 807 is no case's fault: MPS restarts after a fault of one of its clients.
TEST_F(Gpu, LanesGoOnWithoutAnMpsThatTakesNoClients) {
  daemon("test \"$1\" = -f || exit 0\ntouch $CUDA_MPS_PIPE_DIRECTORY/control; exec sleep 1000\n");
  set("FAKE_MPS_REFUSES", "1");
  std::vector<std::string> lines;
  for (int size = 1; size <= 20; ++size) lines.push_back(fake("echo", size));
  const CliResult result =
      run({"--api_config_file=" + cli_.write_cases(lines), "--num_workers_per_gpu=2"});
  EXPECT_EQ(result.status.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("the run's MPS takes no new lanes at the moment"));
  EXPECT_EQ(cli_.report()["outcomes"]["pass"], 20);
}

TEST_F(Gpu, WithoutMpsItsProcessesTakeTurns) {
  daemon("exit 1\n");
  const CliResult result =
      run({"--api_config_file=" + cli_.write_cases({fake("mps")}), "--num_workers_per_gpu=2"});
  EXPECT_EQ(result.status.code, 0) << result.output;
  EXPECT_THAT(
      result.output,
      AllOf(HasSubstr(
                "no MPS, so processes on a GPU take turns: nvidia-cuda-mps-control: exit code 1"),
            Not(HasSubstr("shared"))));
}

// Called by its name alone, as an installed program is, from a folder of somebody else's.
TEST_F(Gpu, ThePlugInIsLookedForNearTheProgram) {
  ::unsetenv("ASSAY_DEVICE_PLUGIN");
  const std::filesystem::path bin = std::filesystem::path(ASSAY_PROGRAM).parent_path();
  ::setenv("PATH", (bin.string() + ":" + std::getenv("PATH")).c_str(), 1);
  const CliResult result = cli_.call_program({"assay", "doctor"});
  EXPECT_THAT(result.output, Not(HasSubstr(cli_.folder().parent_path().string() + "/lib/")));
  EXPECT_THAT(result.output, HasSubstr("GPU 0"));
}

TEST_F(Gpu, MemoryLimitsTheWorkers) {
  const std::string cases = cli_.write_cases({fake("echo")});
  const CliResult result =
      run({"--api_config_file=" + cases, "--num_workers_per_gpu=8", "--required_memory=40"});
  EXPECT_EQ(result.status.code, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("2 of 8 workers"), HasSubstr("2 workers on GPU 0")));
}

// Of 16 GB that are free four workers would leave nothing to their cases.
TEST_F(Gpu, WorkersLeaveMemoryToTheirCases) {
  const std::string used = (cli_.folder() / "used").string();
  ASSERT_TRUE(write_file(used, "84000 0 0 0"));
  set("FAKE_NVML", used.c_str());
  const std::string cases = cli_.write_cases({fake("echo")});
  const CliResult result = run({"--api_config_file=" + cases, "--num_workers_per_gpu=8"});
  EXPECT_EQ(result.status.code, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("3 of 8 workers"), HasSubstr("3 workers on GPU 0")));
}

struct BadGpu {
  const char* name;
  std::vector<std::pair<const char*, const char*>> environment;
  std::vector<std::string> flags;
  const char* says;
};

class BadGpus : public Gpu, public ::testing::WithParamInterface<BadGpu> {};

TEST_P(BadGpus, AreOneClearLine) {
  for (const auto& [name, value] : GetParam().environment) set(name, value);
  std::vector<std::string> flags = GetParam().flags;
  flags.push_back("--api_config_file=" + cli_.write_cases({fake("echo")}));
  const CliResult result = run(flags);
  EXPECT_EQ(result.status.code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr(GetParam().says));
  EXPECT_THAT(result.output, Not(HasSubstr("Traceback")));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadGpus,
    ::testing::Values(
        BadGpu{"no_driver",
               {{"LD_LIBRARY_PATH", "/nowhere"}},
               {"--num_gpus=1"},
               "no NVIDIA driver answers here"},
        BadGpu{"driver_too_old", {{"FAKE_DEVICE_DRIVER", "13000"}}, {}, "runs CUDA 12.4 at most"},
        BadGpu{"too_many", {}, {"--num_gpus=3"}, "--num_gpus=3: there are 1"},
        BadGpu{"no_such_number", {}, {"--gpu_ids=5"}, "names GPU 5"},
        BadGpu{"no_number", {}, {"--gpu_ids=a"}, "takes numbers and ranges"},
        BadGpu{"hidden",
               {{"FAKE_NVML_GPUS", "2"}, {"CUDA_VISIBLE_DEVICES", "0"}},
               {"--gpu_ids=1"},
               "CUDA_VISIBLE_DEVICES=0 hides"},
        BadGpu{"all_hidden", {{"CUDA_VISIBLE_DEVICES", ""}}, {}, "hides every GPU"},
        BadGpu{"contradiction", {}, {"--num_gpus=0", "--gpu_ids=0"}, "--num_gpus=0 uses no GPU"},
        BadGpu{"no_plugin",
               {{"ASSAY_DEVICE_PLUGIN", "/nowhere.so"}},
               {},
               "there is no file /nowhere.so"},
        BadGpu{"plugin_of_another_version",
               {{"FAKE_DEVICE_ABI", "99"}},
               {},
               "another version of assay"},
        BadGpu{"framework_without_cuda",
               {{"FAKE_GPU_BUILDS", "torch"}},
               {},
               "paddle 1.0 has no CUDA (--test_cpu runs the test lane on the CPU"},
        BadGpu{"no_sanitizer",
               {{"CUDA_HOME", "/nowhere"}},
               {"--use_compute_sanitizer=True"},
               "compute-sanitizer is neither on PATH nor in /nowhere/bin"},
        BadGpu{"no_such_tool",
               {},
               {"--use_compute_sanitizer=valgrind"},
               "takes memcheck (the same as True), racecheck or initcheck"},
        BadGpu{"nothing_for_the_sanitizer",
               {},
               {"--use_compute_sanitizer=True", "--num_gpus=0"},
               "the lane under test runs on the CPU"},
        BadGpu{"no_second_one", {}, {"--accuracy_dual_gpu=True"}, "and this run has 1: name two"},
        BadGpu{"one_of_two",
               {{"FAKE_NVML_GPUS", "2"}},
               {"--accuracy_stable_dual_gpu=True", "--num_gpus=1"},
               "or use --accuracy_stable, which"},
        BadGpu{"no_lane_for_the_second",
               {{"FAKE_NVML_GPUS", "2"}},
               {"--accuracy_dual_gpu=True", "--test_cpu=True"},
               "and the test lane runs on the CPU"},
        BadGpu{"no_room", {}, {"--required_memory=200"}, "a worker needs 200.0 GiB"}),
    [](const auto& of) { return of.param.name; });

// A GPU that falls off after the start: the lanes cannot open it. No case is to blame, and the run
// ends with the reason.
TEST_F(Gpu, ThatLanesCannotOpenEndsTheRunWithoutAVerdict) {
  set("FAKE_DEVICE_BROKEN", "1");
  const CliResult result =
      run({"--api_config_file=" + cli_.write_cases({fake("echo")}), "--num_workers_per_gpu=1"});
  EXPECT_EQ(result.status.code, 3) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("gpu:0 cannot be opened: no such GPU"),
                                   HasSubstr("check whether gpu:0 still works (nvidia-smi;"),
                                   HasSubstr("exclude it with --gpu_ids")));
  EXPECT_THAT(cli_.outcomes(), ::testing::IsEmpty());
}

// The same where the slot opens it, to compare large results there.
TEST_F(Gpu, ThatASlotCannotOpenEndsTheRunWithoutAVerdict) {
  set("FAKE_DEVICE_BROKEN", "assay");
  const CliResult result = run({"--api_config_file=" + cli_.write_cases({fake("echo", 5'000'000)}),
                                "--num_workers_per_gpu=1"});
  EXPECT_EQ(result.status.code, 3) << result.output;
  EXPECT_THAT(result.output, HasSubstr("slot 0: gpu:0 cannot be opened: no such GPU"));
  EXPECT_THAT(cli_.outcomes(), ::testing::IsEmpty());
}

// Where nobody waits for it: the frameworks are not there before a slot has opened its device, and
// there is one slot, since there is no work for more.
TEST_F(Gpu, SlotsOpenItWhileTheFrameworksAreImported) {
  const std::string told = (cli_.folder() / "opened").string();
  set("FAKE_TELLS_OF_OPENING", told.c_str());
  set("FAKE_IMPORT_WAITS_FOR_OPENING", "1");
  const CliResult result = run({"--api_config_file=" + cli_.write_cases({fake("echo", 5'000'000)}),
                                "--num_workers_per_gpu=4"});
  EXPECT_THAT(cli_.outcomes(), UnorderedElementsAre(Pair(fake("echo", 5'000'000), "pass")))
      << result.output;
  const auto opened = read_file(told);
  ASSERT_TRUE(opened);
  EXPECT_THAT(*opened, StartsWith("assay\n"));
  EXPECT_EQ(times(*opened, "assay\n"), 1U);
}

// Before and after in the same words; and a case that runs again sits where it sat.
TEST_F(Gpu, WhereLanesSitIsSaid) {
  set("FAKE_NVML_GPUS", "2");
  const std::string cases = cli_.write_cases({fake("wrong"), fake("echo")});
  const CliResult result = run({"--api_config_file=" + cases, "--test_cpu=True", "--gpu_ids=0,1"});
  EXPECT_EQ(times(result.output, "2 slots, test lane on the CPU, reference lane on 2 GPUs"), 2U)
      << result.output;
  EXPECT_THAT(result.output, HasSubstr("--accuracy=True --gpu_ids=0,1 --test_cpu=True"));
  Cli other;
  const CliResult on_cpu = other.call_api({"--api_config=" + fake("wrong"), "--num_gpus=0"});
  EXPECT_EQ(times(on_cpu.output, "1 slot on the CPU"), 2U) << on_cpu.output;
  EXPECT_THAT(on_cpu.output, AllOf(HasSubstr("--accuracy=True --num_gpus=0"),
                                   HasSubstr("1 case to run in"), HasSubstr("\n1 case in ")));
}

TEST_F(Gpu, NumGpus0RunsAllLanesOnTheCpu) {
  const std::string cases = cli_.write_cases({fake("where")});
  const CliResult result = run({"--api_config_file=" + cases, "--num_gpus=0"});
  EXPECT_EQ(cli_.outcomes().at(fake("where")), "pass");
  EXPECT_THAT(result.output, HasSubstr("workers run on the CPU"));
}

}  // namespace
}  // namespace assay::testing
