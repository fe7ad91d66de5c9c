#include "cli/full/verb_submit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/exit_code.h"
#include "cluster/kubernetes.h"
#include "cluster/slurm.h"
#include "store/open_store.h"

namespace assay::cli::full {
namespace {

constexpr const char* kSlurmExamples = R"(Examples:
  assay submit slurm --workers=64 --gres=gpu:1 --store=postgresql://assay@db/runs
  assay submit slurm --workers=8 --sbatch=--partition=gpu -- --api_config_file=cases.txt
  assay submit slurm --chains=models.txt --mode=lite_train_lite_infer --workers=8 --gres=gpu:8
Flags after -- go to every worker: flags of `assay work`, or of `assay api` without a database. Without a
database each worker runs a part of the cases, and `assay merge` makes one run of the parts. With --chains,
each line of a file names a params file; each chain runs in an allocation of its own, as many at a time as
there are workers. With --nodes=2, a chain's trainings run on two machines together.)";

constexpr const char* kKubernetesExamples = R"(Examples:
  kubectl create secret generic assay-db --from-literal=password=…
  assay submit kubernetes --workers=64 --image=registry/assay:1 --secret=assay-db \
      --store=postgresql://assay@db/runs
Flags after -- go to every worker.)";

struct SubmitOptions {
  Workers workers;
  bool dry_run = false;
  SlurmJob slurm;
  SlurmChains chains;
  KubernetesJob kubernetes;
};

Status check(const Workers& workers) {
  if (workers.count < 1) return usage_error("--workers takes a number of at least 1");
  if (workers.store.empty()) return {};
  if (!is_store_address(workers.store)) {
    return usage_error("--store takes the address of a database: postgresql://…");
  }
  if (has_password(workers.store)) {
    return usage_error(
        "leave the password out of --store: other users can read a submitted job. Workers find it "
        "in ~/.pgpass (PGPASSFILE), or in the secret of --secret");
  }
  return {};
}

// Writes the text to `file`, beside the workers' logs, and runs the scheduler's program with it.
Status hand_over(std::vector<std::string> words, const std::filesystem::path& file,
                 const std::string& text) {
  if (!find_program(words.front())) {
    return usage_error(fmt::format(
        "this machine has no {}; --dry-run prints what would be submitted", words.front()));
  }
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  ASSAY_TRY(AtomicFile written, AtomicFile::create(file));
  ASSAY_CHECK(written.write(text));
  ASSAY_CHECK(written.commit());
  words.push_back(file.string());
  SpawnOptions options;
  options.argv = words;
  ASSAY_TRY(Process process, Process::spawn(options));
  ASSAY_TRY(const ExitStatus ended, process.wait());
  if (ended.ok()) return {};
  return fail(fmt::format("{}: {}", fmt::join(words, " "), ended.describe()));
}

// The chains of --chains. Each line of the list must name an existing params file.
Result<SlurmChains> chains_of(const SubmitOptions& options, const Workers& workers) {
  SlurmChains chains = options.chains;
  if (!workers.store.empty())
    return usage_error(
        "--chains and --store exclude each other: chains keep their results in their own folders");
  if (chains.mode.empty()) return usage_error("--chains needs --mode: lite_train_lite_infer, …");
  auto list = read_file(chains.list);
  if (!list) return usage_error("--chains: " + list.error().message);
  for (const std::string& line : split_at(*list, '\n')) {
    if (line.empty()) continue;
    ++chains.models;
    if (std::filesystem::exists(line)) continue;
    return usage_error(fmt::format("--chains: line {} names no file: {}", chains.models, line));
  }
  if (chains.models == 0) return usage_error("--chains: " + chains.list + " is empty");
  if (list->find("\n\n") != std::string::npos || list->front() == '\n') {
    return usage_error("--chains: " + chains.list + " has an empty line");
  }
  chains.list = std::filesystem::absolute(chains.list).string();
  chains.name = workers.name;
  chains.program = workers.program;
  chains.log_dir = workers.log_dir;
  chains.at_once = workers.count;
  chains.arguments = workers.arguments;
  return chains;
}

Result<int> submit_slurm(const SubmitOptions& options) {
  SlurmJob job = options.slurm;
  job.workers = options.workers;
  ASSAY_CHECK(check(job.workers));
  if (job.workers.program.empty()) {
    ASSAY_TRY(job.workers.program, own_executable());
  }
  const std::filesystem::path folder = std::filesystem::absolute(
      job.workers.log_dir.empty() ? "assay-runs/" + job.workers.name : job.workers.log_dir);
  job.workers.log_dir = folder.string();
  const bool chain = !options.chains.list.empty();
  std::string script;
  if (chain) {
    ASSAY_TRY(const SlurmChains chains, chains_of(options, job.workers));
    script = slurm_chain_script(chains, job);
  } else {
    if (options.chains.machines > 1) return usage_error("--nodes needs --chains");
    script = slurm_script(job);
  }
  if (options.dry_run) {
    show(stdout, "{}", script);
    return kAllGood;
  }
  ASSAY_CHECK(hand_over({"sbatch"}, folder / (job.workers.name + ".sbatch"), script));
  show(stdout, "logs: {}/{}-*.log\n", folder.string(), chain ? "model" : "worker");
  return kAllGood;
}

Result<int> submit_kubernetes(const SubmitOptions& options) {
  KubernetesJob job = options.kubernetes;
  job.workers = options.workers;
  ASSAY_CHECK(check(job.workers));
  if (job.workers.store.empty()) {
    return usage_error("pods share no folder: give a database with --store");
  }
  if (job.workers.program.empty()) job.workers.program = "assay";
  if (job.workers.log_dir.empty()) job.workers.log_dir = "/var/log/assay";
  ASSAY_TRY(const std::string manifest, kubernetes_manifest(job));
  if (options.dry_run) {
    show(stdout, "{}", manifest);
    return kAllGood;
  }
  const std::string file = job.workers.name + ".json";
  ASSAY_CHECK(hand_over({"kubectl", "apply", "-f"}, std::filesystem::absolute(file), manifest));
  return kAllGood;
}

void add_worker_options(CLI::App& app, SubmitOptions& options) {
  Workers& workers = options.workers;
  app.add_option("--workers", workers.count, "Number of workers")->required();
  app.add_option("--store", workers.store, "postgresql://…: the database of the run");
  app.add_option("--name", workers.name, "Name of the job")->capture_default_str();
  app.add_option("--log_dir", workers.log_dir, "Folder of the workers' logs and runs");
  app.add_option("--program", workers.program, "Path of assay on the machines");
  app.add_flag("--dry-run", options.dry_run, "Print what would be submitted");
  app.add_option("FLAGS", workers.arguments, "After --: flags of every worker");
}

}  // namespace

