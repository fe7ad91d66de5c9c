// Every text is either refused at a position inside of it, or parsed to a case whose canonical text
// parses to an equal case with the same canonical text.

#include <cstdlib>
#include <string>
#include <string_view>

#include "case/canonical.h"
#include "case/diagnostic.h"
#include "case/parser.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view text(data, size);
  assay::Case call;
  const assay::ParseStatus status = assay::parse_case(text, call);
  if (!status) {
    require(status.error().column >= 1 && status.error().column <= size + 1);
    require(!assay::describe(status.error(), "fuzz", text).empty());
    return 0;
  }
  const std::string canonical = assay::canonical_text(call);
  assay::Case again;
  require(assay::parse_case(canonical, again).has_value());
  require(again == call);
  require(assay::canonical_text(again) == canonical);
  return 0;
}
