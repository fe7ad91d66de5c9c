#include "engine/changed_apis.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/atomic_file.h"

namespace assay {
namespace {

constexpr const char* kDiff =
    R"(diff --git a/paddle/phi/kernels/cpu/log_softmax_kernel.cc b/paddle/phi/kernels/cpu/log_softmax_kernel.cc
index 1..2 100644
--- a/paddle/phi/kernels/cpu/log_softmax_kernel.cc
+++ b/paddle/phi/kernels/cpu/log_softmax_kernel.cc
@@ -10,7 +10,7 @@ struct CumsumGradKernel {
   T untouched = roll(x);
-  return std::max(x, -64);
+PD_REGISTER_KERNEL(silu_grad, CPU, ALL_LAYOUT, phi::SiluGradKernel, float) {}
+def layer_norm(x):
+    return paddle._C_ops.add_(x, LayerNorm, __floordiv__)
)";

TEST(ChangedApis, NamesStandInChangedLinesFilesAndHunks) {
  const ChangedApis changed = ChangedApis::parse(kDiff);
  for (const char* api : {"paddle.nn.functional.log_softmax", "paddle.cumsum", "paddle.max",
                          "paddle.nn.functional.silu", "paddle.nn.functional.layer_norm",
                          "paddle.nn.LayerNorm", "paddle.Tensor.add_", "paddle.add",
                          "paddle.Tensor.__add__", "paddle.Tensor.__floordiv__"}) {
    EXPECT_TRUE(changed.have(api)) << api;
  }
  for (const char* api : {"paddle.roll", "paddle.softmax", "paddle.norm", "paddle.tan"}) {
    EXPECT_FALSE(changed.have(api)) << api;
  }
}

TEST(ChangedApis, AnythingIsReadAndNothingIsFoundInNothing) {
  EXPECT_TRUE(ChangedApis::parse("").empty());
  EXPECT_TRUE(ChangedApis::parse("@@").empty());
  EXPECT_TRUE(ChangedApis::parse("+\n-\n+++\n").empty());
  EXPECT_TRUE(ChangedApis::parse("+abs").have("paddle.abs"));
  EXPECT_FALSE(ChangedApis::read("/there/is/no/such/file"));
}

// `git diff` fails, or says something else, and its pipe goes on.
TEST(ChangedApis, AFileThatIsNoDiffIsRefused) {
  const auto file =
      std::filesystem::temp_directory_path() / ("assay-changed-apis-" + std::to_string(::getpid()));
  const auto read = [&](const std::string& text) {
    EXPECT_TRUE(write_file(file, text));
    return ChangedApis::read(file.string()).has_value();
  };
  EXPECT_TRUE(read("diff --git a/x b/x\nBinary files a/x and b/x differ\n"));
  EXPECT_TRUE(read("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-abs\n+abs(\n"));
  for (const char* const other : {"", "\n", "src/abs.cc\n", " src/abs.cc | 2 +-\n",
                                  "\x1b[1mdiff --git a/x b/x\x1b[m\n", "fatal: bad revision\n"}) {
    EXPECT_FALSE(read(other)) << other;
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace assay
