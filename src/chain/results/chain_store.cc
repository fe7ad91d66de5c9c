#include "chain/results/chain_store.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace assay::chain::results {
namespace {

constexpr const char* kSchema = R"sql(
CREATE TABLE runs(
  id INTEGER PRIMARY KEY, file TEXT NOT NULL, mode TEXT NOT NULL, model TEXT NOT NULL,
  started TEXT NOT NULL, finished TEXT, exit_code INTEGER);
CREATE TABLE stages(
  id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs(id), name TEXT NOT NULL,
  kind TEXT NOT NULL, command TEXT NOT NULL, argv TEXT NOT NULL, environment TEXT NOT NULL,
  log TEXT NOT NULL, started TEXT NOT NULL, finished TEXT, state TEXT, detail TEXT,
  exit_code INTEGER, signal INTEGER, seconds REAL, log_bytes INTEGER, peak_rss_mb REAL,
  gpu_memory_mb REAL, gpu_percent REAL, made TEXT);
CREATE INDEX stages_by_name ON stages(name, id);
CREATE INDEX stages_by_run ON stages(run);
CREATE TABLE readings(
  stage INTEGER NOT NULL REFERENCES stages(id), number INTEGER NOT NULL, name TEXT NOT NULL,
  value REAL, PRIMARY KEY(stage, name, number)) WITHOUT ROWID;
CREATE TABLE autolog(
  stage INTEGER NOT NULL REFERENCES stages(id), field TEXT NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY(stage, field)) WITHOUT ROWID;
CREATE TABLE nodes(
  stage INTEGER NOT NULL REFERENCES stages(id), host TEXT NOT NULL, gpu_model TEXT NOT NULL,
  framework TEXT NOT NULL, model TEXT NOT NULL, batch_size TEXT NOT NULL, state TEXT NOT NULL,
  ips REAL, PRIMARY KEY(stage, host)) WITHOUT ROWID;
)sql";

constexpr const char* kNow = "strftime('%Y-%m-%dT%H:%M:%fZ','now')";

std::string json_of(const std::vector<std::string>& list) {
  return nlohmann::json(list).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<std::int64_t> last_id(Database& database) {
  ASSAY_TRY(Statement statement, database.prepare("SELECT last_insert_rowid()"));
  ASSAY_TRY([[maybe_unused]] const bool row, statement.step());
  return statement.integer(0);
}

}  // namespace

Result<ChainStore> ChainStore::open(const std::filesystem::path& path, OpenMode mode) {
  if (mode == OpenMode::create && path.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error)
      return fail(
          fmt::format("cannot create the folder of {}: {}", path.string(), error.message()));
  }
  ASSAY_TRY(Database database, Database::open(path, mode));
  ASSAY_TRY(const std::int64_t version, database.schema_version());
  if (version == 0 && mode == OpenMode::create) {
    // In one transaction, because tables without a version could not be opened again.
    ASSAY_TRY(Transaction transaction, Transaction::begin(database));
    ASSAY_CHECK(database.execute(kSchema));
    ASSAY_CHECK(database.set_schema_version(kVersion));
    ASSAY_CHECK(transaction.commit());
  } else if (version != kVersion) {
    return usage_error(fmt::format("{} has chain schema {}, this assay reads {}", path.string(),
                                   version, kVersion));
  }
  return ChainStore(std::move(database));
}

Result<std::int64_t> ChainStore::begin_run(const plan::Plan& plan, const std::string& file) {
  ASSAY_TRY(Statement insert,
            database_.prepare(fmt::format(
                "INSERT INTO runs(file, mode, model, started) VALUES(?, ?, ?, {})", kNow)));
  insert.bind(1, file);
  insert.bind(2, plan.mode);
  insert.bind(3, plan.model);
  ASSAY_CHECK(insert.run());
  return last_id(database_);
}

