#pragma once

// What a page shows of a run, grown case by case: nothing is read twice.

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "report/findings.h"
#include "report/rejudge.h"
#include "report/run_report.h"
#include "store/store.h"

namespace assay {

// "float32" of the first tensor of a case; empty: it has none.
std::string_view first_dtype(std::string_view case_text);

class LiveRun {
 public:
  explicit LiveRun(Judging judging) : judging_(std::move(judging)) {}

  // Records are wanted of failed cases, and of some of the others for the time of the stages.
  void add(const FinishedCase& finished);
  std::uint64_t cases() const { return cases_; }

  // {"outcomes": {…}, "apis": […], "dtypes": […], "findings": […], "history": […], "stages": […]}.
  // At most kShown rows in each list: those with most failures.
  nlohmann::json json() const;

  static constexpr std::size_t kShown = 2'000;

 private:
  static constexpr std::array<const char*, 4> kStages{"build", "forward", "copy", "backward"};
  struct OfApi {
    OutcomeCounts outcomes{};
    double seconds = 0;                           // in slots
    std::array<double, kStages.size()> stages{};  // of the cases whose records were read
    std::uint64_t timed = 0;                      // cases among those
  };
  struct Seen {
    std::uint64_t cases = 0;
    std::uint64_t id = 0;  // of the first one
    std::string text;
    std::string message;
    std::int64_t first_ms = 0;
    std::int64_t last_ms = 0;
  };
  struct Minute {
    std::uint64_t cases = 0;
    std::uint64_t failed = 0;
  };

  void add_stages(const FinishedCase& finished, OfApi& api) const;
  nlohmann::json apis_json() const;
  nlohmann::json findings_json() const;
  nlohmann::json history_json() const;

  Judging judging_;
  std::uint64_t cases_ = 0;
  OutcomeCounts outcomes_{};
  std::map<std::string, OfApi, std::less<>> apis_;
  std::map<std::string, OutcomeCounts, std::less<>> dtypes_;
  std::map<FindingKey, Seen> findings_;
  std::map<std::int64_t, Minute> minutes_;  // since 1970, by the workers' clocks
};

}  // namespace assay
