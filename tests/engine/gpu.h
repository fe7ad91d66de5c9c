#pragma once
// Runs on GPUs that are host memory: a plug-in, a management library that tells of them, and fake
// frameworks.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "cli.h"

namespace assay::testing {

class Gpu : public ::testing::Test {
 protected:
  void SetUp() override {
    set("ASSAY_DEVICE_PLUGIN", FAKE_DEVICE);
    set("LD_LIBRARY_PATH", FAKE_NVML_FOLDER);
    set("FAKE_GPU_BUILDS", "paddle torch");
  }
  void TearDown() override {
    for (const char* name : names_) ::unsetenv(name);
    ::setenv("PATH", path_.c_str(), 1);
  }
  // What stands in the place of NVIDIA's daemon of MPS.
  void daemon(const std::string& script) { program("nvidia-cuda-mps-control", script); }
  void program(const std::string& name, const std::string& script) {
    const std::filesystem::path file = cli_.folder() / name;
    ASSERT_TRUE(write_file(file, "#!/bin/sh\n" + script));
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    ::setenv("PATH", (cli_.folder().string() + ":" + path_).c_str(), 1);
  }
  void set(const char* name, const char* value) {
    ::setenv(name, value, 1);
    names_.push_back(name);
  }
  CliResult run(const std::vector<std::string>& arguments) {
    std::vector<std::string> all{"api", "--log_dir=" + cli_.run().string()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return cli_.call(all);
  }
  std::string lane_log(const std::string& name) {
    const auto text = read_file(cli_.run() / "lanes" / name);
    return text ? *text : std::string();
  }
  Cli cli_;

 private:
  std::vector<const char*> names_;
  const std::string path_ = std::getenv("PATH");
};

}  // namespace assay::testing
