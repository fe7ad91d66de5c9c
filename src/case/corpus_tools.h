#pragma once

// Tools for corpora: pure functions of text. They read files line by line; what is kept of a case
// is its canonical text, its id and its note.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "case/canonical.h"
#include "case/case.h"
#include "case/dtype.h"
#include "case/name_filter.h"

namespace assay {

// A case of a corpus. A note is a line of a capture that follows the case: `#: {"calls": 3, …}`.
struct CorpusCase {
  const Case& parsed;
  CaseId id;
  const std::string& text;  // canonical
  std::string_view note;    // without its line end; empty if there is none
  std::string_view head;    // the first line of the first capture so far
};

// What reading a corpus has passed over.
struct CorpusReading {
  std::size_t cases = 0;
  std::size_t failed = 0;          // lines that do not parse
  std::vector<std::string> shown;  // the first of them, as diagnostics
  std::string head;                // the first line of a capture; empty for other corpora
};

// Passes each case of the files to `take`, in order.
Result<CorpusReading> each_case(const std::vector<std::string>& patterns,
                                const std::function<void(const CorpusCase&)>& take);

using TextSink = std::function<Status(std::string_view)>;

// Writes the cases of all files, each once, where it first occurs. The calls of equal cases of
// captures are added up.
Result<CorpusReading> merge_corpora(const std::vector<std::string>& patterns, const TextSink& out);

struct CorpusDifference {
  std::size_t common = 0;
  std::size_t removed = 0;
  std::size_t added = 0;
};

// Writes "- CASE" for each case that only the old corpus has, then "+ CASE" for those that only the
// new one has.
Result<CorpusDifference> diff_corpora(const std::string& before, const std::string& after,
                                      const TextSink& out);

// Writes a case, and its note if it has one.
Status write_case(const TextSink& out, std::string_view text, std::string_view note);

// Which cases a corpus keeps. An empty part keeps all.
struct CorpusFilter {
  std::optional<NameFilter> names;
  std::vector<std::string> globs;    // of API names: "torch.ops.aten.*"
  std::vector<DType> dtypes;         // some tensor has one of them
  std::uint64_t least_elements = 0;  // of all tensors together
  std::uint64_t most_elements = std::numeric_limits<std::uint64_t>::max();
  std::optional<std::unordered_set<CaseId>> ids;

  bool keeps(const CorpusCase& found) const;
};

// Writes the cases that the filter keeps, with their notes.
Result<CorpusReading> filter_corpora(const std::vector<std::string>& patterns,
                                     const CorpusFilter& filter, const TextSink& out);

// The planted faults that each case shows (`assay mutate`), numbered from 0.
using Kills = std::unordered_map<CaseId, std::vector<std::uint32_t>>;

struct SlimCorpus {
  CorpusReading reading;
  std::size_t distinct = 0;
  std::size_t kept = 0;
  std::size_t faults = 0;  // that some case shows
  std::size_t shown = 0;   // that a kept case shows
};

// Writes a share of the distinct cases, in their order. Cases that show the most faults that no
// kept case shows come first. Then each class of cases that has none gets one of medium size, from
// coarse classes (an API) to fine ones (the case without its sizes), and the largest ones follow.
Result<SlimCorpus> slim_corpora(const std::vector<std::string>& patterns, double share,
                                const Kills& kills, const TextSink& out);

// Describes the cases as a page in Markdown: APIs, arguments, dtypes, sizes. `most` is the length
// of each table.
Result<std::string> corpus_page(const std::vector<std::string>& patterns, std::size_t most);

}  // namespace assay
