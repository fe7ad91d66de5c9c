#pragma once

// Works a fill rule out for one dtype.

#include "case/dtype.h"
#include "fill/plan.h"
#include "fill/rule.h"

namespace assay {

FillPlan make_plan(const FillRule& rule, const FillKey& key, DType dtype);
// Of a tensor that is `value` everywhere, for constant_value() of fill/element.h alone.
FillPlan constant_plan(double value, DType dtype);

}  // namespace assay
