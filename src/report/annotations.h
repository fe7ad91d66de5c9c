#pragma once

// Findings as other programs show them beside the code: SARIF 2.1.0, and the workflow commands of
// GitHub Actions.

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "report/findings.h"
#include "report/run_verdict.h"

namespace assay {

// Where cases stand in the corpus files of a repository.
class CorpusPlaces {
 public:
  struct Place {
    std::string file;  // as it was named
    std::size_t line = 0;
  };

  // Lines that are no cases are left out.
  static Result<CorpusPlaces> read(std::span<const std::string> patterns);

  // nullptr: in none of the files.
  const Place* find(std::uint64_t id) const;

 private:
  std::unordered_map<std::uint64_t, Place> places_;
};

// One line for a finding: "paddle.silu, gradient of x: not finite: …".
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
