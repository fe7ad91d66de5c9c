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
  std::vector<std::string> modules;  // that the lane imported after its framework
};

// The text of the script. It reads tensor i from input_file(i) in its own folder, calls the API
// with the case's arguments as Python literals, prints the results, and differentiates them.
std::string repro_script(const Case& parsed, const ReproScript& facts);

// The call of the case as a Python expression, in which tensors are named x0, x1, ….
std::string python_call(const Case& parsed);
// The same call of another function, in a framework whose module has this name.
std::string python_call(const Case& parsed, std::string_view function, std::string_view module);

// Whether the framework can compute the gradient of a tensor of this dtype. Float8 has no kernels
// for gradients.
bool differentiable(DType dtype);
// Whether the call changes its first tensor, as `add_` and `__setitem__` do.
bool works_in_place(std::string_view api);

// The name of the file with the elements of a tensor in row-major order: "x0.bin".
std::string input_file(std::size_t ordinal);

// A Python string literal, in double quotes, on one line.
std::string python_string(std::string_view text);

}  // namespace assay
