#pragma once

#include <gtest/gtest.h>

#include <string>

#include "chain/params.h"
#include "chain/plan.h"
#include "material.h"

namespace assay {

// The plan of params text that must be good.
inline Plan plan_of(const std::string& text, const std::string& mode,
                    const PlanOptions& options = {}) {
  const ParsedParams parsed = parse_params(text);
  EXPECT_TRUE(parsed.good()) << describe("f", parsed.problems);
  auto plan = make_plan(parsed.params, mode, options);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message);
  return plan ? *plan : Plan{};
}

}  // namespace assay
