#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/atomic_file.h"
#include "cli/api_parts.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

Result<std::string> thresholds_of(const std::string& text) {
  std::string name = (std::filesystem::temp_directory_path() / "assay-thresholds-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(name.data());
  const std::string file = (folder / "thresholds.yaml").string();
  EXPECT_TRUE(write_file(file, text));
  auto found = read_thresholds(file);
  std::filesystem::remove_all(folder);
  return found;
}

TEST(Thresholds, AreReadAsEngineV4WritesThem) {
  EXPECT_EQ(read_thresholds("").value_or("?"), "");
  const auto found = thresholds_of(
      "# by hand\nmanual_threshold_config:\n  paddle.exp: [1e-2, 0.5]\n  fused_op:\n    - 2\n"
      "    - 0\nother: 1\n");
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(*found, "paddle.exp 1e-2 0.5;fused_op 2 0;");
}

TEST(Thresholds, AnErrorHasFileAndLine) {
  const auto refused = [](const std::string& text) {
    const auto found = thresholds_of(text);
    EXPECT_FALSE(found.has_value()) << text;
    return found ? "" : found.error().message;
  };
  EXPECT_THAT(refused("atol: 1\n"), HasSubstr("there is no table manual_threshold_config"));
  for (const char* value : {"0.1", "[0.1]", "[0.1, high]", "[0.1, -1]", "[1, 2, 3]"}) {
    EXPECT_THAT(refused(std::string("manual_threshold_config:\n  paddle.exp: ") + value + "\n"),
                HasSubstr("thresholds.yaml:2: paddle.exp takes two numbers"))
        << value;
  }
  EXPECT_FALSE(read_thresholds("/nowhere/at.yaml").has_value());
}

}  // namespace
}  // namespace assay