Verb add_submit_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("submit", "Submit workers to a cluster's scheduler");
  app->require_subcommand(1);
  auto options = std::make_shared<SubmitOptions>();
  CLI::App* slurm = app->add_subcommand("slurm", "Submit an array of jobs to Slurm");
  add_worker_options(*slurm, *options);
  slurm->add_option("--gres", options->slurm.gres, "Resources of each worker: gpu:1");
  slurm
      ->add_option("--sbatch", options->slurm.options,
                   "Another flag of sbatch: --sbatch=--partition=gpu")
      ->allow_extra_args(false);
  slurm
      ->add_option("--line", options->slurm.lines,
                   "A line of shell before the worker: 'module load cuda'")
      ->allow_extra_args(false);
  slurm->add_option("--launcher", options->slurm.launcher,
                    "Words before the worker: 'apptainer exec --nv assay.sif'");
  slurm->add_option(
      "--chains", options->chains.list,
      "Run chains instead of API cases: a file with the path of a params file on each line");
  slurm->add_option("--mode", options->chains.mode,
                    "With --chains: the mode, such as lite_train_lite_infer");
  slurm
      ->add_option("--nodes", options->chains.machines,
                   "With --chains: machines of each allocation, which train together")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  slurm->footer(kSlurmExamples);
  CLI::App* kubernetes = app->add_subcommand("kubernetes", "Submit an Indexed Job to Kubernetes");
  add_worker_options(*kubernetes, *options);
  kubernetes
      ->add_option("--image", options->kubernetes.image, "Image with assay and the frameworks")
      ->required();
  kubernetes->add_option("--gpus", options->kubernetes.gpus, "Number of GPUs of each worker")
      ->capture_default_str();
  kubernetes->add_option("--secret", options->kubernetes.secret,
                         "Secret whose key `password` holds the database's password");
  kubernetes->footer(kKubernetesExamples);
  return {app, [options, slurm] {
            return slurm->parsed() ? submit_slurm(*options) : submit_kubernetes(*options);
          }};
}

}  // namespace assay::cli::full
