#pragma once

// Computes the plan of a fill rule for a dtype.

#include "case/dtype.h"
#include "fill/plan.h"
#include "fill/rule.h"

namespace assay {

// Computes the plan of a rule for a dtype. A range without values of the dtype gives a constant.
FillPlan make_plan(const FillRule& rule, const FillKey& key, DType dtype);
// The plan of a tensor that is `value` everywhere. Only for constant_value() of fill/element.h.
FillPlan constant_plan(double value, DType dtype);

}  // namespace assay
