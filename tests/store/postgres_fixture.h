#pragma once

// Stores in a real PostgreSQL, in a schema for each test, and operations on them.

#include <gmock/gmock.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "claimed.h"
#include "postgres_server.h"
#include "store/postgres_store.h"

namespace assay::testing {

using StorePtr = std::unique_ptr<PostgresStore>;

class Postgres : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (PostgresServer::programs()) server_ = std::make_unique<PostgresServer>();
  }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override {
    if (!server_) GTEST_SKIP() << "PostgreSQL is not installed: tools/setup dev";
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string schema = info->name();
    for (char& c : schema) c = static_cast<char>(std::tolower(c));
    address_ = server_->address(schema);
  }

  // Its bundles are single cases, unless the test wants more in them.
  StorePtr opened(std::chrono::milliseconds lease_time = std::chrono::seconds(30),
                  std::chrono::microseconds bundle = std::chrono::microseconds(1)) {
    PostgresStore::Options options;
    options.lease_time = lease_time;
    options.bundle = bundle;
    options.least_bundles = 1;
    auto store = PostgresStore::open(address_, StoreMode::create, options);
    if (!store) throw std::runtime_error(store.error().message);
    return std::move(*store);
  }

  // Of one that changes nothing.
  StorePtr looking_on() {
    PostgresStore::Options options;
    options.read_only = true;
    auto store = PostgresStore::open(address_, StoreMode::read, options);
    if (!store) throw std::runtime_error(store.error().message);
    return std::move(*store);
  }

  static inline std::unique_ptr<PostgresServer> server_;
  std::string address_;
};

inline void add(Store& store, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t id = first; id <= last; ++id) {
    const std::string text = "paddle.abs(" + std::to_string(id) + ")";
    ASSERT_TRUE(store.add_case(wire::planned_case(id, text, id, id, id)));
  }
  ASSERT_TRUE(store.commit());
}

inline bool finish(Store& store, const wire::JobT& job, Outcome outcome = Outcome::pass) {
  FinishedCase made = finished_of(job);
  made.verdict = {outcome, kValue, kFlaky, "paddle", std::string("a message\0, \xff", 13)};
  made.attempts = 2;
  made.finished_ms = 1'700'000'000'000;
  made.took_us = 5'000'000 / made.id;
  made.record = {0, 255, 10, 92};
  const auto taken = store.finish(made);
  return taken && *taken;
}

inline std::set<std::uint64_t> ids_of(const std::vector<wire::JobT>& jobs) {
  std::set<std::uint64_t> ids;
  for (const wire::JobT& job : jobs) ids.insert(job.test_case.id);
  return ids;
}

inline std::vector<std::uint64_t> finished_ids(Store& store) {
  std::vector<std::uint64_t> ids;
  EXPECT_TRUE(store.each_finished_id([&](std::uint64_t id) { ids.push_back(id); }));
  return ids;
}

inline std::map<std::uint64_t, std::uint64_t> expected_of(Store& store) {
  std::map<std::uint64_t, std::uint64_t> expected;
  EXPECT_TRUE(store.each_unfinished([&](const wire::CaseT& each) -> Status {
    expected[each.id] = each.work_us;
    return {};
  }));
  return expected;
}

}  // namespace assay::testing
