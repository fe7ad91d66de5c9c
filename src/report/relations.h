#pragma once

// Which relations hold for which API (docs/reference/relations.md): a table that keeps the worst
// case of each, its file, and what an earlier table had that a new one lacks.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

// How a relation holds for results or gradients, from worse to better.
enum class Held : std::uint8_t {
  nothing,   // nothing was compared
  no,        // they differ
  rounding,  // they differ within the rounding of the dtype, or the tolerance of the relation
  bits,      // bit for bit
};
std::string_view name_of(Held held);

struct RelationCell {
  Held result = Held::nothing;
  Held gradient = Held::nothing;
  std::uint64_t cases = 0;    // that were compared
  std::uint64_t skipped = 0;  // of which the relation says nothing
  std::string example;        // a case for which it does not hold

  // Counts a compared case.
  void add(Held of_result, Held of_gradient, std::string_view text);
};

struct RelationTable {
  std::vector<std::string> relations;
  std::map<std::string, std::map<std::string, RelationCell>> apis;  // by API, by relation
  std::map<std::string, std::string> build;                         // by framework, its version

  // A line for each API, with a legend: for a terminal and for Markdown.
  std::string markdown() const;
  Status write(const std::filesystem::path& file) const;
  // An error if the file is none of write(), or of another version.
  static Result<RelationTable> read(const std::filesystem::path& file);
};

// A line for each relation of an API that held in `before` and holds less in `now`. APIs and
// relations that `now` did not ask for are left out.
std::vector<std::string> lost_relations(const RelationTable& before, const RelationTable& now);

}  // namespace assay
