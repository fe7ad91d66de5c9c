#pragma once

#include <gtest/gtest.h>

#include <string>

#include "chain/params/params.h"
#include "chain/plan/make_plan.h"
#include "chain/plan/plan.h"
#include "material.h"

namespace assay::chain {

// Where a file of the models repository lies: some of its kinds look like another suite's.
constexpr const char* kModelsFile = "/x/mobilenet_v3_small/test_tipc/configs/m/f.txt";

// Returns the plan of params text, which must be good.
inline plan::Plan plan_of(const std::string& text, const std::string& mode,
                          const plan::PlanOptions& options = {}) {
  const params::ParsedParams parsed = params::parse_params(text, {kModelsFile, ""});
  EXPECT_TRUE(parsed.good()) << params::describe("f", parsed.problems);
  auto plan = plan::make_plan(parsed.params, mode, options);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message);
  return plan ? *plan : plan::Plan{};
}

}  // namespace assay::chain
