// Cases of which there is much: elements, parts or text.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>

#include "base/fd.h"
#include "cli.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// Whether the kernel lets a process read another's memory here.
bool may_read_others() {
  SpawnOptions options;
  options.argv = {"sleep", "60"};
  const auto other = Process::spawn(options);
  if (!other) return false;
  std::array<char, 1> byte;
  const iovec local{byte.data(), 1};
  const iovec nowhere{nullptr, 1};
  return ::process_vm_readv(other->pid(), &local, 1, &nowhere, 1, 0) < 0 && errno == EFAULT;
}

// Results of 12 MB stay in their lanes. If a lane is killed before they are compared, the case runs
// again, and no case is blamed.
TEST(LargeCases, LargeResultsAreComparedWhereTheyLie) {
  if (!may_read_others()) GTEST_SKIP() << "the kernel forbids reading another process's memory";
  constexpr int kLarge = 3'000'000;
  Cli cli;
  const std::string notes = (cli.folder() / "notes").string();
  const std::string dies = "paddle.fake.dies_idle(" + tensor(kLarge) + ", \"" + notes + "\")";
  const std::string cases = cli.write_cases({fake("echo"), dies, fake("wrong", kLarge)});
  cli.call_api({"--api_config_file=" + cases, "--num_workers_per_gpu=1"});
  EXPECT_THAT(cli.outcomes(), UnorderedElementsAre(Pair(fake("echo"), "pass"), Pair(dies, "pass"),
                                                   Pair(fake("wrong", kLarge), "mismatch")));
  EXPECT_EQ(*read_file(notes), "run\nrun\n");
  EXPECT_EQ(cli.report()["cases"], 3);
}

// While its kind is new, an expensive case first runs in the test lane alone.
TEST(LargeCases, TheReferenceIsNotAskedWhereTheTestLaneHasNoKernel) {
  Cli cli;
  const std::string notes = (cli.folder() / "notes").string();
  const auto noted = [&](const std::string& name, int size) {
    return "paddle.fake." + name + "(" + tensor(size) + ", \"" + notes + "\")";
  };
  constexpr int kLarge = 3'000'000;
  const std::string cases =
      cli.write_cases({noted("no_kernel_noted", kLarge), noted("no_kernel_noted", kLarge + 1)});
  cli.call_api({"--api_config_file=" + cases, "--num_workers_per_gpu=1"});
  EXPECT_THAT(cli.outcomes(),
              UnorderedElementsAre(Pair(noted("no_kernel_noted", kLarge), "no_kernel"),
                                   Pair(noted("no_kernel_noted", kLarge + 1), "no_kernel")));
  EXPECT_FALSE(std::filesystem::exists(notes));
  const std::string more = cli.write_cases({noted("noted", kLarge)});
  cli.call_api({"--api_config_file=" + more, "--num_workers_per_gpu=1"});
  EXPECT_EQ(cli.outcomes()[noted("noted", kLarge)], "pass");
  EXPECT_EQ(*read_file(notes), "run\n");
}

// Large inputs stay unfilled while their dtype is new or a kernel is likely missing. If there is a
// kernel, the case then runs as usual.
TEST(LargeCases, LargeInputsAreNotFilledWhereThereIsNoKernel) {
  Cli cli;
  const std::string notes = (cli.folder() / "notes").string();
  const auto with = [&](int size, const std::string& has) {
    return "paddle.fake.has_kernel(" + tensor(size) + ", \"" + notes + "\", " + has + ")";
  };
  constexpr int kLarge = 3'000'000;
  const std::string cases =
      cli.write_cases({with(kLarge, "False"), with(kLarge + 2, "False"), with(kLarge + 1, "True")});
  cli.call_api({"--api_config_file=" + cases, "--num_workers_per_gpu=1"});
  EXPECT_THAT(cli.outcomes(), UnorderedElementsAre(Pair(with(kLarge, "False"), "no_kernel"),
                                                   Pair(with(kLarge + 2, "False"), "no_kernel"),
                                                   Pair(with(kLarge + 1, "True"), "pass")));
  EXPECT_EQ(*read_file(notes), "empty\nempty\nempty\nfilled\n");
}

// A new lane knows nothing about kernels, but its slot does.
TEST(LargeCases, LargeInputsAreNotFilledForALaneThatIsNew) {
  Cli cli;
  const std::string notes = (cli.folder() / "notes").string();
  const auto noted = [&](int size) {
    return "paddle.fake.has_kernel(" + tensor(size) + ", \"" + notes + "\", False)";
  };
  constexpr int kLarge = 3'000'000;
  const std::string dies = fake("crash", kLarge + 1);
  const std::string cases = cli.write_cases({noted(kLarge), dies, noted(kLarge + 2)});
  cli.call_api({"--api_config_file=" + cases, "--num_workers_per_gpu=1"});
  EXPECT_THAT(cli.outcomes(),
              UnorderedElementsAre(Pair(noted(kLarge), "no_kernel"), Pair(dies, "crash"),
                                   Pair(noted(kLarge + 2), "no_kernel")));
  EXPECT_EQ(*read_file(notes), "empty\nempty\n");
}

TEST(LargeCases, ResultsInAGreatManyPartsStopNothing) {
  Cli cli;
  constexpr int kListed = 3'000'000;
  const std::string cases =
      cli.write_cases({fake("many_numbers"), fake("many_numbers_one_wrong"), fake("many_parts"),
                       fake("many_listed", kListed), fake("echo")});
  const CliResult result = cli.call_api({"--api_config_file=" + cases});
  EXPECT_EQ(result.status.code, 1) << result.output;
  EXPECT_THAT(cli.outcomes(), UnorderedElementsAre(Pair(fake("many_numbers"), "pass"),
                                                   Pair(fake("many_numbers_one_wrong"), "mismatch"),
                                                   Pair(fake("many_parts"), "unsupported"),
                                                   Pair(fake("many_listed", kListed), "pass"),
                                                   Pair(fake("echo"), "pass")));
  EXPECT_THAT(result.output, HasSubstr("result: 1 of 600000 elements differ, by up to 1 "));
  // The store does not repeat inputs, however many of their values the case lists.
  EXPECT_LT(std::filesystem::file_size(cli.run() / "run.db"), 10'000'000U);
}

// Eight cases of 100 kB are more than a socket takes at once.
TEST(LargeCases, ALeaseLargerThanASocketsBufferArrives) {
  Cli cli;
  std::vector<std::string> lines;
  for (int size = 1; size <= 100; ++size) {
    lines.push_back("paddle.fake.echo(" + tensor(size) + ", \"" + std::string(100'000, 'x') +
                    "\")");
  }
  cli.call_api({"--api_config_file=" + cli.write_cases(lines), "--quiet=True"});
  EXPECT_EQ(cli.outcomes().size(), lines.size());
}

}  // namespace
}  // namespace assay::testing
