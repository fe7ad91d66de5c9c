#pragma once

#include "wire/messages_generated.h"

namespace assay {

// Whether a stored measurement passes |left − right| ≤ atol + rtol·|right| and no NaN or infinity
// disagrees. Exact for an rtol of the grid of measure/measure.h and for the tolerance that the
// record was measured with; between two grid points the stricter one is asked. Under the record's
// own tolerance a share of `outliers` may be beyond it; under others, where nobody counted, none.
bool within(const wire::Measurement& measured, double atol, double rtol, double measured_atol,
            double measured_rtol, double outliers = 0);

}  // namespace assay
