// Refused texts: the column and the message.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "case/diagnostic.h"
#include "case/parser.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

struct Refusal {
  std::string text;
  std::size_t column;   // counted by hand: 1 is the first character
  std::string message;  // a part of it
};

std::ostream& operator<<(std::ostream& out, const Refusal& refusal) {
  return out << refusal.text.substr(0, 100);
}

void expect_refused(const Refusal& refusal) {
  Case out;
  const ParseStatus status = parse_case(refusal.text, out);
  ASSERT_FALSE(status) << refusal;
  EXPECT_EQ(status.error().column, refusal.column) << refusal << "\n" << status.error().message;
  EXPECT_THAT(status.error().message, HasSubstr(refusal.message)) << refusal;
}

class RefusedCall : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedCall, NamesColumnAndCause) { expect_refused(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Structure, RefusedCall,
    ::testing::Values(Refusal{"", 1, "expected an API name"},
                      Refusal{"   ", 4, "found the end of the line"},
                      Refusal{"add(1)", 1, "two parts or more"},
                      Refusal{"paddle.(1)", 1, "expected an API name"},
                      Refusal{".add(1)", 1, "expected an API name"},
                      Refusal{"paddle..add(1)", 1, "expected an API name"},
                      Refusal{"paddle.2d(1)", 1, "expected an API name"},
                      Refusal{"paddle.add", 11, "expected '('"},
                      Refusal{"paddle.add[1]", 11, "expected '(', found '['"},
                      Refusal{"paddle.add(1", 13, "expected ',' or ')', found the end of the line"},
                      Refusal{"paddle.add(1 2)", 14, "expected ',' or ')', found '2'"},
                      Refusal{"paddle.add(, )", 12, "expected a value, found ','"},
                      Refusal{"paddle.add(1,,)", 14, "expected a value"},
                      Refusal{"paddle.add(1) tail", 15, "expected the end of the line"},
                      Refusal{"paddle.add(1))", 14, "expected the end of the line"},
                      Refusal{"paddle.add(x=)", 14, "expected a value, found ')'"},
                      Refusal{"paddle.add(x==1)", 14, "expected a value, found '='"},
                      Refusal{"paddle.add(x=1, y=2, x=3)", 22, "the keyword 'x' is given twice"},
                      Refusal{"paddle.add(x=1, 2)", 17, "no positional argument can follow"},
                      Refusal{"paddle.add(x=1, None)", 17, "no positional argument can follow"},
                      Refusal{"paddle.add(x.y=1)", 12, "holds a dot"},
                      Refusal{"paddle.add(list[1,2)", 20, "expected ',' or ']', found ')'"},
                      Refusal{"paddle.add(list(1))", 16, "expected '['"},
                      Refusal{"paddle.add(tuple[1])", 17, "expected '('"},
                      Refusal{"paddle.add(slice(1,2))", 17, "three values"},
                      Refusal{"paddle.add(1)(2)(3)", 17, "expected the end of the line"},
                      Refusal{"paddle.add(x=1)(x=1, x=2)", 22, "given twice"},
                      Refusal{"paddle.add(1)(x=1, 2)", 20, "no positional argument can follow"},
                      Refusal{"paddle.add(\xC3\xA9)", 12, "expected a value, found '\xC3\xA9'"}));

INSTANTIATE_TEST_SUITE_P(
    WhereATensorLies, RefusedCall,
    ::testing::Values(Refusal{R"(p.f(Tensor([2/2],"int8")))", 14, "'//'"},
                      Refusal{R"(p.f(Tensor([2//0],"int8")))", 16, "division by zero"},
                      Refusal{R"(p.f(Tensor([2-3],"int8")))", 13, "cannot be negative"},
                      Refusal{R"(p.f(Tensor([9223372036854775807*2],"int8")))", 13, "64 bits"},
                      Refusal{R"(p.f(Tensor([9223372036854775807+1],"int8")))", 13, "64 bits"},
                      Refusal{R"(p.f(Tensor([2*],"int8")))", 15, "a whole number"},
                      Refusal{R"(p.f(Tensor([2, 3],"int8",strides=[1])))", 26,
                              "1 strides for 2 dimensions"},
                      Refusal{R"(p.f(Tensor([2],"int8",strides=[-1])))", 32, "cannot be negative"},
                      Refusal{R"(p.f(Tensor([2],"int8",device=0)))", 23, "place="},
                      Refusal{R"(p.f(Tensor([2],"int8",is_contiguous=0)))", 37, "True or False"},
                      Refusal{R"(p.f(Tensor([2],"int8",memory_format="channels_last")))", 37,
                              "channels_last is for 4 dimensions, and the tensor has 1"},
                      Refusal{R"(p.f(Tensor([2],"int8",memory_format=torch.save)))", 37,
                              "a tensor is channels_last"},
                      Refusal{R"(p.f(Tensor([2],"int8",place=cpu)))", 29, "Place(cpu)"},
                      Refusal{"p.f(Place(0))", 11, "a device such as"},
                      Refusal{"p.f(Place(gpu:))", 15, "the number"},
                      Refusal{"p.f(Place(gpu:0, 1))", 16, "')'"},
                      Refusal{"p.f(paddle.Size(2))", 17, "'['"}));

INSTANTIATE_TEST_SUITE_P(
    Names, RefusedCall,
    ::testing::Values(
        Refusal{R"(paddle.add(__import__("os").system("touch pwned")))", 12, "'__import__'"},
        Refusal{"paddle.add(Tenosr([1],\"int8\"))", 12, "did you mean 'Tensor'?"},
        Refusal{"paddle.add(none)", 12, "did you mean 'None'?"},
        Refusal{"paddle.add(lambda: 0)", 12, "unknown name 'lambda'"},
        Refusal{"torch.f(torch.chanels_last)", 9, "did you mean 'torch.channels_last'?"},
        Refusal{"paddle.add(x=open)", 14, "unknown name 'open'"},
        Refusal{"paddle.add(Dtype(float23))", 18,
                "unknown dtype 'float23'; did you mean 'float32'?"},
        Refusal{"paddle.add(VarType())", 20, "expected a dtype"},
        Refusal{"paddle.add(type(os.system))", 17, "expected bool, int, float"},
        Refusal{"paddle.add(Tensor([2],\"float33\"))", 23,
                "unknown dtype 'float33'; did you mean 'float32'?"},
        Refusal{"paddle.add(Tensor([2],\"\\x41\"))", 23, "unknown dtype"},
        Refusal{"paddle.add(Tensor([2]))", 22, "expected ','"},
        Refusal{"paddle.add(Tensor([2],float32))", 23, "expected a dtype in quotes"},
        Refusal{"paddle.add(Tensor([2],\"fp32\"))", 23, "did you mean 'float32'?"},
        Refusal{"paddle.add(torch.float31)", 12, "unknown name 'torch.float31'"},
        Refusal{"paddle.add(Tensor(2,\"int8\"))", 19, "expected a shape"}));

INSTANTIATE_TEST_SUITE_P(
    Dimensions, RefusedCall,
    ::testing::Values(
        Refusal{"paddle.add(Tensor([2, -3],\"int8\"))", 23, "cannot be negative"},
        Refusal{"paddle.add(Tensor([2, 9223372036854775808],\"int8\"))", 23, "64 bits"},
        Refusal{"paddle.add(Tensor([2, 99999999999999999999999],\"int8\"))", 23, "64 bits"},
        Refusal{"paddle.add(Tensor([2, 1.5],\"int8\"))", 23, "whole number"},
        Refusal{"paddle.add(Tensor([2, 1e3],\"int8\"))", 23, "whole number"},
        Refusal{"paddle.add(Tensor([2, None],\"int8\"))", 23, "whole number"},
        Refusal{"paddle.add(Tensor([2, 007],\"int8\"))", 23, "cannot begin with 0"},
        Refusal{"paddle.add(Tensor([2 3],\"int8\"))", 22, "expected ',' or ']'"}));

INSTANTIATE_TEST_SUITE_P(
    Literals, RefusedCall,
    ::testing::Values(Refusal{"paddle.add(\"open)", 12, "never closed"},
                      Refusal{"paddle.add(\"a\\qb\")", 14, "unknown escape"},
                      Refusal{"paddle.add(\"\\x4\")", 16, "hexadecimal"},
                      Refusal{"paddle.add(\"\\ud800\")", 13, "names no character"},
                      Refusal{"paddle.add(\"\\U00110000\")", 13, "names no character"},
                      Refusal{"paddle.add(\"end\\", 16, "unknown escape"},
                      Refusal{"paddle.add(1e)", 14, "exponent"},
                      Refusal{"paddle.add(1.2.3)", 15, "after a number"},
                      Refusal{"paddle.add(0x10)", 13, "after a number"},
                      Refusal{"paddle.add(1_000)", 13, "after a number"},
                      Refusal{"paddle.add(007)", 12, "cannot begin with 0"},
                      Refusal{"paddle.add(1" + std::string(4300, '0') + ")", 12, "4300"},
                      Refusal{"paddle.add(--1)", 13, "after the sign"},
                      Refusal{"paddle.add(-.)", 13, "after the sign"},
                      Refusal{"paddle.add(-x)", 13, "after the sign"},
                      Refusal{"paddle.add(1+2)", 13, "not evaluated"},
                      Refusal{"paddle.add(1e999)", 12, "out of a float's range"},
                      Refusal{"paddle.add(complex(1))", 21, "expected ','"},
                      Refusal{"paddle.add(complex(x,1))", 20, "expected a number"},
                      Refusal{"paddle.add(complex(1j,1))", 20, "real number"}));

TEST(Refused, TextThatIsNotText) {
  expect_refused({std::string("paddle.add(\0)", 13), 12, "NUL"});
  expect_refused({"paddle.add(\"\xFF\")", 13, "not UTF-8"});
  // Columns count characters, so the two bytes of é are one.
  expect_refused({"paddle.add(\"\xC3\xA9\", \"\xC3\")", 18, "not UTF-8"});
  expect_refused({"paddle.add(\"\xC3\xA9\", ?)", 17, "expected a value"});
}

TEST(Refused, WhatIsBeyondTheLimits) {
  const std::string begin = "paddle.add(\"";
  expect_refused({begin + std::string(kMaxLineBytes, 'x') + "\")", kMaxLineBytes + 1, "1 MiB"});
  Case out;
  const std::string full = begin + std::string(kMaxLineBytes - begin.size() - 2, 'x') + "\")";
  ASSERT_EQ(full.size(), kMaxLineBytes);
  EXPECT_TRUE(parse_case(full, out));

  const auto shape = [](std::size_t rank) {
    std::string dimensions;
    for (std::size_t i = 0; i < rank; ++i) dimensions += "1,";
    return "paddle.add(Tensor([" + dimensions + "],\"int8\"))";
  };
  EXPECT_TRUE(parse_case(shape(64), out));
  expect_refused({shape(65), 20 + 2 * 64, "more than 64 dimensions"});

  std::string arguments = "paddle.add(";
  for (int i = 0; i < 1024; ++i) arguments += "1,";
  EXPECT_TRUE(parse_case(arguments + ")", out));
  expect_refused({arguments + "1)", 12 + 2 * 1024, "more than 1024 arguments"});
}

TEST(Refused, DeepNestingWithoutDeepRecursion) {
  Case out;
  for (const std::string open : {"list[", "tuple(", "[", "(", "slice("}) {
    std::string text = "paddle.add(";
    for (int i = 0; i < 100'000; ++i) text += open;
    const std::size_t bracket_of_level_65 = 11 + 65 * open.size();
    expect_refused({text, bracket_of_level_65, "nested deeper than 64 levels"});
  }
  const auto nested = [](std::size_t levels) {
    return "paddle.add(" + std::string(levels, '[') + std::string(levels, ']') + ")";
  };
  EXPECT_TRUE(parse_case(nested(64), out));
  EXPECT_FALSE(parse_case(nested(65), out));
}

TEST(Refused, NothingIsEverRun) {
  Case out;
  ASSERT_FALSE(parse_case(R"(paddle.add(__import__("os").system("touch pwned")))", out));
  EXPECT_FALSE(std::filesystem::exists("pwned"));
}

TEST(Refused, LongWordsAreCutInMessages) {
  Case out;
  const ParseStatus status =
      parse_case("paddle.add(Tensor([1],\"" + std::string(100'000, 'x') + "\"))", out);
  ASSERT_FALSE(status);
  EXPECT_LT(status.error().message.size(), 100U);
}

TEST(Diagnostic, PutsTheCaretUnderTheColumn) {
  EXPECT_EQ(describe({12, "expected a value"}, "cases.txt:3", "paddle.add(?)"),
            "cases.txt:3:12: expected a value\n"
            "  paddle.add(?)\n"
            "             ^\n");
}

TEST(Diagnostic, ShowsAWindowOfALongLine) {
  const std::string text = std::string(300, 'a') + "?" + std::string(300, 'b');
  const std::string shown = describe({301, "m"}, "f:1", text);
  EXPECT_EQ(shown, "f:1:301: m\n  …" + std::string(60, 'a') + "?" + std::string(40, 'b') + "…\n" +
                       std::string(2 + 1 + 60, ' ') + "^\n");
}

TEST(Diagnostic, ShowsNothingThatATerminalActsOn) {
  EXPECT_EQ(describe({1, "m"}, "f:1", "\x1B[31m\x7F\xFF\xC3"), "f:1:1: m\n  ?[31m???\n  ^\n");
  EXPECT_EQ(describe({1, "m"}, "f:1", ""), "f:1:1: m\n  \n  ^\n");
}

TEST(Diagnostic, CountsCharactersAsTheParserDoes) {
  const std::string text = "paddle.add('\xC3\xA9\xC3\xA9', ?)";
  Case out;
  const ParseStatus status = parse_case(text, out);
  ASSERT_FALSE(status);
  EXPECT_THAT(
      describe(status.error(), "f:1", text),
      HasSubstr("  paddle.add('\xC3\xA9\xC3\xA9', ?)\n" + std::string(2 + 17, ' ') + "^\n"));
}

}  // namespace
}  // namespace assay
