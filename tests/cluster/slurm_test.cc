// The script for sbatch.

#include "cluster/slurm.h"

#include <gmock/gmock.h>

#include "../store/folder.h"
#include "base/atomic_file.h"
#include "base/process.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

SlurmJob some_job() {
  SlurmJob job;
  job.workers = {"nightly",
                 3,
                 "/opt/assay/bin/assay",
                 "postgresql://a@db/runs?options=-cx%3Dy",
                 "/logs/night",
                 {"--num_workers_per_gpu=2"}};
  return job;
}

TEST(Slurm, TheScriptIsAnArrayOfWorkersThatAreToldBeforeTheyAreKilled) {
  SlurmJob job = some_job();
  job.gres = "gpu:1";
  job.options = {"--partition=gpu"};
  job.lines = {"module load cuda"};
  job.launcher = "apptainer exec --nv assay.sif";
  EXPECT_EQ(slurm_script(job),
            "#!/bin/bash\n"
            "#SBATCH --job-name=nightly\n"
            "#SBATCH --array=1-3\n"
            "#SBATCH --requeue\n"
            "#SBATCH --signal=B:TERM@60\n"
            "#SBATCH --open-mode=append\n"
            "#SBATCH --output=/logs/night/worker-%a.log\n"
            "#SBATCH --gres=gpu:1\n"
            "#SBATCH --partition=gpu\n"
            "module load cuda\n"
            "exec apptainer exec --nv assay.sif /opt/assay/bin/assay work "
            "'--store=postgresql://a@db/runs?options=-cx%3Dy' "
            "--log_dir=/logs/night/worker-\"$SLURM_ARRAY_TASK_ID\" --num_workers_per_gpu=2\n");
}

TEST(Slurm, WithoutADatabaseEachWorkerTakesAPart) {
  SlurmJob job = some_job();
  job.workers.store.clear();
  job.workers.arguments = {"--api_config_file=cases.txt"};
  EXPECT_THAT(slurm_script(job),
              HasSubstr("/assay api --shard=\"$SLURM_ARRAY_TASK_ID\"/3 --log_dir="));
}

// The job's shell passes words to the worker unchanged, whatever is in them.
TEST(Slurm, TheShellGivesTheWorkerWhatWasMeant) {
  const testing::Folder folder;
  SlurmJob job = some_job();
  job.workers.log_dir = folder.path() / "it's $HOME";
  job.workers.store = "postgresql://a@db/runs?a=1&b='$(touch x)'";
  job.workers.arguments = {"--settings=a b`c`"};
  job.launcher = "printf '%s\\n'";
  ASSERT_TRUE(write_file(folder.path() / "job", slurm_script(job)));
  SpawnOptions options;
  options.argv = {"bash", (folder.path() / "job").string()};
  options.environment = {"SLURM_ARRAY_TASK_ID=2"};
  const auto out = open_for_append(folder.path() / "out");
  options.fds = {{out->get(), 1}};
  auto shell = Process::spawn(options);
  ASSERT_TRUE(shell.has_value());
  EXPECT_TRUE(shell->wait()->ok());
  EXPECT_EQ(*read_file(folder.path() / "out"),
            "/opt/assay/bin/assay\nwork\n--store=postgresql://a@db/runs?a=1&b='$(touch x)'\n"
            "--log_dir=" +
                folder.path().string() + "/it's $HOME/worker-2\n--settings=a b`c`\n");
}

}  // namespace
}  // namespace assay
