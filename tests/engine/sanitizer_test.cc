// Runs under compute-sanitizer, in whose place a script stands.

#include <gmock/gmock.h>

#include <algorithm>

#include "gpu.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// As compute-sanitizer 2025.3 writes it.
constexpr const char* kOutOfBounds =
    "========= Invalid __global__ write of size 4 bytes\n"
    "=========     at oob_write(float *, long long)+0x90 in planted.cu:2\n"
    "=========     by thread (0,0,0) in block (0,0,0)\n"
    "=========     Access to 0x7f1fe2800190 is out of bounds\n"
    "========= \n";
// What fails while it is asked for, as frameworks do, is no fault of a kernel.
constexpr const char* kFailedCall =
    "========= Program hit cudaErrorInvalidValue (error 1) due to \"invalid argument\" on CUDA API "
    "call to cudaMemset.\n"
    "=========     Saved host backtrace up to driver entry point at error\n"
    "========= \n";

class Sanitizer : public Gpu {
 protected:
  // What stands in the place of NVIDIA's program: it begins its log, and becomes what it is to run.
  void SetUp() override {
    Gpu::SetUp();
    program(
        "compute-sanitizer",
        "echo \"$@\" >>" + (cli_.folder() / "called").string() +
            "\nwhile case \"$1\" in --*) true;; *) false;; esac; do\n"
            "  if test \"$1\" = --log-file; then echo '========= COMPUTE-SANITIZER' >\"$2\"; fi\n"
            "  shift 2\ndone\nexec \"$@\"\n");
  }
  // What it finds in kernels of fake("sanitized").
  void finds(const std::string& text) {
    const std::string file = (cli_.folder() / "said").string();
    ASSERT_TRUE(write_file(file, text));
    said_ = file;
    set("FAKE_SANITIZER_SAYS", said_.c_str());
  }
  std::string said_;
};

TEST_F(Sanitizer, TheCaseWhoseKernelItReportsIsNamed) {
  finds(std::string(kFailedCall) + kOutOfBounds + kOutOfBounds);
  const std::string cases =
      cli_.write_cases({fake("echo"), fake("sanitized"), fake("echo", 4), fake("wrong")});
  const CliResult result = run(
      {"--api_config_file=" + cases, "--use_compute_sanitizer=True", "--num_workers_per_gpu=2"});
  EXPECT_EQ(result.status.code, 1);
  EXPECT_THAT(
      cli_.outcomes(),
      UnorderedElementsAre(Pair(fake("echo"), "pass"), Pair(fake("echo", 4), "pass"),
                           Pair(fake("wrong"), "mismatch"), Pair(fake("sanitized"), "sanitizer")))
      << result.output;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("Invalid __global__ write of size 4 bytes; at oob_write(float *, "
                              "long long)+0x90 in planted.cu:2"),
                    HasSubstr("(and 1 more reports)"), HasSubstr("one worker:"),
                    Not(HasSubstr("contaminated"))));
  const auto called = read_file(cli_.folder() / "called");
  ASSERT_TRUE(called);
  EXPECT_THAT(*called, AllOf(HasSubstr("--tool memcheck"), HasSubstr("assay.server")));
  EXPECT_EQ(std::count(called->begin(), called->end(), '\n'), 1) << "the lane under test alone";
  const auto log = read_file(cli_.run() / "api_config_sanitizer.txt");
  EXPECT_TRUE(log && log->find("sanitized") != std::string::npos);
}

TEST_F(Sanitizer, CallsThatFailAreNoFaultOfAKernel) {
  finds(kFailedCall);
  const CliResult result = run({"--api_config_file=" + cli_.write_cases({fake("sanitized")}),
                                "--use_compute_sanitizer=racecheck"});
  EXPECT_THAT(cli_.outcomes(), UnorderedElementsAre(Pair(fake("sanitized"), "pass")))
      << result.output;
  const auto called = read_file(cli_.folder() / "called");
  EXPECT_TRUE(called && called->find("--tool racecheck") != std::string::npos);
}

TEST_F(Sanitizer, ARunIsResumedUnderTheSameToolOnly) {
  finds(kOutOfBounds);
  const std::string cases = "--api_config_file=" + cli_.write_cases({fake("echo")});
  EXPECT_EQ(run({cases, "--use_compute_sanitizer=initcheck"}).status.code, 0);
  EXPECT_THAT(run({cases}).output, HasSubstr("was begun with test.device = gpu under initcheck"));
}

}  // namespace
}  // namespace assay::testing
