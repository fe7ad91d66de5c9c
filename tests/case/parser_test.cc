// Every form of the case language and its meaning.

#include "case/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Parses, or fails the test with the error.
Case parsed(std::string_view text) {
  Case out;
  const ParseStatus status = parse_case(text, out);
  EXPECT_TRUE(status) << text << "\ncolumn " << (status ? 0 : status.error().column) << ": "
                      << (status ? "" : status.error().message);
  return out;
}

// A call with one argument; the Case is kept here because its Value is a view.
struct OneValue {
  explicit OneValue(const std::string& text) : call(parsed("paddle.f(" + text + ", )")) {}
  Value value() const { return call.argument(0).value; }
  Case call;
};

std::vector<ValueKind> kinds(Value parent) {
  std::vector<ValueKind> out;
  for (const Value child : parent.children()) out.push_back(child.kind());
  return out;
}

TEST(Parser, ReadsTheExampleOfTheDesign) {
  const Case call = parsed(
      R"(paddle.matmul(Tensor([1,32,1024],"bfloat16"), Tensor([1024,32768],"bfloat16"), transpose_x=False, ))");
  EXPECT_EQ(call.api(), "paddle.matmul");
  ASSERT_EQ(call.argument_count(), 3U);
  EXPECT_EQ(call.argument(0).keyword, "");
  EXPECT_EQ(call.argument(2).keyword, "transpose_x");
  EXPECT_EQ(call.argument(2).value.kind(), ValueKind::boolean);
  EXPECT_FALSE(call.argument(2).value.boolean());

  ASSERT_EQ(call.tensor_count(), 2U);
  EXPECT_THAT(call.tensor(0).shape, ElementsAre(1, 32, 1024));
  EXPECT_THAT(call.tensor(1).shape, ElementsAre(1024, 32768));
  EXPECT_EQ(call.tensor(1).dtype, DType::bfloat16);
  EXPECT_EQ(call.total_elements(), 1U * 32 * 1024 + 1024U * 32768);
  EXPECT_EQ(call.total_bytes(), 2 * call.total_elements());
}

TEST(Parser, KeepsTheTextAsWrittenWithoutBlanksAround) {
  EXPECT_EQ(parsed("  paddle.f( 1 , )\t ").text(), "paddle.f( 1 , )");
}

TEST(Parser, ReadsMethodsAndDunders) {
  EXPECT_EQ(parsed("paddle.Tensor.__getitem__(1)").api(), "paddle.Tensor.__getitem__");
  EXPECT_EQ(parsed("paddle.Tensor.exponential_()").argument_count(), 0U);
}

TEST(Parser, ReadsConstants) {
  EXPECT_TRUE(OneValue("None").value().is(ValueKind::none));
  EXPECT_TRUE(OneValue("True").value().boolean());
  EXPECT_FALSE(OneValue("False").value().boolean());
  EXPECT_TRUE(OneValue("Ellipsis").value().is(ValueKind::ellipsis));
  EXPECT_TRUE(OneValue("...").value().is(ValueKind::ellipsis));
}

TEST(Parser, ReadsIntegersOfAnySize) {
  EXPECT_EQ(OneValue("0").value().integer(), 0);
  EXPECT_EQ(OneValue("-1").value().integer(), -1);
  EXPECT_EQ(OneValue("+7").value().integer(), 7);
  EXPECT_EQ(OneValue("9223372036854775807").value().integer(), INT64_MAX);
  EXPECT_EQ(OneValue("-9223372036854775808").value().integer(), INT64_MIN);

  const OneValue above("9223372036854775808");
  EXPECT_TRUE(above.value().is(ValueKind::big_integer));
  EXPECT_EQ(above.value().text(), "9223372036854775808");
  EXPECT_EQ(OneValue("-9223372036854775809").value().text(), "-9223372036854775809");
  EXPECT_EQ(OneValue("+123456789012345678901234567890").value().text(),
            "123456789012345678901234567890");
}

