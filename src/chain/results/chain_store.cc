#include "chain/results/chain_store.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/atomic_file.h"
#include "base/json.h"

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
  gpu_memory_mb REAL, gpu_percent REAL, made TEXT, identity TEXT NOT NULL);
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

constexpr std::string_view kLastId = "SELECT last_insert_rowid()";

std::string json_of(const std::vector<std::string>& list) { return dumped(nlohmann::json(list)); }

// Runs a statement with its parameters in order. NOW in it becomes the current time.
template <typename... Values>
Status run(Database& database, std::string sql, const Values&... values) {
  if (const std::size_t now = sql.find("NOW"); now != std::string::npos) {
    sql.replace(now, 3, "strftime('%Y-%m-%dT%H:%M:%fZ','now')");
  }
  ASSAY_TRY(Statement statement, database.prepare(sql));
  return statement.run(values...);
}

// Reads all rows of a statement whose only parameter is `id`.
template <typename Read>
auto rows_of(Database& database, std::string_view sql, std::int64_t id, Read read)
    -> Result<std::vector<decltype(read(std::declval<Statement&>()))>> {
  ASSAY_TRY(Statement select, database.prepare(sql));
  select.bind(1, id);
  std::vector<decltype(read(select))> rows;
  ASSAY_CHECK(select.each([&]() -> Status {
    rows.push_back(read(select));
    return {};
  }));
  return rows;
}

std::string text(const Statement& row, int column) { return std::string(row.text(column)); }

}  // namespace

Result<ChainStore> ChainStore::open(const std::filesystem::path& path, OpenMode mode) {
  if (mode == OpenMode::create) ASSAY_CHECK(make_folder(path.parent_path()));
  std::error_code none;
  if (mode == OpenMode::existing && !std::filesystem::exists(path, none)) {
    return usage_error(path.string() +
                       " does not exist; `assay chain run` prints where its results are");
  }
  ASSAY_TRY(Database database,
            mode == OpenMode::existing ? Database::open_to_read(path) : Database::open(path, mode));
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
  ASSAY_CHECK(run(database_, "INSERT INTO runs(file, mode, model, started) VALUES(?, ?, ?, NOW)",
                  file, plan.mode, plan.model));
  return database_.read_integer(kLastId);
}

Status ChainStore::finish_run(std::int64_t id, int exit_code) {
  return run(database_, "UPDATE runs SET finished = NOW, exit_code = ? WHERE id = ?",
             std::int64_t{exit_code}, id);
}

Result<std::int64_t> ChainStore::begin_stage(std::int64_t run_id, const plan::Stage& stage,
                                             const std::string& identity) {
  ASSAY_CHECK(run(database_,
                  "INSERT INTO stages(run, name, kind, command, argv, environment, log, identity,"
                  " started) VALUES(?, ?, ?, ?, ?, ?, ?, ?, NOW)",
                  run_id, stage.name, name(stage.kind), stage.command, json_of(stage.argv),
                  json_of(stage.environment), stage.log, identity));
  return database_.read_integer(kLastId);
}

Status ChainStore::finish_stage(std::int64_t id, const stage::Outcome& outcome,
                                const stage::FileMarks& made) {
  return run(database_,
             "UPDATE stages SET finished = NOW, state = ?, detail = ?, exit_code = ?, signal = ?,"
             " seconds = ?, log_bytes = ?, peak_rss_mb = ?, gpu_memory_mb = ?, gpu_percent = ?,"
             " made = ? WHERE id = ?",
             name(outcome.state), outcome.detail, std::int64_t{outcome.exit.code},
             std::int64_t{outcome.exit.signal}, outcome.seconds,
             static_cast<std::int64_t>(outcome.log_bytes), outcome.peak.rss_mb,
             outcome.peak.gpu_memory_mb, outcome.peak.gpu_percent, stage::marks_to_json(made), id);
}

Status ChainStore::add_readings(std::int64_t stage, const std::vector<StoredReading>& readings) {
  if (readings.empty()) return {};
  ASSAY_TRY(Transaction transaction, Transaction::begin(database_));
  ASSAY_TRY(Statement insert,
            database_.prepare(
                "INSERT OR REPLACE INTO readings(stage, number, name, value) VALUES(?, ?, ?, ?)"));
  for (const StoredReading& reading : readings) {
    // SQLite stores NaN as NULL, which readings() turns back into NaN.
    ASSAY_CHECK(insert.run(stage, reading.number, reading.name, reading.value));
  }
  return transaction.commit();
}

