#include "timeline/importers/sqlite_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "timeline/importers/chrome_trace.h"
#include "timeline/input/byte_source.h"

namespace assay::timeline {
namespace {

std::set<std::string> texts(Result<Statement> rows) {
  std::set<std::string> result;
  for (Result<bool> row = rows ? rows->step() : false; row && *row; row = rows->step()) {
    result.emplace(rows->text(0));
  }
  return result;
}

}  // namespace

Result<Database> open_sqlite(const std::filesystem::path& path) {
  ASSAY_TRY(const Fd file, open_unpacked(path));
  return Database::open_foreign(file.get(), path);
}

std::set<std::string> table_names(Database& database) {
  return texts(database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'"));
}

std::set<std::string> table_columns(Database& database, const std::string& table) {
  auto rows = database.prepare("SELECT name FROM pragma_table_info(?1)");
  if (rows) rows->bind(1, std::string_view(table));
  return texts(std::move(rows));
}

bool SqliteReader::span_of(Row row, Nanos base, Slice& slice) {
  constexpr Nanos kMaxTime = std::numeric_limits<Nanos>::max() / 4;
  ++report().records;
  slice.begin = row.integer(0);
  slice.end = row.integer(1);
  if (slice.begin < 0 || slice.end > kMaxTime || row.is_null(1)) {
    ++report().malformed;
    return false;
  }
  if (slice.end < slice.begin) {
    ++report().backwards;
    return false;
  }
  slice.begin += base;
  slice.end += base;
  return builder_.has_room();
}

void SqliteReader::add_launch(const Slice& slice, std::int64_t correlation) {
  builder_.trace().launches.push_back({.begin = slice.begin,
                                       .end = slice.end,
                                       .correlation = static_cast<std::uint64_t>(correlation),
                                       .track = slice.track,
                                       .name = slice.name});
}

void SqliteReader::add_step(std::string_view name, const Slice& slice) {
  constexpr std::array<std::string_view, 9> kPrefixes{"ProfilerStep#", "step ",      "step_",
                                                      "step",          "Step ",      "iteration ",
                                                      "iteration",     "Iteration ", "iter "};
  const std::int64_t number = step_number(name, kPrefixes);
  if (number == kNone) return;
  const std::uint32_t source = builder_.trace().tracks[slice.track].source;
  builder_.trace().rank_steps.push_back({source, {number, slice.begin, slice.end}});
}

std::uint32_t SqliteReader::gpu_track(std::uint32_t source, std::int64_t device,
                                      std::int64_t stream, const std::string& process) {
  return tracks_.find({source, device, stream, "GPU"}, [&] {
    Track track;
    track.gpu = true;
    track.device = static_cast<std::int32_t>(device);
    track.source = source;
    track.label = fmt::format("GPU {} · stream {}", device, stream);
    track.process = process;
    return track;
  });
}

std::uint32_t SqliteReader::host_track(std::uint32_t source, std::int64_t thread,
                                       const std::string& process, std::string_view what) {
  return tracks_.find({source, kNone, thread, what}, [&] {
    Track track;
    track.source = source;
    track.label = fmt::format("{} {}", what, thread);
    track.process = process;
    return track;
  });
}

void SqliteReader::add_with_detail(Slice& slice, std::int64_t correlation, std::int64_t bytes,
                                   std::int64_t blocks) {
  Detail detail;
  detail.correlation = static_cast<std::uint64_t>(correlation);
  detail.bytes = bytes;
  detail.blocks = static_cast<std::uint32_t>(std::clamp<std::int64_t>(blocks, 0, kNoIndex));
  slice.detail = builder_.add_detail(detail);
  builder_.add(slice);
}

}  // namespace assay::timeline
