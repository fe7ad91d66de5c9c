#pragma once

// One text per meaning, and the id of a case, which is a hash of it.
//
//   paddle.concat(list[Tensor([2, 3], "float32"), Tensor([2, 3], "float32")], axis=0)
//
// One blank after each comma, no trailing comma, double quotes, floats in the shortest form that
// reads back as the same value (2.0, 1e-05, math.inf, nan), complex numbers as complex(0.0, 2.0),
// list[…], tuple(…) and Ellipsis spelt out; what a tensor has besides shape and dtype as
//
//   Tensor([2, 3], "float32", place=Place(cpu), is_contiguous=False, strides=[1, 2])
//
// and only where it is not what it is without. Keyword arguments keep their written order: a Python
// callee can see it. It is the dialect of the public corpora, so that engineV2 reads it too.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "case/case.h"

namespace assay {

// Raised when the canonical text of any case changes, since stored ids change with it.
inline constexpr int kCanonicalVersion = 1;

std::string canonical_text(const Case& source);
// The same, appended to `out`.
void append_canonical(const Case& source, std::string& out);

// XXH3_64 of a canonical text.
using CaseId = std::uint64_t;
CaseId case_id(std::string_view canonical);

// Sixteen lower-case hexadecimal digits, and back (nothing for any other text).
std::string format_case_id(CaseId id);
std::optional<CaseId> parse_case_id(std::string_view text);

}  // namespace assay