Status ChainStore::add_autolog(std::int64_t stage, const stage::AutoLog& fields) {
  if (fields.empty()) return {};
  ASSAY_TRY(Transaction transaction, Transaction::begin(database_));
  for (const auto& [field, value] : fields) {
    ASSAY_CHECK(run(database_,
                    "INSERT OR REPLACE INTO autolog(stage, field, value) VALUES(?, ?, ?)", stage,
                    field, value));
  }
  return transaction.commit();
}

Status ChainStore::add_node(std::int64_t stage, const NodeRecord& node) {
  return run(database_,
             "INSERT OR REPLACE INTO nodes(stage, host, gpu_model, framework, model, batch_size,"
             " state, ips) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
             stage, node.host, node.gpu_model, node.framework, node.model, node.batch_size,
             node.state, node.ips);
}

Result<std::optional<stage::FileMarks>> ChainStore::last_passed(const plan::Stage& stage,
                                                                const std::string& identity) {
  ASSAY_TRY(Statement select,
            database_.prepare("SELECT state, identity, made FROM stages WHERE name = ? AND"
                              " (state IS NULL OR state != 'blocked') ORDER BY id DESC LIMIT 1"));
  select.bind(1, stage.name);
  ASSAY_TRY(const bool row, select.step());
  if (!row || select.text(0) != "passed" || select.text(1) != identity) {
    return std::optional<stage::FileMarks>();
  }
  return std::optional<stage::FileMarks>(stage::marks_from_json(std::string(select.text(2))));
}

Result<std::vector<StoredRun>> ChainStore::runs() {
  return rows_of(database_,
                 "SELECT id, file, mode, model, started, coalesce(exit_code, -1) FROM runs"
                 " WHERE id > ? ORDER BY id",
                 0, [](const Statement& row) {
                   return StoredRun{row.integer(0), text(row, 1), text(row, 2),
                                    text(row, 3),   text(row, 4), static_cast<int>(row.integer(5))};
                 });
}

Result<std::vector<StoredStage>> ChainStore::stages(std::int64_t run_id) {
  return rows_of(database_,
                 "SELECT id, name, kind, command, coalesce(state, 'unfinished'), detail, log,"
                 " seconds, peak_rss_mb, gpu_memory_mb, gpu_percent, made FROM stages"
                 " WHERE run = ? ORDER BY id",
                 run_id, [](const Statement& row) {
                   return StoredStage{
                       row.integer(0), text(row, 1),   text(row, 2),
                       text(row, 3),   text(row, 4),   text(row, 5),
                       text(row, 6),   row.number(7),  row.number(8),
                       row.number(9),  row.number(10), stage::marks_from_json(text(row, 11))};
                 });
}

Result<std::vector<StoredReading>> ChainStore::readings(std::int64_t stage) {
  return rows_of(database_,
                 "SELECT number, name, value FROM readings WHERE stage = ? ORDER BY name, number",
                 stage, [](const Statement& row) {
                   return StoredReading{row.integer(0), text(row, 1),
                                        row.is_null(2) ? __builtin_nan("") : row.number(2)};
                 });
}

Result<stage::AutoLog> ChainStore::autolog(std::int64_t stage) {
  ASSAY_TRY(const auto rows,
            rows_of(database_, "SELECT field, value FROM autolog WHERE stage = ?", stage,
                    [](const Statement& row) { return std::pair(text(row, 0), text(row, 1)); }));
  return stage::AutoLog(rows.begin(), rows.end());
}

Result<std::vector<NodeRecord>> ChainStore::nodes(std::int64_t stage) {
  return rows_of(database_,
                 "SELECT host, gpu_model, framework, model, batch_size, state, ips FROM nodes"
                 " WHERE stage = ? ORDER BY host",
                 stage, [](const Statement& row) {
                   return NodeRecord{text(row, 0), text(row, 1), text(row, 2), text(row, 3),
                                     text(row, 4), text(row, 5), row.number(6)};
                 });
}

}  // namespace assay::chain::results
