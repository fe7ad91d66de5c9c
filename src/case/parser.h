#pragma once

// The parser of the case language. It builds a Case from text and evaluates nothing: a name in it
// is only ever a name.
//
//   call      = api arguments [arguments]          (a layer: constructed, then called)
//   arguments = "(" [argument ("," argument)* [","]] ")"
//   api       = name ("." name)+
//   argument  = [name "="] value
//   value     = "None" | "True" | "False" | "Ellipsis" | "..." | number | string
//             | "Tensor" "(" shape "," string ("," option)* ")"
//             | "Tensor" "#" digits                               (the same tensor again)
//             | "list" "[" values "]" | "[" values "]"
//             | "tuple" "(" values ")" | "(" values ")"           (as in Python: "(1,)")
//             | "slice" "(" value "," value "," value ")"
//             | "complex" "(" number "," number ")"
//             | "Dtype" "(" name ")" | "VarType" "(" name ")"     (a name of case/dtype.h)
//             | "Place" "(" name [":" digits] ")"                 (a device: cpu, gpu:0)
//             | "paddle.Size" "(" "[" values "]" ")"              (read as the list)
//             | "torch." format                       (read as the string "channels_last")
//             | "torch." layout                       (read as the string "strided")
//             | "type" "(" name ")"                     (bool, int, float, complex, numpy.…)
//   shape     = "[" extents "]" | "paddle.Size" "(" "[" extents "]" ")"
//   option    = "place" "=" place | "strides" "=" "[" extents "]"
//             | "is_contiguous" "=" ("True" | "False")
//             | "memory_format" "=" (string | "torch." format)    (read as the strides)
//   format    = "channels_last" | "channels_last_3d" | "contiguous_format" | "preserve_format"
//   layout    = "strided" | "sparse_coo" | "sparse_csr" | "sparse_csc" | "sparse_bsr" |
//   "sparse_bsc" extent    = whole numbers joined by + - * //         (16777216//4)
//
// Blanks may stand between any two tokens, and a comma after the last value of a sequence.
// Parentheses around one value without a comma are that value. case/literal.h describes numbers and
// strings. Text is UTF-8 without NUL.

#include <functional>
#include <string_view>

#include "case/case.h"
#include "case/parse_error.h"

namespace assay {

// Parses a text with exactly one call. Overwrites `out` and reuses its memory; after an error `out`
// must not be used before another parse.
ParseStatus parse_case(std::string_view text, Case& out);

// Parses a corpus line and passes each call to `take` in order, or none if there is an error. Lines
// of public corpora that lost a line break have several calls. `scratch` is reused from line to
// line.
ParseStatus parse_line(std::string_view line, Case& scratch,
                       const std::function<void(const Case&)>& on_case);

}  // namespace assay
