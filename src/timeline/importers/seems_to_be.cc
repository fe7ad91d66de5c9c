// Names the kind of a file that no importer reads, so that its owner knows what to do.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "timeline/importers/importer.h"

namespace assay::timeline {
namespace {

using Signs = std::pair<std::string_view, std::string_view>;

// By the end of the name, for formats without a mark in their first bytes.
constexpr std::array<Signs, 3> kEndings{{
    {".nsys-rep", "a report of Nsight Systems: convert it with `nsys export --type sqlite`"},
    {".qdstrm", "an unfinished report of Nsight Systems"},
    {".ncu-rep", "a report of Nsight Compute, which has no timeline"},
}};

constexpr std::array<Signs, 8> kFirstBytes{{
    {"\x7f"
     "ELF",
     "an ELF program or library"},
    {"PK\x03\x04", "a ZIP archive, such as a PyTorch checkpoint"},
    {"\x80\x02", "a Python pickle, neither a flight recorder dump nor a memory snapshot"},
    {"\x80\x04", "a Python pickle, neither a flight recorder dump nor a memory snapshot"},
    {"\x80\x05", "a Python pickle, neither a flight recorder dump nor a memory snapshot"},
    {"\x89PNG", "a picture"},
    {"<!doctype html", "a web page"},
    {"<html", "a web page"},
}};

std::string of_database(const Sniff& sniff) {
  const auto has = [&](std::string_view part) {
    return std::ranges::any_of(sniff.tables, [&](const std::string& table) {
      return table.find(part) != std::string::npos;
    });
  };
  if (has("rocpd_")) return "a database of ROCm's older profiler (rpd), which assay does not read";
  if (has("TARGET_INFO") || has("StringIds")) {
    return "an nsys export without events: record with `nsys profile --trace=cuda,nvtx`";
  }
  if (has("STRING_IDS") && has("TASK")) {
    return "a database of Ascend's profiler: use trace_view.json beside it";
  }
  constexpr std::size_t kShown = 4;
  std::vector<std::string> tables(sniff.tables.begin(), sniff.tables.end());
  if (tables.size() > kShown) tables.resize(kShown);
  return tables.empty() ? "an SQLite database without tables"
                        : fmt::format("an SQLite database with tables {}", fmt::join(tables, ", "));
}

bool is_text(std::string_view head) {
  return std::ranges::none_of(head, [](char c) {
    return static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\r' && c != '\t' &&
           c != '\x1b';
  });
}

}  // namespace

std::string seems_to_be(const std::filesystem::path& path, const Sniff& sniff) {
  if (sniff.head.empty()) return "empty";
  const std::string name = lowered(path.filename().string());
  for (const auto& [end, what] : kEndings) {
    if (name.ends_with(end)) return std::string(what);
  }
  if (sniff.head.starts_with("SQLite format 3")) return of_database(sniff);
  const std::string head = lowered(sniff.head);
  for (const auto& [mark, what] : kFirstBytes) {
    if (sniff.head.starts_with(mark) || head.starts_with(mark)) return std::string(what);
  }
  if (sniff.keys.contains("rocprofiler-sdk-tool")) {
    return "rocprofv3's JSON: record with `rocprofv3 --output-format rocpd` or `pftrace`";
  }
  if (sniff.json) {
    constexpr std::size_t kShown = 6;
    std::vector<std::string> keys(sniff.keys.begin(), sniff.keys.end());
    if (keys.size() > kShown) keys.resize(kShown);
    return keys.empty()
               ? "JSON without events"
               : fmt::format("JSON without events, with the members {}", fmt::join(keys, ", "));
  }
  for (const char* plane : {"/host:", "/device:", "Task Environment"}) {
    if (!sniff.head.starts_with('\n') || sniff.head.find(plane) == std::string::npos) continue;
    return "an XPlane file of JAX or TensorFlow: use trace.json.gz beside it, or convert it with "
           "xprof (xspace_to_tool_data([FILE], \"trace_viewer\", {}))";
  }
  if (!is_text(sniff.head)) return "binary data";
  constexpr std::size_t kShown = 60;
  return fmt::format("a text file that begins with \"{}\"",
                     sniff.head.substr(0, std::min(kShown, sniff.head.find_first_of("\r\n"))));
}

}  // namespace assay::timeline
