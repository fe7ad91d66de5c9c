#pragma once

// A case as a Python script that needs only the framework of its API.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "case/case.h"

namespace assay {

struct ReproScript {
  std::string_view case_text;        // canonical
  std::vector<std::string> comment;  // lines for the reader of the script
  std::uint64_t draw_seed = 0;       // of the framework's own random numbers
  bool backward = true;
};

// The script. It reads tensor i of the case from input_file(i) beside it, calls the API with the
// case's arguments written as Python literals, prints what came out, and differentiates it.
std::string repro_script(const Case& parsed, const ReproScript& facts);

// The call of the case as a Python expression; tensor i of it is called x0, x1, …
std::string python_call(const Case& parsed);
// The same call of another function, in a framework whose module has this name.
std::string python_call(const Case& parsed, std::string_view function, std::string_view module);

// Whether the framework differentiates by a tensor of this dtype; float8 has no gradient kernels.
bool differentiable(DType dtype);
// Whether the call changes its first tensor, as `add_` and `__setitem__` do.
bool works_in_place(std::string_view api);

// "x0.bin": the elements as they lie in memory, row by row, of tensor 0 of the case.
std::string input_file(std::size_t ordinal);

// A Python string literal, in double quotes, on one line.
std::string python_string(std::string_view text);

}  // namespace assay
