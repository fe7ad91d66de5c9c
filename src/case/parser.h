#pragma once

// The parser of the case language. It reads text and builds a Case; it evaluates nothing, and no
// name in it can become more than a name.
//
//   call      = api arguments [arguments]          (a layer: first it is made, then called)
//   arguments = "(" [argument ("," argument)* [","]] ")"
//   api       = name ("." name)+
//   argument  = [name "="] value
//   value     = "None" | "True" | "False" | "Ellipsis" | "..." | number | string
//             | "Tensor" "(" shape "," string ("," option)* ")"
//             | "list" "[" values "]" | "[" values "]"
//             | "tuple" "(" values ")" | "(" values ")"           (a tuple as in Python: "(1,)")
//             | "slice" "(" value "," value "," value ")"
//             | "complex" "(" number "," number ")"
//             | "Dtype" "(" name ")" | "VarType" "(" name ")"     (a dtype of case/dtype.h)
//             | "Place" "(" name [":" digits] ")"                 (a device: cpu, gpu:0)
//             | "paddle.Size" "(" "[" values "]" ")"              (the list in it)
//             | "type" "(" name ")"                               (bool, int, float, complex,
//             numpy.…)
//   shape     = "[" extents "]" | "paddle.Size" "(" "[" extents "]" ")"
//   option    = "place" "=" place | "strides" "=" "[" extents "]" | "is_contiguous" "=" "True" or
//   "False" extent    = whole numbers joined by + - * //         (16777216//4)
//
// Blanks may stand between any two tokens, and a comma after the last value of any sequence.
// Parentheses round one value without a comma are that value. Numbers and strings are described in
// case/literal.h. Text is UTF-8 without NUL.

#include <functional>
#include <string_view>

#include "case/case.h"
#include "case/parse_error.h"

namespace assay {

// Reads the one call that `text` is. `out` is overwritten, its memory reused; after an error it
// must be parsed into again before use.
ParseStatus parse_case(std::string_view text, Case& out);

// Reads a line of a corpus, which holds one call; the public corpora have lines that lost their
// line break, so more calls may follow the first. Each is handed over, in order, or none when there
// is an error. `scratch` is memory to reuse from line to line.
ParseStatus parse_line(std::string_view line, Case& scratch,
                       const std::function<void(const Case&)>& on_case);

}  // namespace assay
