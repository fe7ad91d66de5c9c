#include "store/folder_watch.h"

#include <fmt/format.h>

#include "store/tally.h"

namespace assay {

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
  rows.bind_all(place.sequence, static_cast<std::int64_t>(most));
  FinishedRow read;
  return rows.each([&]() -> Status {
    ASSAY_CHECK(SqliteStore::read_finished(rows, 1, read));
    news.cases.push_back(read.finished);
    place = {rows.integer(0), rows.integer(1), rows.integer(9), place.cases + 1};
    return {};
  });
}

Result<RunNews> FolderWatch::news(std::size_t most) {
  RunNews news;
  Place place = place_;
  {
    ASSAY_TRY(Database database, Database::open_to_read(file_));
    ASSAY_CHECK(read(database, most, place, news));
  }
  // Every case has been read, but their number does not match: results were removed and replaced.
  if (place_.cases > 0 && news.cases.size() < most && place.cases != news.counts.finished) {
    place = Place();
    news.cases.clear();
    news.begun_again = true;
  }
  place_ = place;
  return news;
}

Result<std::vector<InvalidLine>> FolderWatch::invalid() const {
  std::vector<InvalidLine> lines;
  ASSAY_TRY(Database database, Database::open_to_read(file_));
  ASSAY_CHECK(SqliteStore::read_invalid(database, [&](const InvalidLine& line) -> Status {
    lines.push_back(line);
    return {};
  }));
  return lines;
}

Result<RunTotals> totals_of_folder(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / SqliteStore::kFileName;
  RunTotals totals;
  totals.name = folder.filename();
  ASSAY_TRY(Database database, Database::open_to_read(file));
  ASSAY_CHECK(SqliteStore::checked_version(database, file));
  ASSAY_TRY(totals.properties, SqliteStore::read_properties(database));
  Tally tally;
  ASSAY_CHECK(SqliteStore::add_tally(database, tally));
  totals.count(tally);
  return totals;
}

}  // namespace assay
