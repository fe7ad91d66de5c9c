// assay repro: the right case is found, and its inputs are those of the run. Its script is for
// tests/lane/test_scripts.py, and that the script runs for repro_paddle_test.

#include "report/repro.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>

#include "stored_run.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::StoredRun;

std::string finding_says(StoredRun& run, const std::string& wanted) {
  const auto found = find_case(run.store(), wanted);
  return found ? found->text : found.error().message;
}

TEST(FindCase, ByIdPrefixOrText) {
  StoredRun run;
  const std::string abs = R"(paddle.abs(Tensor([2], "float32")))";
  const std::string absolute = R"(paddle.absolute(Tensor([2], "float32")))";
  const std::uint64_t id = run.add_filled(abs, {{}});
  run.add_filled(absolute, {{}});
  EXPECT_EQ(finding_says(run, format_case_id(id)), abs);
  EXPECT_EQ(finding_says(run, format_case_id(id).substr(0, 9)), abs);
  EXPECT_EQ(finding_says(run, "absolute"), absolute);
  EXPECT_EQ(finding_says(run, abs), abs);
  EXPECT_THAT(finding_says(run, "paddle.abs"), HasSubstr("2 cases match"));
  EXPECT_THAT(finding_says(run, "paddle.abs"), HasSubstr(format_case_id(id)));
  EXPECT_THAT(finding_says(run, "paddle.nothing"), HasSubstr("no case of the run"));
  EXPECT_THAT(finding_says(run, ""), HasSubstr("give the id or the text"));
}

// A whole text wins over cases that only contain it.
TEST(FindCase, TheWholeTextWins) {
  StoredRun run;
  run.add_filled(R"x(paddle.f("paddle.abs(1)"))x", {});
  run.add_filled("paddle.abs(1)", {});
  run.add_filled(R"x(paddle.g("paddle.abs(1)"))x", {});
  EXPECT_EQ(finding_says(run, "paddle.abs(1)"), "paddle.abs(1)");
}

TEST(FindCase, WhatNeverRanSaysWhy) {
  StoredRun run;
  run.plan("paddle.later(1)");
  run.add("paddle.odd(1)", {Outcome::unsupported, 0, 0, "", "no reference is registered"});
  run.add("paddle.gone(1)", {Outcome::crash, 0, 0, "slot", "its slots keep dying"});
  EXPECT_THAT(finding_says(run, "later"), HasSubstr("has not finished"));
  EXPECT_THAT(finding_says(run, "odd"), HasSubstr("never ran: unsupported (no reference"));
  EXPECT_THAT(finding_says(run, "gone"), HasSubstr("its slots keep dying"));
}

TEST(Repro, InputsAreTheBytesOfTheRun) {
  StoredRun run;
  constexpr std::uint64_t kSeed = 0xFFFF'FFFF'FFFF'FFF1;
  StoredRun::must(run.store().set_property("seed", std::to_string(kSeed)));
  const std::string text =
      R"(paddle.concat(list[Tensor([3, 5], "bfloat16"), Tensor([0, 5], "bfloat16")], Tensor([], "int64")))";
  const std::vector<testing::InputParts> inputs{
      {{FillKind::uniform, -2, 2, 1}, {}}, {}, {{}, {-7}}};
  run.add_filled(text, inputs, kSeed);
  const auto found = StoredRun::must(find_case(run.store(), text));
  const auto repro = StoredRun::must(write_repro(run.store(), found, run.folder() / "repro"));
  EXPECT_THAT(repro.notes, IsEmpty());
  const auto expected = StoredRun::elements(text, inputs, kSeed);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::string file =
        StoredRun::must(read_file(run.folder() / "repro" / fmt::format("x{}.bin", i)));
    ASSERT_EQ(file.size(), expected[i].size());
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(file)), expected[i])) << i;
  }
  std::int64_t value = 0;
  std::memcpy(&value, expected[2].data(), sizeof value);
  EXPECT_EQ(value, -7);
}

