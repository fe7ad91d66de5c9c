#include "report/dialect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "report/inputs.h"

namespace assay {
namespace {

constexpr std::array kDialects{
    Dialect{"paddle", "PaddlePaddle", "paddle.grad", ".stop_gradient = False", "paddle.assign",
            "paddle.seed"},
    Dialect{"torch", "PyTorch", "torch.autograd.grad", ".requires_grad_()", "torch.clone",
            "torch.manual_seed"},
};

// Rows in brackets, as deep as the shape.
std::string nested(const std::vector<std::string>& numbers, std::span<const std::int64_t> shape,
                   std::size_t& at) {
  if (shape.empty()) return numbers[at++];
  std::string text;
  for (std::int64_t i = 0; i < shape.front(); ++i) {
    if (i > 0) text += ", ";
    text += nested(numbers, shape.subspan(1), at);
  }
  return "[" + text + "]";
}

bool is_float8(DType dtype) {
  return info(dtype).kind == DTypeClass::floating && size_of(dtype) == 1;
}

}  // namespace

std::string Dialect::tensor(DType dtype, std::span<const std::int64_t> shape,
                            std::span<const std::byte> elements) const {
  const bool is_paddle = module == "paddle";
  const auto dtype_text = [&](std::string_view dtype_name) {
    return is_paddle ? fmt::format("\"{}\"", dtype_name)
                     : fmt::format("dtype=torch.{}", dtype_name);
  };
  if (elements.empty()) {
    return fmt::format("{}.empty([{}], {})", module, fmt::join(shape, ", "),
                       dtype_text(name(dtype)));
  }
  std::size_t at = 0;
  const std::string numbers = nested(python_numbers(dtype, elements), shape, at);
  const std::string_view make = is_paddle ? "to_tensor" : "tensor";
  // Neither function makes float8.
  const std::string_view made = is_float8(dtype) ? std::string_view("float32") : name(dtype);
  std::string text = fmt::format("{}.{}({}, {})", module, make, numbers, dtype_text(made));
  if (!is_float8(dtype)) return text;
  return is_paddle ? fmt::format("{}.astype(\"{}\")", text, name(dtype))
                   : fmt::format("{}.to(torch.{})", text, name(dtype));
}

std::string Dialect::differentiates(std::string_view tensor) const {
  return module == "paddle" ? fmt::format("not {}.stop_gradient", tensor)
                            : fmt::format("{}.requires_grad", tensor);
}

std::string Dialect::on_device(std::string_view device) const {
  const bool is_cpu = device.empty() || device.starts_with("cpu");
  if (module == "paddle") return fmt::format("paddle.set_device(\"{}\")", is_cpu ? "cpu" : "gpu");
  return is_cpu ? "" : "torch.set_default_device(\"cuda\")";
}

const Dialect* find_dialect(std::string_view module) {
  const auto* found = std::ranges::find(kDialects, module, &Dialect::module);
  return found == kDialects.end() ? nullptr : found;
}

std::string_view module_of(std::string_view api) { return api.substr(0, api.find('.')); }

}  // namespace assay
