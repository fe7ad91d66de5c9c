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
  if (!job.gres.empty()) add_option(script, "--gres=" + shell_word(job.gres));
  for (const std::string& more : job.options) add_option(script, more);
  for (const std::string& line : job.lines) script += line + "\n";
  // The signal reaches the worker only if it replaces this shell.
  script += "exec";
  if (!job.launcher.empty()) script += " " + job.launcher;
  for (const std::string& word : words_of(workers, kTask)) script += " " + word_with_number(word);
  return script + "\n";
}

}  // namespace assay