TEST(Repro, WithoutAPythonThereIsALineThatSaysSo) {
  StoredRun run;
  run.add_filled(R"(paddle.abs(Tensor([2], "float32")))", {{}});
  const auto found = StoredRun::must(find_case(run.store(), "abs"));
  for (const char* python : {"/no/python", "/bin/false"}) {
    ::setenv("ASSAY_PYTHON", python, 1);
    const auto repro = write_repro(run.store(), found, run.folder() / "repro");
    ::unsetenv("ASSAY_PYTHON");
    ASSERT_FALSE(repro.has_value());
    EXPECT_THAT(repro.error().message, HasSubstr(python));
    EXPECT_THAT(repro.error().message, HasSubstr("ASSAY_PYTHON names"));
  }
}

TEST(Repro, ADifferentChecksumIsSaid) {
  StoredRun run;
  run.add_filled(R"(paddle.abs(Tensor([2], "float32")))", {{}}, 0, /*spoil=*/1);
  const auto found = StoredRun::must(find_case(run.store(), "abs"));
  const auto repro = StoredRun::must(write_repro(run.store(), found, run.folder() / "repro"));
  ASSERT_THAT(repro.notes, SizeIs(1));
  EXPECT_THAT(repro.notes[0], HasSubstr("not the values of the run"));
  EXPECT_THAT(StoredRun::must(read_file(repro.script)), HasSubstr("not the values of the run"));
}

// Both lanes died: nobody told how the inputs were filled.
TEST(Repro, WithoutFillingsTheDefaultIsTakenAndSaid) {
  StoredRun run;
  run.add_filled(R"(paddle.abs(Tensor([200], "float32")))", {});
  const auto found = StoredRun::must(find_case(run.store(), "abs"));
  const auto repro = StoredRun::must(write_repro(run.store(), found, run.folder() / "repro"));
  ASSERT_THAT(repro.notes, SizeIs(1));
  const auto expected = StoredRun::elements(found.text, {{default_rule(DType::float32), {}}}, 0);
  const std::string file = StoredRun::must(read_file(run.folder() / "repro" / "x0.bin"));
  EXPECT_EQ(std::memcmp(file.data(), expected[0].data(), file.size()), 0);
}

TEST(Repro, ValuesThatTheRunDroppedAreNotReplacedByOthers) {
  StoredRun run;
  run.add_filled(R"(paddle.abs(Tensor([0], "float32")))", {{{}, {}, /*dropped=*/true}});
  const auto found = StoredRun::must(find_case(run.store(), "abs"));
  const auto repro = write_repro(run.store(), found, run.folder() / "repro");
  ASSERT_FALSE(repro.has_value());
  EXPECT_THAT(repro.error().message, HasSubstr("only if the case fails"));
}

TEST(Repro, WhatNoDiskHoldsIsAnError) {
  StoredRun run;
  run.add_filled(R"(paddle.abs(Tensor([4611686018427387904, 4], "int8")))", {});
  const auto found = StoredRun::must(find_case(run.store(), "abs"));
  const auto repro = write_repro(run.store(), found, run.folder() / "repro");
  ASSERT_FALSE(repro.has_value());
  EXPECT_THAT(repro.error().message, HasSubstr("does not fit on any disk"));
}

TEST(Repro, AFailedTestThatNoDiskHoldsIsNoted) {
  StoredRun run;
  run.add_filled(R"(paddle.abs(Tensor([4611686018427387904, 4], "int8")))", {});
  run.add_filled(R"(paddle.exp(Tensor([1200000000], "int8")))", {});
  run.add_filled(R"(paddle.neg(Tensor([2], "int8")))", {});
  std::vector<std::string> notes;
  const auto note = [&](const std::string& line) { notes.push_back(line); };
  ASSERT_TRUE(write_failed_tests(run.store(), run.folder().path(), note));
  ASSERT_THAT(notes, SizeIs(2));
  EXPECT_THAT(notes[0], HasSubstr("no room for test_paddle_abs_"));
  EXPECT_THAT(notes[1], HasSubstr("no room for test_paddle_exp_"));
  std::size_t written = 0;
  for (const auto& each : std::filesystem::directory_iterator(run.folder() / "failed_tests")) {
    EXPECT_TRUE(std::filesystem::exists(each.path() / "x0.bin"));
    ++written;
  }
  EXPECT_EQ(written, 1U);
}

}  // namespace
}  // namespace assay