Status ChainStore::finish_run(std::int64_t run, int exit_code) {
  ASSAY_TRY(Statement update,
            database_.prepare(
                fmt::format("UPDATE runs SET finished = {}, exit_code = ? WHERE id = ?", kNow)));
  update.bind(1, std::int64_t{exit_code});
  update.bind(2, run);
  return update.run();
}

Result<std::int64_t> ChainStore::begin_stage(std::int64_t run, const plan::Stage& stage) {
  ASSAY_TRY(Statement insert,
            database_.prepare(
                fmt::format("INSERT INTO stages(run, name, kind, command, argv, environment, log,"
                            " started) VALUES(?, ?, ?, ?, ?, ?, ?, {})",
                            kNow)));
  const std::string argv = json_of(stage.argv);
  const std::string environment = json_of(stage.environment);
  insert.bind(1, run);
  insert.bind(2, stage.name);
  insert.bind(3, name(stage.kind));
  insert.bind(4, stage.command);
  insert.bind(5, argv);
  insert.bind(6, environment);
  insert.bind(7, stage.log);
  ASSAY_CHECK(insert.run());
  return last_id(database_);
}

Status ChainStore::finish_stage(std::int64_t id, const stage::Outcome& outcome,
                                const stage::FileMarks& made) {
  ASSAY_TRY(Statement update,
            database_.prepare(fmt::format(
                "UPDATE stages SET finished = {}, state = ?, detail = ?, exit_code = ?, signal = ?,"
                " seconds = ?, log_bytes = ?, peak_rss_mb = ?, gpu_memory_mb = ?, gpu_percent = ?,"
                " made = ? WHERE id = ?",
                kNow)));
  const std::string marks = stage::marks_to_json(made);
  update.bind(1, name(outcome.state));
  update.bind(2, outcome.detail);
  update.bind(3, std::int64_t{outcome.exit.code});
  update.bind(4, std::int64_t{outcome.exit.signal});
  update.bind(5, outcome.seconds);
  update.bind(6, static_cast<std::int64_t>(outcome.log_bytes));
  update.bind(7, outcome.peak.rss_mb);
  update.bind(8, outcome.peak.gpu_memory_mb);
  update.bind(9, outcome.peak.gpu_percent);
  update.bind(10, marks);
  update.bind(11, id);
  return update.run();
}

Status ChainStore::add_readings(std::int64_t stage, const std::vector<StoredReading>& readings) {
  if (readings.empty()) return {};
  ASSAY_TRY(Transaction transaction, Transaction::begin(database_));
  ASSAY_TRY(Statement insert,
            database_.prepare(
                "INSERT OR REPLACE INTO readings(stage, number, name, value) VALUES(?, ?, ?, ?)"));
  for (const StoredReading& reading : readings) {
    insert.bind(1, stage);
    insert.bind(2, reading.number);
    insert.bind(3, reading.name);
    insert.bind(4,
                reading.value);  // SQLite stores NaN as NULL; the reader below turns NULL into NaN
    ASSAY_CHECK(insert.run());
  }
  return transaction.commit();
}

Status ChainStore::add_autolog(std::int64_t stage, const stage::AutoLog& fields) {
  if (fields.empty()) return {};
  ASSAY_TRY(Transaction transaction, Transaction::begin(database_));
  ASSAY_TRY(
      Statement insert,
      database_.prepare("INSERT OR REPLACE INTO autolog(stage, field, value) VALUES(?, ?, ?)"));
  for (const auto& [field, value] : fields) {
    insert.bind(1, stage);
    insert.bind(2, field);
    insert.bind(3, value);
    ASSAY_CHECK(insert.run());
  }
  return transaction.commit();
}

