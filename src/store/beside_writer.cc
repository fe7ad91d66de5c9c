#include "store/beside_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>
#include <tuple>

#include "base/clock.h"
#include "base/fd.h"
#include "store/tally.h"

namespace assay {
namespace {

constexpr int kTries = 40;
constexpr std::chrono::milliseconds kPause{25};
// A file's time has the resolution of the kernel's tick. A file that was written within the last
// ticks may be written again without a newer time.
constexpr std::int64_t kTickMs = 20;
constexpr std::size_t kLogHeader = 32;

// Two equal states mean that no page of the file has changed between them. Pages change only when
// the writer copies its log into the file (a checkpoint). Appending to the log does not disturb a
// reader.
struct State {
  std::tuple<ino_t, off_t, std::int64_t> file;  // inode, size and time
  bool has_log = false;
  std::array<char, kLogHeader> log{};  // contains salts that change when the log is restarted

  bool operator==(const State&) const = default;
};

std::int64_t written_ns(const struct stat& of) {
  return static_cast<std::int64_t>(of.st_mtim.tv_sec) * 1'000'000'000 + of.st_mtim.tv_nsec;
}

std::filesystem::path log_of(const std::filesystem::path& file) { return file.string() + "-wal"; }

// The state; nullopt if the file was written so recently that its time cannot be trusted.
Result<std::optional<State>> state_of(const std::filesystem::path& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) return errno_error("cannot read " + file.string());
  if (std::abs(wall_ms() - written_ns(found) / 1'000'000) < kTickMs) {
    return std::optional<State>();
  }
  State state;
  state.file = {found.st_ino, found.st_size, written_ns(found)};
  const Fd log(::open(log_of(file).c_str(), O_RDONLY | O_CLOEXEC));
  if (log) {
    const ssize_t read = ::pread(log.get(), state.log.data(), state.log.size(), 0);
    state.has_log = read == static_cast<ssize_t>(state.log.size());
  }
  return std::optional(state);
}

// Copies a row into a case that outlives it.
Status keep(const Statement& row, FinishedRow& read, KeptCase& kept) {
  ASSAY_CHECK(SqliteStore::read_finished(row, 1, read));
  kept.finished = read.finished;
  kept.text = read.finished.text;
  kept.record.assign(read.finished.record.begin(), read.finished.record.end());
  return {};
}

}  // namespace

Status read_beside_writer(const std::filesystem::path& file,
                          const std::function<Status(Database&)>& read) {
  for (int tries = 0; tries < kTries; ++tries) {
    if (tries > 0) std::this_thread::sleep_for(kPause);
    ASSAY_TRY(const std::optional<State> before, state_of(file));
    if (!before) continue;
    Status done;
    {
      ASSAY_TRY(Database database,
                before->has_log ? Database::open_unlocked(file) : Database::open_unchanging(file));
      done = read(database);
    }
    ASSAY_TRY(const std::optional<State> after, state_of(file));
    // Otherwise pages may have changed during the read: even an error of `read` is no proof then.
    if (after == before) return done;
  }
  return fail(fmt::format(
      "{} was written during each of {} attempts to read it; try again when the run is less busy",
      file.string(), kTries));
}

Status FolderWatch::read(Database& database, std::size_t most, Place& place, RunNews& news) const {
  ASSAY_TRY(const std::int64_t version, SqliteStore::checked_version(database, file_));
  ASSAY_TRY(news.properties, SqliteStore::read_properties(database));
  ASSAY_TRY(news.counts, SqliteStore::read_counts(database));
  // After results were removed, their sequence numbers are used again: compare the id and the time.
  ASSAY_TRY(Statement last, database.prepare("SELECT id, at_ms FROM finished WHERE sequence = ?"));
  last.bind(1, place.sequence);
  ASSAY_TRY(const bool there, last.step());
  const bool same = there && last.integer(0) == place.id && last.integer(1) == place.at_ms;
  if ((place.cases > 0 && !same) || news.counts.finished < place.cases) {
    place = Place();
    news.begun_again = true;
  }
  const bool has_faults = version != SqliteStore::kVersionWithoutFaults;
  ASSAY_TRY(Statement rows,
            database.prepare(fmt::format(
                "SELECT sequence, f.id, p.text, outcome, mismatch, flags, lane, message, attempts, "
                "at_ms, {}, CASE WHEN {} OR f.id % {} = 0 THEN record END "
                "FROM finished f JOIN planned p USING (id) WHERE sequence > ? ORDER BY sequence "
                "LIMIT ?",
                has_faults ? "took_us, faults" : "0, ''", is_listed(), sampled_)));
  rows.bind(1, place.sequence);
  rows.bind(2, static_cast<std::int64_t>(most));
  FinishedRow read;
  while (true) {
    ASSAY_TRY(const bool row, rows.step());
    if (!row) return {};
    ASSAY_CHECK(keep(rows, read, news.cases.emplace_back()));
    place = {rows.integer(0), rows.integer(1), rows.integer(9), place.cases + 1};
  }
}

Result<RunNews> FolderWatch::news(std::size_t most) {
  RunNews news;
  Place place;
  ASSAY_CHECK(read_beside_writer(file_, [&](Database& database) {
    news = RunNews();
    place = place_;
    return read(database, most, place, news);
  }));
  // Every case has been read, but their number does not match: results were removed and replaced.
  if (place_.cases > 0 && news.cases.size() < most && place.cases != news.counts.finished) {
    place = Place();
    news.cases.clear();
    news.begun_again = true;
  }
  place_ = place;
  for (KeptCase& kept : news.cases) {
    kept.finished.text = kept.text;
    kept.finished.record = kept.record;
  }
  return news;
}

Result<std::vector<InvalidLine>> FolderWatch::invalid() const {
  std::vector<InvalidLine> lines;
  ASSAY_CHECK(read_beside_writer(file_, [&](Database& database) -> Status {
    lines.clear();
    return SqliteStore::read_invalid(database, [&](const InvalidLine& line) -> Status {
      lines.push_back(line);
      return {};
    });
  }));
  return lines;
}

Result<RunTotals> totals_of_folder(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / SqliteStore::kFileName;
  RunTotals totals;
  const auto read = [&](Database& database) -> Status {
    totals = RunTotals();
    totals.name = folder.filename();
    ASSAY_CHECK(SqliteStore::checked_version(database, file));
    ASSAY_TRY(totals.properties, SqliteStore::read_properties(database));
    Tally tally;
    ASSAY_CHECK(SqliteStore::add_tally(database, tally));
    totals.count(tally);
    return {};
  };
  ASSAY_CHECK(read_beside_writer(file, read));
  return totals;
}

}  // namespace assay
