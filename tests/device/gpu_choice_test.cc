// The GPUs that a run takes, by --num_gpus, --gpu_ids, CUDA_VISIBLE_DEVICES and the machine.

#include "device/gpu_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::vector<GpuInfo> four() {
  std::vector<GpuInfo> gpus;
  for (int number = 0; number < 4; ++number) {
    gpus.push_back({number, "Fake GPU", "GPU-" + std::to_string(number) + "abc", 1 << 30, 2 << 20});
  }
  return gpus;
}

// (number of nvidia-smi, number of CUDA)
std::vector<std::pair<int, int>> chosen(const GpuWish& wish,
                                        const std::optional<std::string>& visible = std::nullopt) {
  const auto found = choose_gpus(four(), wish, visible);
  EXPECT_TRUE(found) << found.error().message;
  std::vector<std::pair<int, int>> numbers;
  if (!found) return numbers;
  for (const ChosenGpu& gpu : *found) numbers.emplace_back(gpu.info.number, gpu.ordinal);
  return numbers;
}

std::string refused(const GpuWish& wish, const std::optional<std::string>& visible = std::nullopt) {
  const auto found = choose_gpus(four(), wish, visible);
  EXPECT_FALSE(found);
  if (found) return {};
  EXPECT_EQ(found.error().kind, ErrorKind::usage);
  EXPECT_EQ(found.error().message.find('\n'), std::string::npos);
  return found.error().message;
}

TEST(GpuIds, AreNumbersAndRanges) {
  EXPECT_THAT(*parse_gpu_ids("0,2,4-7"), ElementsAre(0, 2, 4, 5, 6, 7));
  EXPECT_THAT(*parse_gpu_ids(" 3 , 1-2, 2"), ElementsAre(1, 2, 3));
  EXPECT_THAT(*parse_gpu_ids(""), ElementsAre());
  EXPECT_THAT(*parse_gpu_ids("-1"), ElementsAre());
  for (const char* bad : {"a", "1,", "3-1", "1-2-3", "-2", "1--2", "0x1", "1000000", "1;2"}) {
    EXPECT_FALSE(parse_gpu_ids(bad)) << bad;
  }
}

TEST(GpuChoice, TakesWhatWasAskedForOrAll) {
  EXPECT_THAT(chosen({}), ElementsAre(Pair(0, 0), Pair(1, 1), Pair(2, 2), Pair(3, 3)));
  EXPECT_THAT(chosen({2, ""}), ElementsAre(Pair(0, 0), Pair(1, 1)));
  EXPECT_THAT(chosen({-1, "1,3"}), ElementsAre(Pair(1, 1), Pair(3, 3)));
  EXPECT_THAT(chosen({1, "2-3"}), ElementsAre(Pair(2, 2)));
}

// CUDA numbers the visible GPUs from 0; the flags use the numbers of nvidia-smi.
TEST(GpuChoice, KnowsWhatTheEnvironmentHides) {
  EXPECT_THAT(chosen({}, "2,1"), ElementsAre(Pair(2, 0), Pair(1, 1)));
  EXPECT_THAT(chosen({-1, "2"}, "1,2"), ElementsAre(Pair(2, 1)));
  EXPECT_THAT(chosen({}, "GPU-3,GPU-0abc"), ElementsAre(Pair(3, 0), Pair(0, 1)));
  EXPECT_THAT(chosen({}, "1,-1,2"), ElementsAre(Pair(1, 0)));  // as CUDA reads it
}

TEST(GpuChoice, SaysWhatCannotBeHad) {
  EXPECT_THAT(refused({5, ""}), AllOf(HasSubstr("--num_gpus=5"), HasSubstr("there are 4")));
  EXPECT_THAT(refused({3, "0,1"}), AllOf(HasSubstr("--num_gpus=3"), HasSubstr("in --gpu_ids")));
  EXPECT_THAT(refused({-1, "4"}), AllOf(HasSubstr("names GPU 4"), HasSubstr("4 GPUs (0 to 3)")));
  EXPECT_THAT(refused({-1, "0,3"}, "0,1"),
              AllOf(HasSubstr("names GPU 3"), HasSubstr("CUDA_VISIBLE_DEVICES=0,1 hides")));
  EXPECT_THAT(refused({}, ""), HasSubstr("hides every GPU"));
  EXPECT_THAT(refused({2, ""}, "3"), HasSubstr("CUDA_VISIBLE_DEVICES=3"));
  const auto none = choose_gpus({}, {}, std::nullopt);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("--num_gpus=0"));
}

TEST(GpuDriverCheck, RefusesNoneAndOneThatIsTooOld) {
  EXPECT_TRUE(check_driver({true, "580.1", 13000}, 13000, "CUDA 13.0"));
  EXPECT_TRUE(check_driver({true, "", 0}, 13000, "CUDA 13.0"));  // it does not say
  const Status none = check_driver({}, 13000, "CUDA 13.0");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("no NVIDIA driver"));
  const Status old = check_driver({true, "525.60", 12000}, 13000, "CUDA 13.0");
  ASSERT_FALSE(old);
  EXPECT_THAT(old.error().message,
              AllOf(HasSubstr("525.60"), HasSubstr("CUDA 12.0 at most"), HasSubstr("CUDA 13.0")));
}

}  // namespace
}  // namespace assay
