#pragma once

// An analysis as one HTML file with a drawing of the timeline that zooms and pans. A pixel shows
// the share of each kind of work in its time, so short slices count.

#include <string>

#include "timeline/analysis/analysis.h"

namespace assay::timeline {

// With more slices than kMaxPageSlices, each row becomes kPagePieces pieces of equal time.
inline constexpr std::size_t kMaxPageSlices = 200'000;
inline constexpr std::size_t kPagePieces = 8192;

// `tables` is text for below the analysis' own table, `members` of analysis_json()'s object. The
// page holds that object as the script "analysis".
std::string analysis_html(const Analysis& analysis, const Trace& trace,
                          const std::string& tables = {}, const std::string& members = {});

}  // namespace assay::timeline
