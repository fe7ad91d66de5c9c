#pragma once

// An analysis as a table, as JSON, as a page with the timeline drawn, and two of them compared.

#include <string>

#include "timeline/analysis.h"

namespace assay::timeline {

std::string analysis_table(const Analysis& analysis);
std::string analysis_json(const Analysis& analysis);  // "version": 1
// One file without scripts or links. Slices too thin to be seen are left out of the drawing.
std::string analysis_html(const Analysis& analysis, const Trace& trace);
// Mean time of a step, and each device's shares, before and after.
std::string comparison_table(const Analysis& before, const Analysis& after);

}  // namespace assay::timeline
