// Operations of operators from their shapes, worked by hand: a multiply-add is two.

#include "timeline/analysis/flops.h"

#include <gmock/gmock.h>

#include "rank_trace.h"
#include "timeline/analysis/reports.h"
#include "timeline/operator_work.h"

namespace assay::timeline {
namespace {

using test::RankTrace;
using test::TheInsights;
using testing::ElementsAre;
using testing::HasSubstr;

struct Known {
  const char* name;
  std::vector<Shape> shapes;
  std::vector<std::string> values;
  double flop;
};

double flop_of(const Known& known) {
  const OperatorFormula* const formula = formula_of(known.name);
  if (formula == nullptr) return -2;
  const auto cost = cost_of(*formula, {known.shapes, {}, known.values});
  return cost ? cost->flop : -1;
}

TEST(OperatorCosts, OfProducts) {
  for (const Known& known : {
           Known{"aten::mm", {{64, 128}, {128, 32}}, {}, 2 * 64 * 128 * 32},
           Known{"aten::addmm", {{32}, {64, 128}, {128, 32}}, {}, 2 * 64 * 128 * 32},
           Known{"aten::bmm", {{4, 64, 128}, {4, 128, 32}}, {}, 4 * 2 * 64 * 128 * 32},
           Known{"aten::baddbmm", {{}, {4, 6, 8}, {4, 8, 5}}, {}, 4 * 2 * 6 * 8 * 5},
           Known{"aten::matmul", {{2, 1, 8, 16}, {3, 16, 4}}, {}, 2 * 3 * 2 * 8 * 16 * 4},
           Known{"aten::matmul", {{16}, {16}}, {}, 2 * 16},
           Known{"aten::linear", {{2, 3, 8}, {5, 8}, {5}}, {}, 2 * 3 * 2 * 8 * 5},
           Known{"aten::_grouped_mm", {{10, 8}, {4, 8, 6}}, {}, 10 * 2 * 8 * 6},
           Known{"aten::_grouped_mm", {{4, 10, 8}, {4, 8, 6}}, {}, 4 * 10 * 2 * 8 * 6},
           Known{"aten::mm", {{64, 128}, {64, 32}}, {}, -1},
           Known{"aten::mm", {{64, 128}}, {}, -1},
           Known{"aten::mm", {{-64, 128}, {128, 32}}, {}, -1},
           Known{"aten::relu", {{64, 128}}, {}, -2},
       }) {
    EXPECT_EQ(flop_of(known), known.flop) << known.name;
  }
}

// 2 images of 3 channels, 8 x 8; 4 filters of 3 x 3 at stride 2 with padding 1 give 4 x 4 points.
TEST(OperatorCosts, OfConvolutions) {
  const Shape x{2, 3, 8, 8};
  const Shape w{4, 3, 3, 3};
  const Shape y{2, 4, 4, 4};
  const double once = 2.0 * 2 * (4 * 4) * 4 * (3 * 3 * 3);
  const auto forward = [](const char* stride, const char* padding, const char* dilation) {
    return std::vector<std::string>{"", "", "", stride, padding, dilation, "False", "[0, 0]", "1"};
  };
  const auto backward = [](const char* mask) {
    return std::vector<std::string>{"",       "",      "",       "[4]", "[2, 2]", "[1, 1]",
                                    "[1, 1]", "False", "[0, 0]", "1",   mask};
  };
  for (const Known& known : {
           Known{"aten::convolution", {x, w, {4}}, forward("[2, 2]", "[1, 1]", "[1, 1]"), once},
           Known{"aten::convolution", {x, w, {4}}, forward("[2]", "[1]", "[1]"), once},
           Known{"aten::convolution", {x, w, {4}}, forward("[1, 1]", "[0, 0]", "[2, 2]"), once},
           Known{"aten::convolution", {x, {4, 1, 3, 3}}, forward("[2]", "[1]", "[1]"), once / 3},
           Known{"aten::convolution",
                 {x, {3, 4, 3, 3}},
                 {"", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "True", "[0, 0]", "1"},
                 2.0 * 2 * (8 * 8) * 3 * 4 * (3 * 3)},
           Known{"aten::convolution", {x, w, {4}}, {}, -1},
           Known{"aten::convolution", {x, w}, forward("[2]", "[4611686018427387904]", "[1]"), -1},
           Known{"aten::convolution", {{1LL << 62, 3, 8, 8}, w}, forward("[2]", "[1]", "[1]"), -1},
           Known{
               "aten::convolution_backward", {y, x, w}, backward("[True, True, False]"), 2 * once},
           Known{"aten::convolution_backward", {y, x, w}, backward("[False, True, True]"), once},
           Known{"aten::convolution_backward", {y, x, w}, backward("[True, False, True]"), once},
       }) {
    EXPECT_EQ(flop_of(known), known.flop) << known.name << known.values.size();
  }
}

// 2 x 4 heads, 8 queries and 32 keys of size 16, values of size 16 or 6. A causal mask leaves half
// of equal lengths; of 8 queries, the first sees one key, or the last sees all of them.
TEST(OperatorCosts, OfAttention) {
  const Shape q{2, 4, 8, 16};
  const Shape k{2, 4, 32, 16};
  const Shape small{2, 4, 32, 6};
  const Shape q_flash{2, 8, 4, 16};
  const Shape k_flash{2, 32, 4, 16};
  const Shape packed{64, 4, 16};
  const double scores = 2.0 * 2 * 4 * 8 * 32 * 16;
  const double square = 2.0 * 2 * 4 * 32 * 32 * 16;
  const double out = 2.0 * 2 * 4 * 8 * 32 * 6;
  const auto causal = [](std::size_t place, const char* value) {
    std::vector<std::string> values(place + 2);
    values[place] = value;
    return values;
  };
  const std::string sdpa = "aten::_scaled_dot_product_";
  const std::string flash = sdpa + "flash_attention";
  const std::string efficient = sdpa + "efficient_attention";
  const std::string flash_back = flash + "_backward";
  const std::string efficient_back = efficient + "_backward";
  const char* const inner = "aten::_flash_attention_forward";
  const char* const inner_efficient = "aten::_efficient_attention_forward";
  for (const Known& known : {
           Known{flash.c_str(), {q, k, k}, causal(4, "False"), 2 * scores},
           Known{flash.c_str(), {k, k, k}, causal(4, "True"), square},
           Known{flash.c_str(), {q, k, k}, causal(4, "True"), 2 * scores / 8},
           Known{flash.c_str(), {k, q, q}, causal(4, "True"), 2 * scores * 7 / 8},
           Known{flash.c_str(), {q, {2, 2, 32, 16}, {2, 2, 32, 16}}, {}, 2 * scores},
           Known{efficient.c_str(), {q, k, small}, causal(6, "False"), scores + out},
           Known{efficient.c_str(), {k, k, k}, causal(6, "True"), square},
           Known{flash_back.c_str(), {q, q, k, k}, causal(11, "False"), 5 * scores},
           Known{flash_back.c_str(), {k, k, k, k}, causal(11, "True"), 2.5 * square},
           Known{efficient_back.c_str(), {q, q, k, small}, {}, 3 * scores + 2 * out},
           Known{inner, {q_flash, k_flash, k_flash}, causal(8, "False"), 2 * scores},
           Known{inner, {packed, packed, packed}, {}, -1},
           Known{inner_efficient, {q_flash, k_flash, k_flash}, causal(9, "1"), 2 * scores / 8},
           Known{inner_efficient, {q_flash, k_flash, k_flash}, causal(9, "2"), 2 * scores * 7 / 8},
           Known{inner_efficient, {q_flash, k_flash, k_flash, {}, {9}}, {}, -1},
       }) {
    EXPECT_EQ(flop_of(known), known.flop) << known.name << known.values.size();
  }
}

std::string call(const std::string& name, int begin, int end, const std::string& args) {
  return fmt::format(R"("cat":"cpu_op","name":"{}","ts":{},"dur":{},"args":{{{}}})", name, begin,
                     end - begin, args);
}
const std::string kBf16 = R"("Input type":["c10::BFloat16","c10::BFloat16","c10::BFloat16"])";
const std::string kMm = R"("Input Dims":[[64,128],[128,32]],)" + kBf16;
constexpr double kFlop = 2.0 * 64 * 128 * 32;

// Step 1: a linear layer, whose product takes 10 us. Step 2: a product of 30 us in two kernels, one
// on the CPU, one without shapes.
RankTrace two_steps(int rank) {
  RankTrace trace(rank);
  trace.device("NVIDIA H200").range("ProfilerStep#1", 0, 100).range("ProfilerStep#2", 100, 200);
  trace.event(call("aten::linear", 10, 30, R"("Input Dims":[[64,128],[32,128],[32]],)" + kBf16))
      .event(call("aten::addmm", 12, 22, R"("Input Dims":[[32],[64,128],[128,32]],)" + kBf16));
  trace.kernel("gemm", 15, 15, 25).kernel("copy", 28, 30, 35);
  trace.event(call("aten::mm", 110, 130, kMm)).event(call("aten::mm", 150, 160, kMm));
  trace.kernel("gemm", 115, 120, 140).kernel("reduce", 120, 140, 150);
  trace.event(call("aten::bmm", 170, 180, "")).kernel("gemm", 171, 180, 190);
  return trace;
}

TEST_F(TheInsights, OperationsByOperatorAndStep) {
  load({two_steps(0)});
  const FlopReport& report = insights_.flops;
  ASSERT_EQ(report.rows.size(), 2U);
  const OperatorRow& mm = report.rows[0];
  EXPECT_EQ(mm.name, "aten::mm");
  EXPECT_EQ(mm.shapes, "64x128, 128x32");
  EXPECT_EQ(mm.dtype, "bf16");
  EXPECT_EQ(mm.total, 30'000);
  const OperatorRow& addmm = report.rows[1];
  EXPECT_EQ(addmm.name, "aten::addmm");
  EXPECT_EQ(addmm.calls, 1U);
  EXPECT_EQ(addmm.flop, kFlop);
  EXPECT_EQ(addmm.bytes, 2 * (64 * 128 + 128 * 32 + 64 * 32));
  EXPECT_EQ(addmm.total, 10'000);
  EXPECT_NEAR(addmm.tflops(), kFlop / 10e-6 / 1e12, 1e-9);
  EXPECT_NEAR(addmm.mfu(), kFlop / 10e-6 / 989.4e12, 1e-9);
  EXPECT_NEAR(addmm.roof(), (addmm.bytes / 4.8e12) / 10e-6, 1e-9);  // bound by the memory
  ASSERT_EQ(report.steps.size(), 2U);
  for (const StepFlops& step : report.steps) {
    EXPECT_EQ(step.flop, kFlop);
    EXPECT_NEAR(step.mfu(), kFlop / 100e-6 / 989.4e12, 1e-9) << step.number;
  }
  EXPECT_EQ(report.without_shapes, 1U);
  EXPECT_THAT(report.without_shapes_names, ElementsAre("aten::bmm"));
  EXPECT_EQ(report.without_kernels, 1U);
  EXPECT_THAT(flop_table(report), HasSubstr("(peak: NVIDIA H200, dense, bf16 989.4 TFLOP/s"));
  EXPECT_THAT(flop_table(report), HasSubstr("MFU: at least 0.00"));
  EXPECT_THAT(flop_table(report), HasSubstr("1 calls that launched no kernel"));
}

TEST_F(TheInsights, OperationsOfSeveralRanks) {
  RankTrace other(1);
  other.device("NVIDIA H200").range("ProfilerStep#1", 0, 100).range("ProfilerStep#2", 100, 200);
  other.event(call("aten::mm", 10, 30, R"("Input Dims":[[2,3],[3,4]],)" + kBf16));
  other.kernel("gemm", 15, 15, 20);
  load({two_steps(0), other});
  const FlopReport& report = insights_.flops;
  ASSERT_EQ(report.rows.size(), 3U);
  EXPECT_EQ(report.rows[0].flop, kFlop);
  EXPECT_EQ(report.rows[2].shapes, "2x3, 3x4");
  EXPECT_EQ(report.rows[2].flop, 2 * 2 * 3 * 4);
  EXPECT_EQ(report.steps[0].flop, kFlop + 48);
  EXPECT_NEAR(report.steps[0].tflops(), (kFlop + 48) / 2 / 100e-6 / 1e12, 1e-9);  // of one GPU
}

TEST_F(TheInsights, PeakOfTheUserOrUnknown) {
  load({two_steps(0).device("NVIDIA Example")});
  EXPECT_EQ(insights_.flops.all_steps().mfu(), 0);
  EXPECT_TRUE(flop_json(insights_.flops)["mfu"].is_null());
  EXPECT_THAT(flop_table(insights_.flops), HasSubstr("peak of NVIDIA Example is not known"));
  const FlopReport given = flops_of(trace_, analysis_, 2);
  EXPECT_NEAR(given.all_steps().mfu(), kFlop / 100e-6 / 2e12, 1e-9);
}

TEST(Peaks, ByTheDriversName) {
  EXPECT_EQ(peak_of("NVIDIA H100 80GB HBM3", "bf16").tflops, 989.4);
  EXPECT_EQ(peak_of("NVIDIA H100 PCIe", "bf16").tflops, 0);
  EXPECT_EQ(peak_of("NVIDIA GH200 480GB", "bf16").tflops, 0);
  EXPECT_EQ(peak_of("NVIDIA A100-SXM4-80GB", "tf32").tflops, 156);
  EXPECT_EQ(peak_of("NVIDIA A100-SXM4-80GB", "fp8").tflops, 0);
  EXPECT_EQ(peak_of("Tesla V100-SXM2-32GB", "fp16").tflops, 125);
  EXPECT_EQ(peak_of("Tesla V100-SXM2-32GB", "bf16").tflops, 0);
  EXPECT_EQ(peak_of("AMD Instinct MI300X", "fp8").tflops, 2614.9);
}

}  // namespace
}  // namespace assay::timeline
