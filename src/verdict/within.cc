#include "verdict/within.h"

#include "measure/measurement.h"

namespace assay {

bool within(const wire::Measurement& measured, double atol, double rtol, double measured_atol,
            double measured_rtol, double outliers) {
  if (measured.bit_equal() == measured.count()) return true;
  if (measured.nan_left() + measured.nan_right() + measured.inf_disagree() > 0) return false;
  if (atol == measured_atol && rtol == measured_rtol) {
    return static_cast<double>(measured.beyond()) <=
           outliers * static_cast<double>(measured.count());
  }
  const auto* needed = measured.atol_needed();
  if (needed == nullptr || needed->size() != kRtolGrid.size()) return false;
  double smallest = needed->Get(0);  // for rtol 0
  for (flatbuffers::uoffset_t i = 0; i < needed->size(); ++i) {
    if (kRtolGrid[i] <= rtol) smallest = needed->Get(i);
  }
  return smallest <= atol;
}

}  // namespace assay
