#pragma once

// Runs the chain's command line on a small project.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/process.h"
#include "material.h"

namespace assay::chain {

struct CliResult {
  int code = -1;
  std::string out;  // stdout and stderr
};

// Waits up to two minutes for a condition, because a machine may stall for one.
inline bool comes_true(const std::function<bool()>& is_so) {
  for (int tries = 0; tries < 12'000; ++tries) {
    if (is_so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// Runs a command in a folder.
inline CliResult run_command(const std::filesystem::path& folder, std::vector<std::string> argv,
                             std::vector<std::string> environment = {}) {
  CliResult result;
  const std::filesystem::path log = folder / "cli.out";
  put(log, "");
  const auto file = open_for_append(log);
  SpawnOptions options;
  options.argv = std::move(argv);
  options.environment = std::move(environment);
  options.directory = folder.string();
  options.fds = {{file->get(), 1}, {file->get(), 2}};
  auto process = Process::spawn(options);
  EXPECT_TRUE(process) << (process ? "" : process.error().message);
  if (!process) return result;
  const auto status = process->wait();
  EXPECT_TRUE(status && status->signal == 0);
  result.code = status ? status->code : -1;
  result.out = slurp(log);
  return result;
}

// Runs `chain_cli chain WORDS…` in a folder.
inline CliResult run_cli(const std::filesystem::path& folder, const std::vector<std::string>& words,
                         std::vector<std::string> environment = {}) {
  std::vector<std::string> argv{CHAIN_CLI, "chain"};
  argv.insert(argv.end(), words.begin(), words.end());
  return run_command(folder, std::move(argv), std::move(environment));
}

// True if a process has ended; a zombie counts as ended.
inline bool is_gone(pid_t process) {
  return comes_true([&] {
    const std::string stat = slurp("/proc/" + std::to_string(process) + "/stat");
    return stat.empty() || stat.find(") Z") != std::string::npos;
  });
}

// The commands of a params file. The interpreter is the test child.
struct Commands {
  std::string train = "\"say=loss: 0.5\" make=last.w";
  std::string eval = "say=evaluated";
  std::string export_model = "make=inference.pdmodel";
  std::string infer = "say=inferred";
  std::string gpu_list = "-1";
  std::string trainer = "norm_train";
  std::string batches = "1";
  std::string infer_use_gpu = "False";
  std::string python = CHAIN_CHILD;
};

inline std::string params_text(const Commands& commands) {
  const auto command = [](const char* program, const std::string& words) {
    const bool whole = words == "null" || words.find(".py") < words.find(' ');
    return whole ? words : program + (" " + words);
  };
  return "===train_params===\nmodel_name:tiny\npython:" + commands.python +
         "\ngpu_list:" + commands.gpu_list +
         "\n--use_gpu:False\n--epochs:lite_train_lite_infer=1\n--out:./output/\n"
         "--batch_size:lite_train_lite_infer=4\n--init_weights:null\ntrain_model_name:last.w\n"
         "--data:./data\n##\ntrainer:" +
         commands.trainer + "\nnorm_train:" + command("train.py", commands.train) +
         "\n##\n===eval_params===\neval:" + command("eval.py", commands.eval) +
         "\n##\n===infer_params===\n--out:./output\n--weights:\nnorm_export:" +
         command("export.py", commands.export_model) +
         "\n##\ntrain_model:./p\ninfer_export:null\n##\ninference:" +
         command("infer.py", commands.infer) + "\n--use_gpu:" + commands.infer_use_gpu +
         "\n--batch_size:" + commands.batches +
         "\n--model_dir:./output\n--image:null\n--benchmark:null\n";
}

// A folder with params.txt and the results of runs. It has no script: the standard one drives.
class Project {
 public:
  explicit Project(const Commands& commands = {}) { write(commands); }
  void write(const Commands& commands) { put(path() / "params.txt", params_text(commands)); }
  std::filesystem::path path() const { return scratch_.path(); }
  // assay's own logs and results.
  std::filesystem::path results() const {
    return path() / "test_tipc/assay/tiny/params/lite_train_lite_infer";
  }
  // What the standard script writes, and its training.
  std::filesystem::path output() const {
    return path() / "test_tipc/output/tiny/lite_train_lite_infer";
  }
  std::filesystem::path trained() const {
    return output() / "norm_train_gpus_-1_autocast_null_nodes_1";
  }
  std::string log(const std::string& name) const { return slurp(results() / name); }
  CliResult run(std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"run", "params.txt", "lite_train_lite_infer"};
    words.insert(words.end(), more.begin(), more.end());
    return run_cli(path(), words);
  }

 private:
  Scratch scratch_;
};

}  // namespace assay::chain
