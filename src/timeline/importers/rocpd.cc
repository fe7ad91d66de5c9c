// Imports rocpd databases of ROCm's profiler (rocprofv3): kernels, copies, API calls and markers.
// Schema: rocprofiler-sdk, source/share/rocprofiler-sdk-rocpd/rocpd_tables.sql, version 3.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "timeline/importers/builder.h"
#include "timeline/importers/chrome_trace.h"
#include "timeline/importers/importer.h"
#include "timeline/importers/sqlite_tables.h"

namespace assay::timeline {
namespace {

constexpr std::string_view kKernels = "rocpd_kernel_dispatch";

// The process's tables end with an id of their own.
std::string suffix_in(const std::set<std::string>& tables) {
  for (const std::string& table : tables) {
    if (table.starts_with(kKernels)) return table.substr(kKernels.size());
  }
  return {};
}

class RocpdReader : private SqliteReader {
 public:
  RocpdReader(Database database, const ImportOptions& options)
      : SqliteReader(std::move(database), options) {}

  Trace read(const std::filesystem::path& path) {
    path_ = path.string();
    const auto tables = table_names(database_);
    suffix_ = suffix_in(tables);
    const bool suffix_is_plain = std::ranges::all_of(
        suffix_, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    if (!suffix_is_plain) suffix_.clear();
    read_processes();
    read_work();
    read_regions();
    builder_.describe(path, "rocpd");
    return builder_.finish();
  }

 private:
  // Calls take(row) for each row; {} in the query is the suffix of the tables.
  template <typename Take>
  void each(std::string query, Take take) {
    for (std::size_t at = query.find("{}"); at != std::string::npos; at = query.find("{}")) {
      query.replace(at, 2, suffix_);
    }
    each_row("rocpd", query, take);
  }

  void read_processes() {
    each(
        "SELECT p.id, p.pid, coalesce(n.hostname, '') FROM \"rocpd_info_process{}\" p LEFT JOIN "
        "\"rocpd_info_node{}\" n ON n.id = p.nid",
        [&](Row row) {
          auto& sources = builder_.trace().sources;
          constexpr std::size_t kMostProcesses = 1024;
          if (sources.size() >= kMostProcesses) return;
          sources_[row.integer(0)] = static_cast<std::uint32_t>(sources.size());
          sources.push_back({.path = path_,
                             .host = std::string(row.text(2)),
                             .pid = row.integer(1),
                             .groups = {}});
        });
    each(
        "SELECT p.id, a.product_name FROM \"rocpd_info_process{}\" p JOIN \"rocpd_info_agent{}\" "
        "a ON a.pid = p.id WHERE a.type = 'GPU'",
        [&](Row row) {
          builder_.trace().sources[source_of(row.integer(0))].device = std::string(row.text(1));
        });
  }

  void read_work() {
    each(
        "SELECT k.start, k.end, coalesce(a.type_index, 0), k.stream_id, k.pid, e.stack_id, "
        "coalesce(s.display_name, s.kernel_name, '') FROM \"rocpd_kernel_dispatch{}\" k LEFT JOIN "
        "\"rocpd_info_agent{}\" a ON a.id = k.agent_id LEFT JOIN \"rocpd_event{}\" e ON e.id = "
        "k.event_id LEFT JOIN \"rocpd_info_kernel_symbol{}\" s ON s.id = k.kernel_id",
        [&](Row row) {
          Slice slice;
          if (!span_of(row, 0, slice)) return;
          slice.kind = options_.kinds.kind(row.text(6));
          add_work(row, slice, "kernel", kNone);
        });
    // The GPU's side of a copy: the destination, or for copies to the host the source.
    each(
        "SELECT c.start, c.end, coalesce(CASE d.type WHEN 'GPU' THEN d.type_index ELSE "
        "s.type_index END, 0), c.stream_id, c.pid, e.stack_id, coalesce(n.string, 'Memcpy'), "
        "c.size FROM \"rocpd_memory_copy{}\" c LEFT JOIN \"rocpd_info_agent{}\" d ON d.id = "
        "c.dst_agent_id LEFT JOIN \"rocpd_info_agent{}\" s ON s.id = c.src_agent_id LEFT JOIN "
        "\"rocpd_event{}\" e ON e.id = c.event_id LEFT JOIN \"rocpd_string{}\" n ON n.id = "
        "c.name_id",
        [&](Row row) {
          Slice slice;
          if (!span_of(row, 0, slice)) return;
          slice.kind = Kind::memory;
          add_work(row, slice, "gpu_memcpy", row.integer(7));
        });
  }

  void add_work(Row row, Slice& slice, const char* category, std::int64_t bytes) {
    slice.name = builder_.trace().strings.intern(row.text(6));
    slice.category = builder_.trace().strings.intern(category);
    const std::int64_t device = row.integer(2);
    slice.track =
        gpu_track(source_of(row.integer(4)), device, row.integer(3), fmt::format("GPU {}", device));
    add_with_detail(slice, row.is_null(5) ? 0 : row.integer(5), bytes);
  }

  // API calls launch the work with their stack id; markers are ranges of the program.
  void read_regions() {
    each(
        "SELECT r.start, r.end, coalesce(t.tid, 0), r.pid, e.stack_id, coalesce(n.string, ''), "
        "coalesce(c.string, '') FROM \"rocpd_region{}\" r LEFT JOIN \"rocpd_info_thread{}\" t ON "
        "t.id = r.tid LEFT JOIN \"rocpd_event{}\" e ON e.id = r.event_id LEFT JOIN "
        "\"rocpd_string{}\" n ON n.id = r.name_id LEFT JOIN \"rocpd_string{}\" c ON c.id = "
        "e.category_id",
        [&](Row row) {
          Slice slice;
          if (!span_of(row, 0, slice)) return;
          slice.kind = Kind::host;
          slice.name = builder_.trace().strings.intern(row.text(5));
          slice.category = builder_.trace().strings.intern(row.text(6));
          slice.track = host_track(source_of(row.integer(3)), row.integer(2), "host");
          add_region(row, slice);
        });
  }

  void add_region(Row row, const Slice& slice) {
    const bool marker = row.text(6).find("MARKER") != std::string_view::npos;
    if (!marker && !row.is_null(4)) add_launch(slice, row.integer(4));
    if (marker) add_step(row.text(5), slice);
    if (options_.analysis && !marker) {
      ++builder_.report().ignored;
    } else {
      builder_.add(slice);
    }
  }

  std::uint32_t source_of(std::int64_t process) {
    const auto found = sources_.find(process);
    if (found != sources_.end()) return found->second;
    auto& sources = builder_.trace().sources;
    if (sources.empty()) sources.push_back({.path = path_, .host = {}, .groups = {}});
    return 0;
  }

  std::map<std::int64_t, std::uint32_t> sources_;
  std::string suffix_;
  std::string path_;
};

bool recognises(const Sniff& sniff) {
  return std::ranges::any_of(sniff.tables,
                             [](const std::string& table) { return table.starts_with(kKernels); });
}

Result<Trace> import(const std::filesystem::path& path, const ImportOptions& options) {
  ASSAY_TRY(Database database, open_sqlite(path));
  return RocpdReader(std::move(database), options).read(path);
}

}  // namespace

const Importer kRocpd{"rocpd", "an SQLite database with tables rocpd_kernel_dispatch…", recognises,
                      import};

}  // namespace assay::timeline
