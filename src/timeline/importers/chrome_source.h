#pragma once

// Imports a profiler's trace of one process, and identifies the process.

#include <filesystem>
#include <vector>

#include "timeline/importers/chrome_events.h"
#include "timeline/importers/chrome_trace.h"
#include "timeline/model.h"

namespace assay::timeline {

// Reads host, rank and process groups from the members beside the events.
Source source_in(const std::filesystem::path& path, const ChromeHeader& header);

// The description of a track by our own merge, before its first event. Adds its process to
// `sources`, whose first element is the file.
Track merged_track_in(const ChromeEvent& event, std::vector<Source>& sources);

// Of a file into which somebody merged the traces of several ranks: gives each process that
// launches work a source of its own, with its tracks. Work is of the process with a launch of the
// same correlation, and of the same label ("[TP01] 0", as SGLang's merger writes it). Nothing
// changes with one such process. Needs the process ids as the names of the tracks' processes.
void split_processes(Trace& trace);

// As import_chrome_trace(); an analysis of a trace without GPU work needs its operators, too.
Result<Trace> import_profile(const std::filesystem::path& path, const ChromeDialect& dialect,
                             const ImportOptions& options);

}  // namespace assay::timeline
