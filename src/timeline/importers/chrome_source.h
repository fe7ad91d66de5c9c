#pragma once

// Which process of which job a trace of PyTorch's profiler is of.

#include <filesystem>

#include "timeline/importers/chrome_events.h"
#include "timeline/model.h"

namespace assay::timeline {

// From what stands beside the events: host, rank, process groups.
Source source_in(const std::filesystem::path& path, const ChromeHeader& header);

}  // namespace assay::timeline
