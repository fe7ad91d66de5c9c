#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/terminal.h"
#include "chain/results/speed_record.h"
#include "cli/full/verbs.h"

namespace assay::cli::full {

using namespace chain;

namespace {

Result<int> speed(const results::SpeedQuestion& question) {
  ASSAY_TRY(const std::string log, read_file(question.filename));
  ASSAY_TRY(const results::SpeedRecord record,
            results::speed_record(log, question, results::surroundings_of_environment()));
  if (!question.speed_log_file.empty()) {
    ASSAY_CHECK(make_folder(std::filesystem::path(question.speed_log_file).parent_path()));
    ASSAY_CHECK(write_file(question.speed_log_file, record.json));
  }
  show(stdout, "{}\n", record.json);
  if (record.kept > 0) return kAllGood;
  show(stderr,
       "{}: found {} speeds after `{}`, which are too few: look at --keyword and --skip_steps\n",
       question.filename, record.seen, question.keyword);
  return kSomeFailed;
}

}  // namespace

Verb add_chain_speed(CLI::App& chain) {
  CLI::App* app = chain.add_subcommand(
      "speed", "Write a training's speed as the suites' analysis.py does, with the same options");
  const auto question = std::make_shared<results::SpeedQuestion>();
  app->add_option("--filename", question->filename, "The training's log")->required();
  app->add_option("--speed_log_file", question->speed_log_file,
                  "File for the record (default: standard output only)");
  app->add_option("--model_name", question->model_name, "Field of the record");
  app->add_option("--base_batch_size", question->base_batch_size, "Batch size of each card");
  app->add_option("--run_mode", question->run_mode, "DP, MP, PP, DP1-MP1-PP1, …");
  app->add_option("--fp_item", question->fp_item, "fp32, fp16 or bf16");
  app->add_option("--keyword", question->keyword, "The word before each speed in the log")
      ->required();
  app->add_option("--skip_steps", question->skip_steps,
                  "How many speeds to leave out at the beginning");
  app->add_option("--device_num", question->device_num, "N1C1, N1C8, N4C32, …");
  app->add_option("--speed_unit", question->speed_unit, "Field of the record");
  app->add_option("--convergence_key", question->convergence_key,
                  "The word before each loss in the log");
  app->add_option("--model_mode", question->model_mode,
                  "-1: the sum of all cards; 5: the mean itself (default -1)");
  app->add_option("--is_large_model", question->is_large_model,
                  "True: the log has one speed, that of the whole training");
  return {app, [question] { return speed(*question); }};
}

}  // namespace assay::cli::full