TEST(Parser, ReadsFloatsOfEveryForm) {
  const auto value = [](const char* text) {
    const OneValue one(text);
    EXPECT_TRUE(one.value().is(ValueKind::floating)) << text;
    return one.value().floating();
  };
  EXPECT_EQ(value("1e-05"), 1e-05);
  EXPECT_EQ(value("1E5"), 1e5);
  EXPECT_EQ(value("1e+22"), 1e22);
  EXPECT_EQ(value("240."), 240.0);
  EXPECT_EQ(value(".09994"), 0.09994);
  EXPECT_EQ(value("."), 0.0);  // in the public corpora, among zeros without their leading 0
  EXPECT_EQ(value("-.5"), -0.5);
  EXPECT_EQ(value("-1.7976931348623157e+308"), -std::numeric_limits<double>::max());
  EXPECT_EQ(value("4.9406564584124654e-324"), std::numeric_limits<double>::denorm_min());
  EXPECT_TRUE(std::signbit(value("-0.0")));
  for (const char* text : {"inf", "+inf", "math.inf", "numpy.inf", "np.inf"}) {
    EXPECT_EQ(value(text), kInfinity) << text;
  }
  EXPECT_EQ(value("-inf"), -kInfinity);
  EXPECT_EQ(value("-math.inf"), -kInfinity);
  for (const char* text : {"nan", "-nan", "math.nan", "numpy.nan"}) {
    EXPECT_TRUE(std::isnan(value(text))) << text;
  }
}

TEST(Parser, ReadsComplexNumbersOfEveryForm) {
  const auto value = [](const char* text) {
    const OneValue one(text);
    EXPECT_TRUE(one.value().is(ValueKind::complex)) << text;
    return one.value().complex();
  };
  using Complex = std::complex<double>;
  EXPECT_EQ(value("complex(0.0,2.0)"), Complex(0, 2));
  EXPECT_EQ(value("complex( -3, 1e2, )"), Complex(-3, 100));
  EXPECT_EQ(value("42.1+42.1j"), Complex(42.1, 42.1));
  EXPECT_EQ(value("1.79769313e+308-1.79769313e+308j"), Complex(1.79769313e+308, -1.79769313e+308));
  EXPECT_EQ(value("2j"), Complex(0, 2));
  EXPECT_EQ(value("(-1-0.5j)"), Complex(-1, -0.5));  // as Python prints it
  EXPECT_EQ(value("complex(-math.inf,inf)"), Complex(-kInfinity, kInfinity));
  EXPECT_TRUE(std::isnan(value("complex(nan,nan)").real()));
  EXPECT_EQ(value("-inf+infj"), Complex(-kInfinity, kInfinity));
  EXPECT_TRUE(std::isnan(value("nanj").imag()));
}

