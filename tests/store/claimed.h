#pragma once

// Claims of a store, and their results.

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "store/store.h"

namespace assay::testing {

inline std::vector<wire::JobT> claim(RunClaims& store, std::size_t most,
                                     std::optional<Supply> left = {}) {
  std::vector<wire::JobT> jobs;
  const auto supply = store.claim(most, [&](wire::JobT job) -> Status {
    jobs.push_back(std::move(job));
    return {};
  });
  EXPECT_TRUE(supply.has_value()) << supply.error().message;
  if (left) {
    EXPECT_EQ(*supply, *left);
  }
  return jobs;
}

inline FinishedCase finished_of(const wire::JobT& job) {
  FinishedCase made;
  made.id = job.test_case.id;
  made.text = job.test_case.text;
  made.elements = job.test_case.elements;
  made.epoch = job.attempt.epoch;
  return made;
}

}  // namespace assay::testing
