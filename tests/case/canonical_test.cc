// The canonical text and the id of a case.

#include "case/canonical.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "case/parser.h"

namespace assay {
namespace {

std::string canonical(const std::string& text) {
  Case call;
  const ParseStatus status = parse_case(text, call);
  return status ? canonical_text(call) : "error: " + status.error().message;
}

// The canonical text of the only positional argument.
std::string canonical_value(const std::string& text) {
  const std::string whole = canonical("p.f(" + text + ")");
  return whole.size() < 5 ? whole : whole.substr(4, whole.size() - 5);
}

TEST(Canonical, SpacesAndCommas) {
  EXPECT_EQ(
      canonical(
          R"(paddle.concat( list[Tensor([2,3],"float32"),Tensor([],'int8',),], axis = 0 , name=None, ))"),
      R"(paddle.concat(list[Tensor([2, 3], "float32"), Tensor([], "int8")], axis=0, name=None))");
  EXPECT_EQ(canonical("p.f()"), "p.f()");
  EXPECT_EQ(canonical_value("tuple(slice(None,-1,2),...,list[],tuple())"),
            "tuple(slice(None, -1, 2), Ellipsis, list[], tuple())");
}

TEST(Canonical, TheSameTensorAgain) {
  EXPECT_EQ(canonical(R"(p.f(Tensor([2],"int8"),y = Tensor # 1))"),
            R"(p.f(Tensor([2], "int8"), y=Tensor#1))");
  const std::string behind = "error: Tensor#2: the case has only 1 tensor before it";
  EXPECT_EQ(canonical(R"(p.f(Tensor([2],"int8"), Tensor#2))"), behind);
  EXPECT_EQ(canonical("p.f(Tensor#0)"), "error: Tensor#0: the case has only 0 tensors before it");
  EXPECT_EQ(canonical("p.f(Tensor#x)").substr(0, 6), "error:");
}

TEST(Canonical, KeywordsKeepTheirOrder) { EXPECT_EQ(canonical("p.f(b=1,a=2)"), "p.f(b=1, a=2)"); }

TEST(Canonical, Numbers) {
  EXPECT_EQ(canonical_value("+7"), "7");
  EXPECT_EQ(canonical_value("-0"), "0");
  EXPECT_EQ(canonical_value("+98765432109876543210"), "98765432109876543210");
  EXPECT_EQ(canonical_value("2.00"), "2.0");
  EXPECT_EQ(canonical_value("2."), "2.0");
  EXPECT_EQ(canonical_value("."), "0.0");
  EXPECT_EQ(canonical_value("-0.0"), "-0.0");
  EXPECT_EQ(canonical_value("0.1000000000000000055511151231257827"), "0.1");
  EXPECT_EQ(canonical_value("0.00001"), "1e-05");
  EXPECT_EQ(canonical_value("1e22"), "1e+22");
  EXPECT_EQ(canonical_value("123456789012345680.0"), "123456789012345680.0");
  EXPECT_EQ(canonical_value("inf"), "math.inf");
  EXPECT_EQ(canonical_value("-np.inf"), "-math.inf");
  EXPECT_EQ(canonical_value("-math.nan"), "nan");
  EXPECT_EQ(canonical_value("42.1-2j"), "complex(42.1, -2.0)");
}

TEST(Canonical, Strings) {
  EXPECT_EQ(canonical_value("'a'"), "\"a\"");
  EXPECT_EQ(canonical_value(R"('say "\'\\\n')"), R"("say \"'\\\x0a")");
  EXPECT_EQ(canonical_value(R"("\u5f62\x7f")"), "\"\xE5\xBD\xA2\\x7f\"");
}

TEST(Canonical, Dtypes) {
  for (const char* text : {"Dtype(float32)", "VarType(bool)", "type(numpy.int8)", "type(int)",
                           "type(bool)", "type(float)", "type(complex)"}) {
    EXPECT_EQ(canonical_value(text), text);
  }
  EXPECT_EQ(canonical_value("type(numpy.bool_)"), "type(numpy.bool)");
}

TEST(Canonical, WhereATensorLies) {
  EXPECT_EQ(
      canonical_value("Tensor(paddle.Size([16//4,2]),'int8', strides=[1, 4],place=Place(cpu))"),
      R"(Tensor([4, 2], "int8", place=Place(cpu), is_contiguous=False, strides=[1, 4]))");
  EXPECT_EQ(canonical_value("Tensor([4, 2], 'int8', is_contiguous=False)"),
            R"(Tensor([4, 2], "int8", is_contiguous=False, strides=[1, 4]))");
  // The strides that torch.empty(2, 3, 8, 5).to(memory_format=torch.channels_last) has.
  for (const char* format : {"'channels_last'", "torch.channels_last"}) {
    EXPECT_EQ(canonical_value(fmt::format("Tensor([2,3,8,5],'int8',memory_format={})", format)),
              R"(Tensor([2, 3, 8, 5], "int8", is_contiguous=False, strides=[120, 1, 15, 3]))");
  }
  EXPECT_EQ(
      canonical_value("Tensor([2,3,4,8,5],'int8',memory_format=torch.channels_last_3d)"),
      R"(Tensor([2, 3, 4, 8, 5], "int8", is_contiguous=False, strides=[480, 1, 120, 15, 3]))");
  EXPECT_EQ(canonical_value("Tensor([2,1,8,5],'int8',memory_format=torch.channels_last)"),
            R"(Tensor([2, 1, 8, 5], "int8"))");
  EXPECT_EQ(canonical_value("torch.preserve_format"), R"("preserve_format")");
  EXPECT_EQ(canonical_value("torch.sparse_coo"), R"("sparse_coo")");
  EXPECT_EQ(canonical_value("Tensor([4,2],'int8', strides=[2,1], is_contiguous=True)"),
            R"(Tensor([4, 2], "int8"))");
  EXPECT_EQ(canonical_value("Place( gpu:0 )"), "Place(gpu:0)");
  EXPECT_EQ(canonical_value("paddle.Size([2])"), "list[2]");
}

TEST(Canonical, Layers) {
  EXPECT_EQ(canonical("p.L(8,bias=True, )( Tensor([8],'int8') ,2)"),
            R"(p.L(8, bias=True)(Tensor([8], "int8"), 2))");
  EXPECT_EQ(canonical("p.L() ()"), "p.L()()");
  EXPECT_EQ(canonical("p.L(1)()"), "p.L(1)()");
  EXPECT_EQ(canonical("p.L()(1)"), "p.L()(1)");
}

TEST(CaseId, IsXxh3) {
  // The sanity-check value of xxHash for no input and seed 0, and of "a" as `xxhsum -H3` prints it.
  EXPECT_EQ(case_id(""), 0x2D06800538D394C2U);
  EXPECT_EQ(case_id("a"), 0xE6C632B61E964E1FU);
}

TEST(CaseId, HasATextForm) {
  EXPECT_EQ(format_case_id(0x2D06800538D394C2U), "2d06800538d394c2");
  EXPECT_EQ(format_case_id(1), "0000000000000001");
  EXPECT_EQ(parse_case_id("2d06800538d394c2"), 0x2D06800538D394C2U);
  for (const char* text :
       {"", "1", "2D06800538D394C2", "2d06800538d394cg", "2d06800538d394c2 ", "-000000000000001"}) {
    EXPECT_FALSE(parse_case_id(text)) << text;
  }
}

}  // namespace
}  // namespace assay
