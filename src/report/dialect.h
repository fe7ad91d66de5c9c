#pragma once

// How scripts are written in a framework's Python: PaddlePaddle's or PyTorch's.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "case/dtype.h"

namespace assay {

struct Dialect {
  std::string_view module;     // "paddle"; also the first part of its APIs' names
  std::string_view full_name;  // "PaddlePaddle"
  std::string_view gradients;  // the function: "paddle.grad"
  std::string_view leaf;       // behind a tensor: makes it a leaf that is differentiated by
  std::string_view copy;       // the function that copies a leaf within the graph
  std::string_view seed;       // the function that seeds its random generators

  // A tensor with these elements, as a Python expression.
  std::string tensor(DType dtype, std::span<const std::int64_t> shape,
                     std::span<const std::byte> elements) const;
  // Whether a tensor can be differentiated, as a Python expression.
  std::string differentiates(std::string_view tensor) const;
  // The line that makes `device` ("cpu", "gpu:0") the place of new tensors; empty: it is already.
  std::string on_device(std::string_view device) const;
};

// The dialect of a framework's module; nullptr: assay writes no scripts in it.
const Dialect* find_dialect(std::string_view module);

// The module that an API belongs to: "paddle" for "paddle.nn.functional.relu".
std::string_view module_of(std::string_view api);

}  // namespace assay
