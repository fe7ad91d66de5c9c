#pragma once

// Results of chain runs in a SQLite file: runs, their stages, readings of their logs, AutoLog
// fields.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "chain/plan/plan.h"
#include "chain/stage/artifacts.h"
#include "chain/stage/autolog.h"
#include "chain/stage/stage_run.h"
#include "chain/stage/train_log.h"
#include "sqlite/database.h"

namespace assay::chain::results {

// The record of one machine of a training stage.
struct NodeRecord {
  std::string host;
  std::string gpu_model;  // "CPU" without a GPU
  std::string framework;  // name and version; "": unknown
  std::string model;
  std::string batch_size;
  std::string state;  // passed, failed, …
  double ips = 0;     // mean; 0 if the log has none
};

struct StoredStage {
  std::int64_t id = 0;
  std::string name;
  std::string kind;
  std::string command;
  std::string state;
  std::string detail;
  std::string log;
  double seconds = 0;
  double peak_rss_mb = 0;
  double gpu_memory_mb = 0;
  double gpu_percent = 0;
  stage::FileMarks made;  // the files that it wrote
};

struct StoredRun {
  std::int64_t id = 0;
  std::string file;
  std::string mode;
  std::string model;
  std::string started;  // UTC, ISO 8601
  int exit_code = -1;   // -1: not finished
};

struct StoredReading {
  std::int64_t number = 0;  // index among the readings of this name in the stage
  std::string name;
  double value = 0;
};

class ChainStore {
 public:
  static constexpr std::int64_t kVersion = 2;

  static Result<ChainStore> open(const std::filesystem::path& path, OpenMode mode);

  Result<std::int64_t> begin_run(const plan::Plan& plan, const std::string& file);
  Status finish_run(std::int64_t run, int exit_code);
  Result<std::int64_t> begin_stage(std::int64_t run, const plan::Stage& stage,
                                   const std::string& identity);
  Status finish_stage(std::int64_t id, const stage::Outcome& outcome, const stage::FileMarks& made);
  Status add_readings(std::int64_t stage, const std::vector<StoredReading>& readings);
  Status add_autolog(std::int64_t stage, const stage::AutoLog& fields);
  Status add_node(std::int64_t stage, const NodeRecord& node);

  // The files that the last run of a stage with this name made, or nothing if it did not pass or
  // had another identity.
  Result<std::optional<stage::FileMarks>> last_passed(const plan::Stage& stage,
                                                      const std::string& identity);

  Result<std::vector<StoredRun>> runs();
  Result<std::vector<StoredStage>> stages(std::int64_t run);
  Result<std::vector<StoredReading>> readings(std::int64_t stage);
  Result<stage::AutoLog> autolog(std::int64_t stage);
  Result<std::vector<NodeRecord>> nodes(std::int64_t stage);

 private:
  explicit ChainStore(Database database) : database_(std::move(database)) {}
  Database database_;
};

}  // namespace assay::chain::results
