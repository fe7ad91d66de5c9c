#pragma once

#include "wire/messages_generated.h"

namespace assay {

// Whether a stored measurement satisfies |left − right| ≤ atol + rtol·|right| for each element, and
// NaN and infinity agree. Exact for the tolerance with which the record was measured, and for an
// rtol of the grid in measure/measure.h; between two grid points the stricter one is used. A share
// of `outliers` may exceed the tolerance, but only if it is the record's own: a record has no count
// for other tolerances.
bool within(const wire::Measurement& measured, double atol, double rtol, double measured_atol,
            double measured_rtol, double outliers = 0);

}  // namespace assay
