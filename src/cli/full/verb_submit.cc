#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/process.h"
#include "base/terminal.h"
#include "cli/full/verbs.h"
#include "cluster/kubernetes.h"
#include "cluster/slurm.h"
#include "store/open_store.h"

namespace assay::cli::full {
namespace {

constexpr const char* kSlurmExamples = R"(Examples:
  assay submit slurm --workers=64 --gres=gpu:1 --store=postgresql://assay@db/runs
  assay submit slurm --workers=8 --sbatch=--partition=gpu -- --api_config_file=cases.txt
Flags after -- go to every worker: flags of `assay work`, or of `assay api` without a database. Without a
database each worker runs a part of the cases, and `assay merge` makes one run of the parts. Chains of models
run in jobs of Slurm by `assay run`.)";

constexpr const char* kKubernetesExamples = R"(Examples:
  kubectl create secret generic assay-db --from-literal=password=…
  assay submit kubernetes --workers=64 --image=registry/assay:1 --secret=assay-db \
      --store=postgresql://assay@db/runs
Flags after -- go to every worker.)";

struct SubmitOptions {
  Workers workers;
  bool dry_run = false;
  SlurmJob slurm;
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
  ASSAY_CHECK(make_folder(file.parent_path()));
  ASSAY_CHECK(write_file(file, text));
  words.push_back(file.string());
  SpawnOptions options;
  options.argv = words;
  ASSAY_TRY(Process process, Process::spawn(options));
  ASSAY_TRY(const ExitStatus ended, process.wait());
  if (ended.ok()) return {};
  return fail(fmt::format("{}: {}", fmt::join(words, " "), ended.describe()));
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
  const std::string script = slurm_script(job);
  if (options.dry_run) {
    show(stdout, "{}", script);
    return kAllGood;
  }
  ASSAY_CHECK(hand_over({"sbatch"}, folder / (job.workers.name + ".sbatch"), script));
  show(stdout, "logs: {}/worker-*.log\n", folder.string());
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
  return one_of(*app, {{slurm, [options] { return submit_slurm(*options); }},
                       {kubernetes, [options] { return submit_kubernetes(*options); }}});
}

}  // namespace assay::cli::full