Status ChainStore::add_node(std::int64_t stage, const NodeRecord& node) {
  ASSAY_TRY(
      Statement insert,
      database_.prepare("INSERT OR REPLACE INTO nodes(stage, host, gpu_model, framework, model,"
                        " batch_size, state, ips) VALUES(?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.bind(1, stage);
  insert.bind(2, node.host);
  insert.bind(3, node.gpu_model);
  insert.bind(4, node.framework);
  insert.bind(5, node.model);
  insert.bind(6, node.batch_size);
  insert.bind(7, node.state);
  insert.bind(8, node.ips);
  return insert.run();
}

Result<std::optional<stage::FileMarks>> ChainStore::last_passed(const plan::Stage& stage) {
  ASSAY_TRY(Statement select,
            database_.prepare("SELECT state, argv, made FROM stages WHERE name = ? AND"
                              " (state IS NULL OR state != 'blocked') ORDER BY id DESC LIMIT 1"));
  select.bind(1, stage.name);
  ASSAY_TRY(const bool row, select.step());
  if (!row || select.text(0) != "passed" || select.text(1) != json_of(stage.argv)) {
    return std::optional<stage::FileMarks>();
  }
  return std::optional<stage::FileMarks>(stage::marks_from_json(std::string(select.text(2))));
}

Result<std::vector<StoredRun>> ChainStore::runs() {
  ASSAY_TRY(
      Statement select,
      database_.prepare("SELECT id, file, mode, model, started, exit_code FROM runs ORDER BY id"));
  std::vector<StoredRun> list;
  while (true) {
    ASSAY_TRY(const bool row, select.step());
    if (!row) return list;
    list.push_back({select.integer(0), std::string(select.text(1)), std::string(select.text(2)),
                    std::string(select.text(3)), std::string(select.text(4)),
                    select.is_null(5) ? -1 : static_cast<int>(select.integer(5))});
  }
}

Result<std::vector<StoredStage>> ChainStore::stages(std::int64_t run) {
  ASSAY_TRY(Statement select,
            database_.prepare(
                "SELECT id, name, kind, command, coalesce(state, 'unfinished'), detail, log,"
                " seconds, peak_rss_mb, gpu_memory_mb, gpu_percent FROM stages"
                " WHERE run = ? ORDER BY id"));
  select.bind(1, run);
  std::vector<StoredStage> list;
  while (true) {
    ASSAY_TRY(const bool row, select.step());
    if (!row) return list;
    list.push_back({select.integer(0), std::string(select.text(1)), std::string(select.text(2)),
                    std::string(select.text(3)), std::string(select.text(4)),
                    std::string(select.text(5)), std::string(select.text(6)), select.number(7),
                    select.number(8), select.number(9), select.number(10)});
  }
}

Result<std::vector<StoredReading>> ChainStore::readings(std::int64_t stage) {
  ASSAY_TRY(Statement select,
            database_.prepare(
                "SELECT number, name, value FROM readings WHERE stage = ? ORDER BY name, number"));
  select.bind(1, stage);
  std::vector<StoredReading> list;
  while (true) {
    ASSAY_TRY(const bool row, select.step());
    if (!row) return list;
    list.push_back({select.integer(0), std::string(select.text(1)),
                    select.is_null(2) ? __builtin_nan("") : select.number(2)});
  }
}

Result<stage::AutoLog> ChainStore::autolog(std::int64_t stage) {
  ASSAY_TRY(Statement select,
            database_.prepare("SELECT field, value FROM autolog WHERE stage = ?"));
  select.bind(1, stage);
  stage::AutoLog fields;
  while (true) {
    ASSAY_TRY(const bool row, select.step());
    if (!row) return fields;
    fields.emplace(select.text(0), select.text(1));
  }
}

Result<std::vector<NodeRecord>> ChainStore::nodes(std::int64_t stage) {
  ASSAY_TRY(Statement select,
            database_.prepare(
                "SELECT host, gpu_model, framework, model, batch_size, state, ips FROM nodes"
                " WHERE stage = ? ORDER BY host"));
  select.bind(1, stage);
  std::vector<NodeRecord> list;
  while (true) {
    ASSAY_TRY(const bool row, select.step());
    if (!row) return list;
    list.push_back({std::string(select.text(0)), std::string(select.text(1)),
                    std::string(select.text(2)), std::string(select.text(3)),
                    std::string(select.text(4)), std::string(select.text(5)), select.number(6)});
  }
}

}  // namespace assay::chain::results
