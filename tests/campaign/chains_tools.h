#pragma once

// Machines and models for campaigns of chains.

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli_run.h"

namespace assay::chain {

// Each stage records its start and end in one file for all models, with its machine. `export` of
// the model `waits` waits for the file `go`.
inline constexpr const char* kRecordedStage = R"sh(
model=$1 stage=$2
echo "begin $model $stage $(readlink /proc/self/ns/pid)" >> ran.txt
for word in "$@"; do case $word in --out=*) out=${word#--out=} ;; esac; done
if [ "$model $stage" = "waits export" ]; then until [ -e go ]; do sleep 0.1; done; fi
case $stage in
  train) echo "epoch 1 loss: 0.5"; mkdir -p "$out" && echo w > "$out/last.w" ;;
  export) mkdir -p "$out" && echo w > "$out/inference.pdmodel" ;;
esac
echo "end $model $stage" >> ran.txt
)sh";

inline std::string recorded_params(const std::string& model) {
  const auto stage = [&](const char* name) { return "stage.sh " + model + " " + name; };
  return "===train_params===\nmodel_name:" + model +
         "\npython:sh\ngpu_list:-1\n--use_gpu:False\n--epochs:lite_train_lite_infer=1\n"
         "--out:./output/\n--batch_size:lite_train_lite_infer=4\n--init_weights:null\n"
         "train_model_name:last.w\n--data:./data\n##\ntrainer:norm_train\nnorm_train:" +
         stage("train") + "\n##\n===eval_params===\neval:" + stage("eval") +
         "\n##\n===infer_params===\n--out:./output\n--weights:\nnorm_export:" + stage("export") +
         "\n##\ntrain_model:./p\ninfer_export:null\n##\ninference:" + stage("infer") +
         "\n--use_gpu:False\n--batch_size:1\n--model_dir:./output\n--image:null\n"
         "--benchmark:null\n";
}

// A machine: namespaces of its own for processes, network and mounts. Its first process keeps it
// up, and takes everything along when it is killed.
class Machine {
 public:
  // None where nobody may make namespaces.
  static std::optional<Machine> start() {
    Machine machine;
    machine.user_ = ::geteuid() != 0;
    SpawnOptions options;
    options.argv = {"unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"};
    if (machine.user_) options.argv.insert(options.argv.end(), {"--user", "--map-root-user"});
    options.argv.insert(options.argv.end(), {"sleep", "infinity"});
    auto process = Process::spawn(options);
    if (!process) return std::nullopt;
    machine.holder_ = std::move(*process);
    const auto holder = std::to_string(machine.holder_.pid());
    for (int tries = 0; tries < 6000; ++tries) {
      machine.first_ = slurp("/proc/" + holder + "/task/" + holder + "/children");
      while (machine.first_.ends_with(' ')) machine.first_.pop_back();
      // Before it is `sleep`, /proc is not there yet.
      if (slurp("/proc/" + machine.first_ + "/comm") == "sleep\n") return machine;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return std::nullopt;
  }

  // The number of its first process, which is its name for `reach`.
  const std::string& name() const { return first_; }
  // Its processes see this in /proc/self/ns/pid.
  std::string space() const {
    return std::filesystem::read_symlink("/proc/" + first_ + "/ns/pid").string();
  }
  std::string reach() const {
    return std::string("nsenter --target {host} --net --pid --mount") +
           (user_ ? " --user --preserve-credentials" : "");
  }
  // All its processes end at once.
  void lose_power() { holder_.signal_group(SIGKILL); }

 private:
  Machine() = default;
  Process holder_;
  std::string first_;
  bool user_ = false;
};

inline std::vector<Machine> machines(int count) {
  std::vector<Machine> all;
  for (int i = 0; i < count; ++i) {
    auto machine = Machine::start();
    if (!machine) return {};
    all.push_back(std::move(*machine));
  }
  return all;
}

inline std::string hosts_line(const std::vector<Machine>& machines) {
  std::vector<std::string> names;
  for (const Machine& machine : machines) names.push_back("\"" + machine.name() + "\"");
  std::string line = "hosts = [";
  for (const std::string& name : names) line += name + ", ";
  return line + "]\nremote = \"" + machines.front().reach() + "\"\n";
}

// A campaign that runs in the background of a test.
class RunningCampaign {
 public:
  explicit RunningCampaign(const std::filesystem::path& folder) : log_(folder / "campaign.out") {
    put(log_, "");
    const auto file = open_for_append(log_);
    SpawnOptions options;
    options.argv = {CHAIN_CLI, "campaign", "models.toml"};
    options.directory = folder.string();
    options.fds = {{file->get(), 1}, {file->get(), 2}};
    process_ = std::move(*Process::spawn(options));
  }
  Process& process() { return process_; }
  int wait() { return process_.wait().value().code; }
  std::string out() const { return slurp(log_); }

 private:
  std::filesystem::path log_;
  Process process_;
};

}  // namespace assay::chain
