#pragma once

// The canonical text of a case, and its id, a hash of that text.
//
//   paddle.concat(list[Tensor([2, 3], "float32"), Tensor([2, 3], "float32")], axis=0)
//
// Cases with the same meaning have the same text: one blank after a comma, no trailing comma,
// double quotes, the shortest float that reads back as the same value (2.0, 1e-05, math.inf, nan),
// complex(0.0, 2.0), list[…], tuple(…), Ellipsis. Options of a tensor are written only if they
// differ from the default:
//
//   Tensor([2, 3], "float32", place=Place(cpu), is_contiguous=False, strides=[1, 2])
//
// Keyword arguments keep their order, because a Python callee can see it. engineV2 reads this text.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "case/case.h"

namespace assay {

// Increase it when the canonical text of any case changes, because stored ids change too.
inline constexpr int kCanonicalVersion = 1;

// Returns the canonical text of a case.
std::string canonical_text(const Case& source);
// Appends the canonical text to `out`.
void append_canonical(const Case& source, std::string& out);

// XXH3_64 of the canonical text.
using CaseId = std::uint64_t;
CaseId case_id(std::string_view canonical);

// Formats an id as sixteen lower-case hexadecimal digits. parse_case_id returns nothing for any
// other text.
std::string format_case_id(CaseId id);
std::optional<CaseId> parse_case_id(std::string_view text);

}  // namespace assay
