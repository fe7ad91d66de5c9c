#pragma once

#include <gtest/gtest.h>

#include <string>

#include "chain/params/params.h"
#include "chain/plan/plan.h"
#include "material.h"

namespace assay::chain {

// The plan of params text that must be good.
inline plan::Plan plan_of(const std::string& text, const std::string& mode,
                          const plan::PlanOptions& options = {}) {
  const params::ParsedParams parsed = params::parse_params(text);
  EXPECT_TRUE(parsed.good()) << params::describe("f", parsed.problems);
  auto plan = plan::make_plan(parsed.params, mode, options);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message);
  return plan ? *plan : plan::Plan{};
}

}  // namespace assay::chain
