// The scripts of assay repro, run by real Paddle: every dtype arrives as its values, and every form
// of argument as itself.

#include <gmock/gmock.h>

#include "report/repro.h"
#include "stored_run.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using testing::InputParts;
using testing::run_program;
using testing::StoredRun;

InputParts values(std::vector<double> literal) { return {{}, std::move(literal)}; }

struct PaddleCase {
  std::string text;
  std::vector<InputParts> inputs;
  std::vector<std::string> printed;  // worked out by hand
};

const std::vector<PaddleCase>& cases() {
  static const std::vector<PaddleCase> all{
      {R"(paddle.add(Tensor([3], "float32"), Tensor([3], "float32")))",
       {values({1, 2, 3}), values({10, 20, 30})},
       {"[11., 22., 33.]", "gradients:", "[1., 1., 1.]"}},
      {R"(paddle.multiply(x=Tensor([2, 2], "float64"), y=Tensor([], "float64")))",
       {values({1, -2, 3, 0.5}), values({4})},
       {"[[ 4., -8.],\n        [12.,  2.]]", "gradients:"}},
      {R"(paddle.cast(Tensor([3], "bfloat16"), Dtype(float32)))",
       {values({1.5, -384, 0.0078125})},
       {"[1.50000000, -384.     , 0.00781250]"}},
      {R"(paddle.cast(Tensor([2], "float16"), "float64"))", {values({1.5, 65504})}, {"65504."}},
      {R"(paddle.cast(Tensor([2], "float8_e4m3fn"), Dtype(float32)))",
       {values({448, -0.5})},
       {"448."}},
      {R"(paddle.cast(Tensor([2], "float8_e5m2"), Dtype(float32)))",
       {values({57344, 1})},
       {"57344."}},
      {R"(paddle.logical_not(Tensor([2], "bool")))", {values({1, 0})}, {"[False, True ]"}},
      {R"(paddle.sum(Tensor([2], "int8")))", {values({-128, 28})}, {"-100"}},
      {R"(paddle.sum(Tensor([2], "uint8")))", {values({200, 45})}, {"245"}},
      {R"(paddle.sum(Tensor([1], "int64")))",
       {values({-4611686018427387904})},
       {"-4611686018427387904"}},
      {R"(paddle.real(Tensor([2], "complex64")))", {values({7, -8})}, {"[ 7., -8.]", "gradients:"}},
      {R"(paddle.real(Tensor([2], "complex128")))", {values({9, 1})}, {"[9., 1.]"}},
      {R"(paddle.concat(list[Tensor([1, 2], "int32"), Tensor([0, 2], "int32")], axis=-2))",
       {values({5, 6}), {}},
       {"shape=[1, 2]", "[[5, 6]]"}},
      {R"(paddle.Tensor.__getitem__(Tensor([4], "float32"), tuple(slice(None, None, 2), Ellipsis, None)))",
       {values({1, 2, 3, 4})},
       {"shape=[2, 1]", "[[1.],\n        [3.]]", "[1., 0., 1., 0.]"}},
      {R"(paddle.Tensor.__setitem__(Tensor([2], "float32"), 0, 7.0))",
       {values({1, 2})},
       {"[7., 2.]", "[0., 1.]"}},
      {R"(paddle.abs_(Tensor([2], "float32")))", {values({-1, 2})}, {"[1., 2.]", "[-1.,  1.]"}},
      {R"(paddle.topk(Tensor([3], "float32"), k=1))",
       {values({1, 9, 3})},
       {"[9.]", "[0., 1., 0.]"}},
      {R"(paddle.full(shape=list[2], fill_value=-math.inf, dtype=VarType(float64)))",
       {},
       {"[-inf., -inf.]"}},
      {R"(paddle.einsum("i,i->", Tensor([2], "float32"), Tensor([2], "float32")))",
       {values({1, 2}), values({3, 4})},
       {"11."}},
  };
  return all;
}

TEST(ReproPaddle, ScriptsRunAndPrintTheValues) {
  const std::filesystem::path python =
      std::filesystem::path(ASSAY_SOURCE_DIR) / ".venv" / "paddle" / "bin" / "python";
  if (!std::filesystem::exists(python)) GTEST_SKIP() << "no environment with Paddle: make setup";
  StoredRun run;
  // One interpreter runs all scripts, as __main__: importing Paddle takes seconds.
  std::vector<std::string> argv{python.string(), "-c",
                                "import runpy, sys, traceback\n"
                                "for i, path in enumerate(sys.argv[1:]):\n"
                                "    print(f'== {i}')\n"
                                "    try: runpy.run_path(path, run_name='__main__')\n"
                                "    except Exception: traceback.print_exc(file=sys.stdout)\n"
                                "print('== end')\n"};
  for (const PaddleCase& each : cases()) {
    const std::uint64_t id = run.add_filled(each.text, each.inputs);
    const auto found = StoredRun::must(find_case(run.store(), format_case_id(id)));
    const auto repro =
        StoredRun::must(write_repro(run.store(), found, run.folder() / format_case_id(id)));
    EXPECT_THAT(repro.notes, ::testing::IsEmpty());
    argv.push_back(repro.script.string());
  }
  const auto ran = run_program(run.folder(), argv);
  ASSERT_TRUE(ran.status.ok()) << ran.output;
  std::size_t at = 0;
  for (std::size_t i = 0; i < cases().size(); ++i) {
    at = ran.output.find("== " + std::to_string(i) + "\n");
    ASSERT_NE(at, std::string::npos);
    const std::string printed = ran.output.substr(at, ran.output.find("\n== ", at) - at);
    EXPECT_THAT(printed, Not(HasSubstr("Traceback"))) << cases()[i].text;
    for (const std::string& part : cases()[i].printed) {
      EXPECT_THAT(printed, HasSubstr(part)) << cases()[i].text;
    }
  }
}

}  // namespace
}  // namespace assay
