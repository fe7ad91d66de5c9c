#pragma once

#include "wire/messages_generated.h"

namespace assay {

// Whether a stored measurement passes |left − right| ≤ atol + rtol·|right| and no NaN or infinity
// disagrees. Exact for an rtol of the grid of measure/measure.h and for the tolerance that the
// record was measured with; between two grid points the stricter one is asked.
bool within(const wire::Measurement& measured, double atol, double rtol, double measured_atol,
            double measured_rtol);

}  // namespace assay
