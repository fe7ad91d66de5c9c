#include "cli/full/chain_speed.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "cli/exit_code.h"

namespace assay::cli::full {

using namespace chain;

CLI::App* add_speed(CLI::App& chain, SpeedArguments& arguments) {
  CLI::App* app = chain.add_subcommand(
      "speed", "write a training's speed as the suites' analysis.py does, by the same options");
  results::SpeedQuestion& question = arguments.question;
  app->add_option("--filename", question.filename, "the training's log")->required();
  app->add_option("--speed_log_file", question.speed_log_file, "where the record goes");
  app->add_option("--model_name", question.model_name, "of the record");
  app->add_option("--base_batch_size", question.base_batch_size, "on each card");
  app->add_option("--run_mode", question.run_mode, "DP, MP, PP, DP1-MP1-PP1, …");
  app->add_option("--fp_item", question.fp_item, "fp32, fp16 or bf16");
  app->add_option("--keyword", question.keyword, "the word of the log before each speed")
      ->required();
  app->add_option("--skip_steps", question.skip_steps, "speeds at the beginning to leave out");
  app->add_option("--device_num", question.device_num, "N1C1, N1C8, N4C32, …");
  app->add_option("--speed_unit", question.speed_unit, "of the record");
  app->add_option("--convergence_key", question.convergence_key,
                  "the word of the log before each loss");
  app->add_option("--model_mode", question.model_mode,
                  "-1: the sum of all cards; 5: the mean as it stands (default -1)");
  app->add_option("--is_large_model", question.is_large_model,
                  "True: the log has one speed, of the whole training");
  return app;
}

Result<int> speed(const SpeedArguments& arguments) {
  const results::SpeedQuestion& question = arguments.question;
  ASSAY_TRY(const std::string log, read_file(question.filename));
  ASSAY_TRY(const results::SpeedRecord record,
            results::speed_record(log, question, results::surroundings_of_environment()));
  if (!question.speed_log_file.empty()) {
    std::error_code error;
    const auto folder = std::filesystem::path(question.speed_log_file).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, error);
    ASSAY_CHECK(write_file(question.speed_log_file, record.json));
  }
  fmt::print("{}\n", record.json);
  if (record.kept > 0) return kAllGood;
  fmt::print(stderr, "{}: {} speeds behind `{}` are too few\n", question.filename, record.seen,
             question.keyword);
  return kSomeFailed;
}

}  // namespace assay::cli::full
