#include "cluster/slurm.h"

#include <fmt/format.h>

#include "base/text.h"

namespace assay {
namespace {

constexpr const char* kTask = "$SLURM_ARRAY_TASK_ID";

// Quotes a word for the shell, with the task number expanded.
std::string word_with_number(const std::string& word) {
  const std::size_t at = word.find(kTask);
  if (at == std::string::npos) return shell_word(word);
  const std::string rest = word.substr(at + std::string_view(kTask).size());
  return (at == 0 ? "" : shell_word(word.substr(0, at))) + "\"" + kTask + "\"" +
         (rest.empty() ? "" : shell_word(rest));
}

void add_option(std::string& script, const std::string& text) {
  script += "#SBATCH " + text + "\n";
}

// Adds the user's own options and lines.
void add_own(std::string& script, const SlurmJob& job) {
  if (!job.gres.empty()) add_option(script, "--gres=" + shell_word(job.gres));
  for (const std::string& more : job.options) add_option(script, more);
  for (const std::string& line : job.lines) script += line + "\n";
}

// Lists the addresses of the allocation's machines as the scheduler knows them.
constexpr const char* kMachines = R"sh(machines=$(
  for node in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
    name=$(scontrol show node "$node" --oneliner | sed 's/.* NodeAddr=\([^ ]*\).*/\1/')
    getent ahostsv4 "$name" | head -n 1 | cut -d ' ' -f 1
  done | paste -sd ,)
)sh";

}  // namespace

std::string slurm_script(const SlurmJob& job) {
  const Workers& workers = job.workers;
  std::string script = "#!/bin/bash\n";
  add_option(script, "--job-name=" + shell_word(workers.name));
  add_option(script, fmt::format("--array=1-{}", workers.count));
  add_option(script, "--requeue");
  add_option(script, "--signal=B:TERM@60");
  add_option(script, "--open-mode=append");
  add_option(script, "--output=" + shell_word(workers.log_dir + "/worker-%a.log"));
  add_own(script, job);
  // The signal reaches the worker only if it replaces this shell.
  script += "exec";
  if (!job.launcher.empty()) script += " " + job.launcher;
  for (const std::string& word : words_of(workers, kTask)) script += " " + word_with_number(word);
  return script + "\n";
}

std::string slurm_chain_script(const SlurmChains& chains, const SlurmJob& job) {
  const bool many = chains.machines > 1;
  std::string script = "#!/bin/bash\n";
  add_option(script, "--job-name=" + shell_word(chains.name));
  add_option(script, fmt::format("--array=1-{}%{}", chains.models, chains.at_once));
  add_option(script, fmt::format("--nodes={}", chains.machines));
  add_option(script, "--ntasks-per-node=1");
  add_option(script, "--requeue");
  // Signals the steps, if there are any; else the process that replaces the shell.
  add_option(script, many ? "--signal=TERM@60" : "--signal=B:TERM@60");
  add_option(script, "--open-mode=append");
  add_option(script, "--output=" + shell_word(chains.log_dir + "/model-%a.log"));
  add_own(script, job);
  script +=
      fmt::format("model=$(sed -n \"${{SLURM_ARRAY_TASK_ID}}p\" {})\n", shell_word(chains.list));
  if (many) script += kMachines;
  script += many ? "exec srun" : "exec";
  if (!job.launcher.empty()) script += " " + job.launcher;
  script += fmt::format(" {} chain run \"$model\" {}", shell_word(chains.program),
                        shell_word(chains.mode));
  if (many) script += " --per-node --machines=\"$machines\"";
  script += " ${SLURM_RESTART_COUNT:+--resume}";
  for (const std::string& word : chains.arguments) script += " " + shell_word(word);
  return script + "\n";
}

}  // namespace assay