TEST(Parser, ReadsStrings) {
  EXPECT_EQ(OneValue(R"("b h i d, b h j d -> b h i j")").value().text(),
            "b h i d, b h j d -> b h i j");
  EXPECT_EQ(OneValue("''").value().text(), "");
  EXPECT_EQ(OneValue(R"("it's")").value().text(), "it's");
  EXPECT_EQ(OneValue(R"('a "b" ), list[')").value().text(), "a \"b\" ), list[");
  EXPECT_EQ(OneValue("\"\xE5\xBD\xA2\"").value().text(), "\xE5\xBD\xA2");
}

TEST(Parser, ResolvesEscapes) {
  EXPECT_EQ(OneValue(R"("a\\b\"c\'d\n\r\t")").value().text(), "a\\b\"c'd\n\r\t");
  EXPECT_EQ(OneValue(R"("\x41\u00e9\u5f62\U0001F600")").value().text(),
            "A\xC3\xA9\xE5\xBD\xA2\xF0\x9F\x98\x80");
  EXPECT_EQ(OneValue(R"("\x00")").value().text(), std::string(1, '\0'));
  // Two strings with escapes in one case stay separate.
  const OneValue two(R"(list["\x41b", "c\x44", "\\"])");
  std::vector<std::string> texts;
  for (const Value child : two.value().children()) texts.emplace_back(child.text());
  EXPECT_THAT(texts, ElementsAre("Ab", "cD", "\\"));
}

TEST(Parser, ReadsTensors) {
  const Case scalar = parsed(R"(paddle.f(Tensor([],"float64")))");
  EXPECT_THAT(scalar.tensor(0).shape, IsEmpty());
  EXPECT_EQ(scalar.tensor(0).elements(), 1U);
  EXPECT_EQ(scalar.tensor(0).bytes(), 8U);

  const Case odd = parsed(R"(paddle.f(Tensor ( [ 1, 512,  512, 32, ] , 'bool' , ) ))");
  EXPECT_THAT(odd.tensor(0).shape, ElementsAre(1, 512, 512, 32));
  EXPECT_EQ(odd.tensor(0).dtype, DType::boolean);
  EXPECT_EQ(parsed(R"(paddle.f(Tensor([0, 9],"int8")))").total_elements(), 0U);
}

TEST(Parser, NumbersTensorsInOrderOfAppearance) {
  const Case call = parsed(
      R"(paddle.f(list[Tensor([1],"int8"),tuple(Tensor([2],"int8"),3,),], Tensor([4],"int8"), x=Tensor([5],"int8"), ))");
  ASSERT_EQ(call.tensor_count(), 4U);
  std::vector<std::int64_t> sizes;
  for (const TensorSpec spec : call.tensors()) sizes.push_back(spec.shape[0]);
  EXPECT_THAT(sizes, ElementsAre(1, 2, 4, 5));
  EXPECT_EQ(call.argument(1).value.tensor_ordinal(), 2U);
  EXPECT_THAT(call.argument(2).value.tensor().shape, ElementsAre(5));
}

TEST(Parser, TheSameTensorAgain) {
  const Case call =
      parsed(R"(paddle.f(Tensor([1],"int8"), list[Tensor([2],"int8"), Tensor#2], y=Tensor # 1))");
  ASSERT_EQ(call.tensor_count(), 2U);
  EXPECT_EQ(call.total_elements(), 3U);
  EXPECT_FALSE(call.argument(0).value.repeats());
  const Value again = *std::next(call.argument(1).value.children().begin());
  EXPECT_TRUE(again.repeats());
  EXPECT_EQ(again.tensor_ordinal(), 1U);
  EXPECT_TRUE(call.argument(2).value.repeats());
  EXPECT_THAT(call.argument(2).value.tensor().shape, ElementsAre(1));
  EXPECT_NE(
      call,
      parsed(R"(paddle.f(Tensor([1],"int8"), list[Tensor([2],"int8"), Tensor#1], y=Tensor#1))"));
}

TEST(Parser, SaturatesWhatDoesNotFit) {
  const Case huge = parsed(
      R"(paddle.f(Tensor([9223372036854775807, 3],"int8"), Tensor([4611686018427387904, 2],"float64"), Tensor([0, 9223372036854775807, 9223372036854775807],"int8")))");
  EXPECT_EQ(huge.tensor(0).elements(), UINT64_MAX);
  EXPECT_EQ(huge.tensor(1).elements(), std::uint64_t{1} << 63U);
  EXPECT_EQ(huge.tensor(1).bytes(), UINT64_MAX);
  EXPECT_EQ(huge.tensor(2).elements(), 0U);
  EXPECT_EQ(huge.total_elements(), UINT64_MAX);
  EXPECT_EQ(huge.total_bytes(), UINT64_MAX);
}

TEST(Parser, ReadsDtypes) {
  const auto expect = [](const char* text, DType dtype, DTypeForm form) {
    const OneValue one(text);
    ASSERT_TRUE(one.value().is(ValueKind::dtype)) << text;
    EXPECT_EQ(one.value().dtype(), dtype) << text;
    EXPECT_EQ(one.value().dtype_form(), form) << text;
  };
  expect("Dtype(float8_e4m3fn)", DType::float8_e4m3fn, DTypeForm::dtype);
  expect("torch.bfloat16", DType::bfloat16, DTypeForm::dtype);
  expect("paddle.float32", DType::float32, DTypeForm::dtype);
  expect("Dtype(torch.int8)", DType::int8, DTypeForm::dtype);
  expect("VarType( bfloat16 )", DType::bfloat16, DTypeForm::var_type);
  expect("type(numpy.float32)", DType::float32, DTypeForm::numpy_type);
  expect("type(numpy.bool)", DType::boolean, DTypeForm::numpy_type);
  expect("type(numpy.bool_)", DType::boolean, DTypeForm::numpy_type);
  expect("type(bool)", DType::boolean, DTypeForm::builtin_type);
  expect("type(int)", DType::int64, DTypeForm::builtin_type);
  expect("type(float)", DType::float64, DTypeForm::builtin_type);
  expect("type(complex)", DType::complex128, DTypeForm::builtin_type);
  for (const DTypeInfo& entry : kDTypes) {
    expect(("Dtype(" + std::string(entry.name) + ")").c_str(), entry.dtype, DTypeForm::dtype);
  }
}

TEST(Parser, ReadsNestedSequences) {
  const OneValue nested("tuple(list[list[1,0,],list[],],slice(None,-1,2),Ellipsis,)");
  ASSERT_TRUE(nested.value().is(ValueKind::tuple));
  EXPECT_EQ(nested.value().size(), 3U);
  EXPECT_THAT(kinds(nested.value()),
              ElementsAre(ValueKind::list, ValueKind::slice, ValueKind::ellipsis));
  auto child = nested.value().children().begin();
  EXPECT_THAT(kinds(*child), ElementsAre(ValueKind::list, ValueKind::list));
  EXPECT_THAT(kinds(*(*child).children().begin()),
              ElementsAre(ValueKind::integer, ValueKind::integer));
  ++child;
  EXPECT_THAT(kinds(*child), ElementsAre(ValueKind::none, ValueKind::integer, ValueKind::integer));
}

TEST(Parser, ReadsPlainBracketsAsPythonDoes) {
  EXPECT_EQ(parsed("paddle.f([1, [2]])"), parsed("paddle.f(list[1,list[2,],])"));
  EXPECT_EQ(parsed("paddle.f((1, 2))"), parsed("paddle.f(tuple(1,2,))"));
  EXPECT_EQ(parsed("paddle.f((1,))"), parsed("paddle.f(tuple(1))"));
  EXPECT_EQ(parsed("paddle.f(())"), parsed("paddle.f(tuple())"));
  EXPECT_EQ(parsed("paddle.f((1))"), parsed("paddle.f(1)"));
  EXPECT_EQ(parsed("paddle.f(((1, 2)), 3)"), parsed("paddle.f(tuple(1,2), 3)"));
}

TEST(Parser, KeywordsMayBeNamesOfForms) {
  const Case call = parsed("paddle.f(list=1, Tensor = 2, nan=3, type=4)");
  std::vector<std::string> keywords;
  for (const Argument argument : call.arguments()) keywords.emplace_back(argument.keyword);
  EXPECT_THAT(keywords, ElementsAre("list", "Tensor", "nan", "type"));
}

TEST(Parser, ReusesACase) {
  Case call;
  ASSERT_TRUE(parse_case(R"(paddle.f(Tensor([1],"int8"), "\x41", a=1))", call));
  ASSERT_FALSE(parse_case("paddle.f(list[1,", call));
  ASSERT_TRUE(parse_case("paddle.g(\"\\x42\")", call));
  EXPECT_EQ(call, parsed("paddle.g('B')"));
  EXPECT_EQ(call.tensor_count(), 0U);
}

TEST(Parser, TellsMeaningsApart) {
  for (const auto& [a, b] : std::vector<std::pair<const char*, const char*>>{
           {"1", "2"},
           {"1", "1.0"},
           {"0.0", "-0.0"},
           {"1", "True"},
           {"'a'", "'b'"},
           {"x=1", "y=1"},
           {"x=1", "1"},
           {"list[1]", "tuple(1)"},
           {"list[1, list[]]", "list[1], list[]"},
           {"list[list[1]]", "list[1]"},
           {"Dtype(int8)", "VarType(int8)"},
           {"type(int)", "type(numpy.int64)"},
           {"9223372036854775808", "9223372036854775809"},
           {"Tensor([1],'int8')", "Tensor([1],'uint8')"},
           {"Tensor([1, 2],'int8'), Tensor([],'int8')", "Tensor([1],'int8'), Tensor([2],'int8')"},
           {"complex(0,1)", "complex(1,0)"},
           {"a=1, b=2", "b=2, a=1"}}) {
    EXPECT_FALSE(OneValue(a).call == OneValue(b).call) << a << " against " << b;
  }
  EXPECT_EQ(OneValue("nan").call, OneValue("-math.nan").call);
}

TEST(ParseLine, HandsOverEveryCallOfALineThatLostItsBreak) {
  Case scratch;
  std::vector<std::string> texts;
  const auto collect = [&](const Case& call) { texts.emplace_back(call.text()); };
  ASSERT_TRUE(parse_line("paddle.f(1, )paddle.g(2, ) paddle.h()", scratch, collect));
  EXPECT_THAT(texts, ElementsAre("paddle.f(1, )", "paddle.g(2, )", "paddle.h()"));

  // An error in one of the calls passes none to the callback. Its column counts from the line's
  // start.
  texts.clear();
  const ParseStatus status = parse_line("paddle.f(1, )paddle.g(?)", scratch, collect);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().column, 23U);
  EXPECT_THAT(texts, IsEmpty());
}

TEST(ParseLine, BoundsTheCallsOfOneLine) {
  std::string line;
  for (std::size_t i = 0; i < kMaxCallsPerLine; ++i) line += "a.b()";
  Case scratch;
  std::size_t calls = 0;
  const auto count = [&](const Case&) { ++calls; };
  EXPECT_TRUE(parse_line(line, scratch, count));
  EXPECT_EQ(calls, kMaxCallsPerLine);
  EXPECT_FALSE(parse_line(line + "a.b()", scratch, count));
}

std::vector<std::int64_t> listed(std::span<const std::int64_t> numbers) {
  return {numbers.begin(), numbers.end()};
}

TEST(Parser, ReadsADevice) {
  const OneValue one("Place(gpu:0)");
  EXPECT_EQ(one.value().kind(), ValueKind::place);
  EXPECT_EQ(one.value().text(), "gpu:0");
  EXPECT_EQ(OneValue("Place( cpu )").value().text(), "cpu");
}

TEST(Parser, ReadsPaddlesSizeAsTheListInIt) {
  EXPECT_THAT(
      listed(OneValue(R"(Tensor(paddle.Size([63, 128]),"float32"))").value().tensor().shape),
      ElementsAre(63, 128));
  const OneValue one("paddle.Size([2, 3])");
  EXPECT_EQ(one.value().kind(), ValueKind::list);
  EXPECT_EQ(one.value().size(), 2U);
}

TEST(Parser, ComputesAnExtent) {
  const OneValue one(R"(Tensor([16777216//4, 2 * 3 + 4, 7//2*2, 9-4], "int8"))");
  EXPECT_THAT(listed(one.value().tensor().shape), ElementsAre(4194304, 10, 6, 5));
}

TEST(Parser, ReadsWhereATensorLies) {
  const OneValue one(
      R"(Tensor([2, 3],"float32",place=Place(cpu),is_contiguous=False,strides=[1, 2]))");
  const TensorSpec spec = one.value().tensor();
  EXPECT_EQ(spec.place, "cpu");
  EXPECT_THAT(listed(spec.strides), ElementsAre(1, 2));
  EXPECT_EQ(spec.storage(), 6U);
}

TEST(Parser, TensorsWithoutGapsHaveNoStrides) {
  EXPECT_THAT(OneValue(R"(Tensor([2, 3],"int8",strides=[3, 1]))").value().tensor().strides,
              IsEmpty());
  EXPECT_THAT(
      OneValue(R"(Tensor([2, 1, 3],"int8",strides=list[3, 9, 1]))").value().tensor().strides,
      IsEmpty());
  EXPECT_THAT(OneValue(R"(Tensor([2, 3],"int8",is_contiguous=True))").value().tensor().strides,
              IsEmpty());
}

TEST(Parser, ScatteredWithoutStridesLiesColumnByColumn) {
  EXPECT_THAT(
      listed(OneValue(R"(Tensor([2, 3],"int8",is_contiguous=False))").value().tensor().strides),
      ElementsAre(1, 2));
  const OneValue row(R"(Tensor([5],"int8",is_contiguous=False))");
  EXPECT_THAT(listed(row.value().tensor().strides), ElementsAre(2));
  EXPECT_EQ(row.value().tensor().storage(), 9U);
}

TEST(Parser, StorageOfHugeStridesSaturates) {
  const OneValue one(R"(Tensor([9, 9],"float32",strides=[9223372036854775807, 1]))");
  EXPECT_EQ(one.value().tensor().storage(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(one.value().tensor().elements(), 81U);
}

TEST(Parser, ReadsALayerThatIsMadeAndCalled) {
  const Case call =
      parsed(R"(paddle.nn.LayerNorm(8, epsilon=0.1) (Tensor([2, 8], "float32"), epsilon=2))");
  EXPECT_TRUE(call.constructs());
  EXPECT_EQ(call.construction_count(), 2U);
  ASSERT_EQ(call.argument_count(), 4U);
  EXPECT_EQ(call.argument(2).value.kind(), ValueKind::tensor);
  EXPECT_FALSE(parsed("paddle.f(8)").constructs());
  EXPECT_TRUE(parsed("paddle.nn.ReLU()()").constructs());
}

TEST(Parser, ALayerIsNoFunctionOfBoth) {
  EXPECT_FALSE(parsed("paddle.f(1)(2)") == parsed("paddle.f(1, 2)"));
  EXPECT_FALSE(parsed("paddle.f(1, 2)()") == parsed("paddle.f()(1, 2)"));
}

}  // namespace
}  // namespace assay
