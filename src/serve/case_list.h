#pragma once

// The list of failed and flagged cases of a page. It is divided into compressed parts, so that a
// page can show the first cases before it has all of them.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "pages/page.h"
#include "store/store.h"

namespace assay {

class CaseList {
 public:
  static constexpr std::size_t kOfPart = 2'000;  // cases of a part
  // Limit of all parts together, so that a page that contains them stays below 10 MB.
  static constexpr std::size_t kMostBytes = 6'500'000;

  using Part = pages::Part;

  // Adds a case, or a line that is no case. Both are ignored when the parts are full.
  void add(const FinishedCase& finished);
  void add(const InvalidLine& line);

  // The number of cases in the parts, and of those that were ignored.
  std::uint64_t cases() const { return cases_; }
  std::uint64_t left_out() const { return left_out_; }

  // The parts. Each is JSON compressed with gzip: {"id": […], "outcome": […], "kinds": […],
  // "lane": […], "flags": […], "text": […], "message": […]}, with lists of equal length. All parts
  // but the last have kOfPart cases.
  Result<std::vector<Part>> parts();

 private:
  struct Row {
    std::string id;
    std::string outcome;
    std::string kinds;
    std::string lane;  // InvalidLine::where for a line that is no case
    std::string flags;
    std::string text;
    std::string message;
  };
  void add(Row row);
  static Result<std::string> packed(const std::vector<Row>& rows);

  std::vector<Row> open_;     // rows of the last part
  std::vector<Part> sealed_;  // the parts before it
  std::uint64_t cases_ = 0;
  std::uint64_t left_out_ = 0;
  std::size_t bytes_ = 0;  // of sealed_
};

}  // namespace assay
