#pragma once

// An analysis as one HTML file with the timeline drawn. The drawing zooms and pans; a pixel shows
// how much of its time each kind of work took, so that nothing is too thin to count.

#include <string>

#include "timeline/analysis/analysis.h"

namespace assay::timeline {

// Where a trace has more slices than a page can carry, each row is cut into so many pieces of time.
inline constexpr std::size_t kMaxPageSlices = 200'000;
inline constexpr std::size_t kPagePieces = 8192;

// `tables` is text that stands below the analysis' own table.
std::string analysis_html(const Analysis& analysis, const Trace& trace,
                          const std::string& tables = {});

}  // namespace assay::timeline
