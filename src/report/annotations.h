#pragma once

// Findings in formats that other programs show beside the code: SARIF 2.1.0, and the workflow
// commands of GitHub Actions.

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "report/findings.h"
#include "report/run_verdict.h"

namespace assay {

// The positions of cases in the corpus files of a repository.
class CorpusPlaces {
 public:
  struct Place {
    std::string file;  // as the patterns name it
    std::size_t line = 0;
  };

  // Reads the cases of these files. Invalid lines are left out.
  static Result<CorpusPlaces> read(std::span<const std::string> patterns);

  // The position of a case; nullptr if no file has it.
  const Place* find(std::uint64_t id) const;

 private:
  std::unordered_map<std::uint64_t, Place> places_;
};

// A finding on one line: "paddle.silu, gradient of x: value: …".
std::string finding_line(const Finding& finding);

// A log with one result for each finding. `compared`: a known finding is "unchanged".
std::string sarif_log(const std::vector<Finding>& findings, const CorpusPlaces& places,
                      bool compared, const std::string& version);

// The verdict as one annotation (a notice if the run passes), then ::error file=…,line=…,title=…::…
// for each finding. With a comparison, known findings are left out, and invalid lines and lost
// coverage are added. GitHub shows the first ten errors of a step.
std::string github_annotations(const std::vector<Finding>& findings, const CorpusPlaces& places,
                               const RunVerdict& verdict, const RunComparison* comparison);

}  // namespace assay
