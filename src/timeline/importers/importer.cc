#include "timeline/importers/importer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "base/fd.h"

namespace assay::timeline {

std::span<const Importer* const> importers() {
  static constexpr std::array<const Importer*, 5> kAll{&kNsysSqlite, &kRecording, &kKineto,
                                                       &kPaddleProfiler, &kChrome};
  return kAll;
}

Result<Trace> import_trace(const std::filesystem::path& path) {
  std::array<char, 4096> buffer{};
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return usage_error(fmt::format("cannot read {}", path.string()));
  const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
  if (got < 0) return errno_error(fmt::format("cannot read {}", path.string()));
  const std::string_view head(buffer.data(), static_cast<std::size_t>(got));
  for (const Importer* importer : importers()) {
    if (importer->recognises(head)) return importer->import(path);
  }
  return usage_error(
      fmt::format("{}: no trace of PyTorch's or Paddle's profiler, no nsys SQLite export, no "
                  "recording of assay "
                  "(job logs are read with --log_dir)",
                  path.string()));
}

void append_trace(Trace& trace, const Trace& other) {
  const auto first_track = static_cast<std::uint32_t>(trace.tracks.size());
  trace.tracks.insert(trace.tracks.end(), other.tracks.begin(), other.tracks.end());
  for (Slice slice : other.slices) {
    slice.track += first_track;
    slice.name = trace.strings.intern(other.strings.text(slice.name));
    slice.category = trace.strings.intern(other.strings.text(slice.category));
    trace.slices.push_back(slice);
  }
  for (const Step& step : other.steps) {
    bool known = false;
    for (Step& mine : trace.steps) {
      if (mine.number != step.number) continue;
      mine.begin = std::min(mine.begin, step.begin);
      mine.end = std::max(mine.end, step.end);
      known = true;
    }
    if (!known) trace.steps.push_back(step);
  }
  trace.files.insert(trace.files.end(), other.files.begin(), other.files.end());
  trace.notes.insert(trace.notes.end(), other.notes.begin(), other.notes.end());
  trace.sort();
}

}  // namespace assay::timeline
