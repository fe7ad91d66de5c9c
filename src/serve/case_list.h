#pragma once

// The cases of a run that somebody may want to look at, as a page reads them: in parts, each a
// compressed text, so that a page shows something before it has all.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace assay {

class CaseList {
 public:
  static constexpr std::size_t kOfPart = 2'000;
  // What all parts together may have: a page that has them inside stays below 30 MB.
  static constexpr std::size_t kMostBytes = 20'000'000;

  using Part = std::shared_ptr<const std::string>;

  void add(const FinishedCase& finished);
  void add(const InvalidLine& line);

  // How many cases are in the parts, and how many had no room there.
  std::uint64_t cases() const { return cases_; }
  std::uint64_t left_out() const { return left_out_; }

  // Each is JSON, compressed with gzip: {"id": […], "outcome": […], "kinds": […], "lane": […],
  // "flags": […], "text": […], "message": […]}, lists of the same length. All but the last have
  // kOfPart cases.
  Result<std::vector<Part>> parts();

 private:
  struct Row {
    std::string id;
    std::string outcome;
    std::string kinds;
    std::string lane;  // of a line that is no case: where it stands
    std::string flags;
    std::string text;
    std::string message;
  };
  void add(Row row);
  static Result<std::string> packed(const std::vector<Row>& rows);

  std::vector<Row> open_;     // of the last part
  std::vector<Part> sealed_;  // the others
  std::uint64_t cases_ = 0;
  std::uint64_t left_out_ = 0;
  std::size_t bytes_ = 0;  // of the sealed ones
};

}  // namespace assay
