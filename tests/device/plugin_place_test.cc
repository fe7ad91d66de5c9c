// Where the plug-in for GPUs is looked for: never in the working folder.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/process.h"
#include "device/plugin.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrints = "ASSAY_TEST_PRINT_PLUGIN";

// Started by the test below, through PATH.
TEST(PluginPlace, Print) {
  if (std::getenv(kPrints) == nullptr) GTEST_SKIP() << "another test starts this one";
  const std::string file = device_plugin_file().string() + "\n";
  std::ofstream(std::getenv(kPrints)) << file;
}

// The loader knows a program that was found through PATH by a name without a folder.
TEST(PluginPlace, IsNotTheWorkingFolderOfAProgramFoundThroughPath) {
  const fs::path program = *own_executable();
  std::string pattern = fs::temp_directory_path() / "assay-plugin-XXXXXX";
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const fs::path folder = pattern;
  std::ofstream(folder / kDevicePluginFile) << "planted";
  const std::string path = program.parent_path().string() + ":" + std::getenv("PATH");
  ::setenv("PATH", path.c_str(), 1);
  SpawnOptions options;
  options.argv = {program.filename().string(), "--gtest_filter=PluginPlace.Print"};
  options.environment = {std::string(kPrints) + "=" + (folder / "printed").string()};
  options.directory = folder.string();
  const auto status = Process::spawn(options)->wait();
  EXPECT_TRUE(status->ok()) << status->describe();
  const std::string printed = read_file(folder / "printed").value_or("");
  EXPECT_NE(printed, "");
  EXPECT_EQ(printed.find(folder.string()), std::string::npos) << printed;
  fs::remove_all(folder);
}

}  // namespace
}  // namespace assay
