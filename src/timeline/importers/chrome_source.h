#pragma once

// Identifies the process of a trace by PyTorch's profiler.

#include <filesystem>

#include "timeline/importers/chrome_events.h"
#include "timeline/model.h"

namespace assay::timeline {

// Reads host, rank and process groups from the members beside the events.
Source source_in(const std::filesystem::path& path, const ChromeHeader& header);

}  // namespace assay::timeline
