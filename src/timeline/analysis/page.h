#pragma once

// An analysis as one HTML file with a drawing of the timeline that zooms and pans. A pixel shows
// the share of each kind of work in its time, so short slices count.

#include <string>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/collectives.h"
#include "timeline/analysis/compare.h"

namespace assay::timeline {

// With more slices than kMaxPageSlices, each row becomes kPagePieces pieces of equal time.
inline constexpr std::size_t kMaxPageSlices = 200'000;
inline constexpr std::size_t kPagePieces = 8192;

// `tables` is text for below the analysis' own table, `members` of analysis_json()'s object. The
// page holds that object as the script "analysis". `collectives` link their parts on the ranks.
std::string analysis_html(const Analysis& analysis, const Trace& trace,
                          const std::string& tables = {}, const std::string& members = {},
                          const CollectiveReport& collectives = {});

// Two runs: their differences, and both drawings on one time axis.
std::string comparison_html(const Comparison& comparison, const ComparedRun& before,
                            const ComparedRun& after);

}  // namespace assay::timeline
