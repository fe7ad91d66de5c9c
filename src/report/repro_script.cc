#include "report/repro_script.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <iterator>

#include "report/dialect.h"

namespace assay {
namespace {

// With a framework's module, its load() and what says that a tensor takes no part in gradients.
constexpr std::string_view kScriptHead = R"py(
import pathlib

import {0}

HERE = pathlib.Path(__file__).resolve().parent


def load(name, dtype, shape):
    """A tensor of the elements in a file beside this one."""
    data = bytearray((HERE / name).read_bytes())
    if not data:
        return {0}.empty(shape, dtype=dtype)
    return {1}.view(dtype).reshape(shape)


def tensors(value):
    if isinstance(value, {0}.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(part)

)py";

// A tensor that is both an output and an input gets no gradient if there are other outputs.
constexpr std::string_view kBackward = R"py(
outputs = [
    {0}(x) if any(x is leaf for leaf in leaves) else x
    for x in tensors(result)
    if {1} and (x.is_floating_point() or x.is_complex())
]
if outputs and leaves:
    # The run had an upstream gradient of random values; ones show the same faults as a rule.
    upstream = [{2}.ones_like(x) for x in outputs]
    print("gradients:", {3}(outputs, leaves, upstream, allow_unused=True))
)py";

std::string script_head(const Dialect& dialect) {
  const std::string_view read = dialect.module == "paddle"
                                    ? "paddle.to_tensor(memoryview(data))"
                                    : "torch.frombuffer(data, dtype=torch.uint8)";
  return fmt::format(kScriptHead, dialect.module, read);
}

std::string backward(const Dialect& dialect) {
  const std::string_view takes_part =
      dialect.module == "paddle" ? "not x.stop_gradient" : "x.requires_grad";
  return fmt::format(kBackward, dialect.copy, takes_part, dialect.module, dialect.gradients);
}

std::string python_float(double number) {
  if (std::isnan(number)) return "float(\"nan\")";
  if (std::isinf(number)) return number < 0 ? "float(\"-inf\")" : "float(\"inf\")";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string python_value(const Value& value, std::string_view module);

std::string joined(const Value& sequence, std::string_view module) {
  std::string text;
  for (const Value part : sequence.children()) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", python_value(part, module));
  }
  return text;
}

std::string python_value(const Value& value, std::string_view module) {
  switch (value.kind()) {
    case ValueKind::none:
      return "None";
    case ValueKind::boolean:
      return value.boolean() ? "True" : "False";
    case ValueKind::integer:
      return fmt::format("{}", value.integer());
    case ValueKind::big_integer:
      return std::string(value.text());
    case ValueKind::floating:
      return python_float(value.floating());
    case ValueKind::complex:
      return fmt::format("complex({}, {})", python_float(value.complex().real()),
                         python_float(value.complex().imag()));
    case ValueKind::string:
      return python_string(value.text());
    case ValueKind::ellipsis:
      return "...";
    case ValueKind::tensor:
      return fmt::format("x{}", value.tensor_ordinal());
    case ValueKind::dtype:
      return fmt::format("{}.{}", module, name(value.dtype()));
    case ValueKind::list:
      return fmt::format("[{}]", joined(value, module));
    case ValueKind::tuple:
      return fmt::format("({}{})", joined(value, module), value.size() == 1 ? "," : "");
    case ValueKind::slice:
      return fmt::format("slice({})", joined(value, module));
    case ValueKind::place:
      return fmt::format("\"{}\"", value.text());
  }
  return "None";
}

std::string load_tensors(const Case& parsed, const Dialect& dialect, bool in_place) {
  std::string text;
  std::string leaves;
  for (std::size_t i = 0; i < parsed.tensor_count(); ++i) {
    const TensorSpec spec = parsed.tensor(i);
    text += fmt::format("x{} = load(\"{}\", {}.{}, [{}])\n", i, input_file(i), dialect.module,
                        name(spec.dtype), fmt::join(spec.shape, ", "));
    if (!differentiable(spec.dtype)) continue;
    text += fmt::format("x{}{}\n", i, dialect.leaf);
    leaves += fmt::format("{}x{}", leaves.empty() ? "" : ", ", i);
  }
  text += fmt::format("leaves = [{}]\n", leaves);
  if (in_place && !leaves.empty()) {
    text += fmt::format("{0}{1} = map({2}, leaves)  # a leaf may not be changed in place\n", leaves,
                        leaves.find(',') == std::string::npos ? "," : "", dialect.copy);
  }
  return text;
}

// The call, and the values that the script prints.
std::string call(const Case& parsed, bool in_place) {
  const std::string made = python_call(parsed);
  for (const Argument argument : parsed.arguments()) {
    if (in_place && argument.value.is(ValueKind::tensor)) {
      return fmt::format("{}\nresult = {}  # changed in place\n", made,
                         python_value(argument.value, module_of(parsed.api())));
    }
  }
  return fmt::format("result = {}\n", made);
}

}  // namespace

std::string python_call(const Case& parsed) {
  return python_call(parsed, parsed.api(), module_of(parsed.api()));
}

std::string python_call(const Case& parsed, std::string_view function, std::string_view module) {
  std::string arguments;
  for (std::size_t i = 0; i < parsed.argument_count(); ++i) {
    const Argument argument = parsed.argument(i);
    if (parsed.constructs() && i == parsed.construction_count()) {
      arguments += ")(";
    } else if (i != 0) {
      arguments += ", ";
    }
    if (!argument.keyword.empty()) arguments += fmt::format("{}=", argument.keyword);
    if (argument.keyword == "memory_format" && argument.value.is(ValueKind::string)) {
      arguments += fmt::format("{}.{}", module, argument.value.text());
      continue;
    }
    arguments += python_value(argument.value, module);
  }
  return fmt::format("{}({})", function, arguments);
}

bool differentiable(DType dtype) {
  const DTypeClass kind = info(dtype).kind;
  return (kind == DTypeClass::floating && size_of(dtype) > 1) || kind == DTypeClass::complex;
}

// The same rule as assay.registry.changes_input: `add_`, `__setitem__`, `__iadd__`.
bool works_in_place(std::string_view api) {
  constexpr std::array<std::string_view, 4> kNotInPlace{"__invert__", "__index__", "__int__",
                                                        "__iter__"};
  const std::string_view stem = api.substr(api.rfind('.') + 1);
  if (!stem.starts_with("__")) return stem.ends_with('_');
  for (const std::string_view other : kNotInPlace) {
    if (stem == other) return false;
  }
  return stem == "__setitem__" || stem.starts_with("__i");
}

std::string input_file(std::size_t ordinal) { return fmt::format("x{}.bin", ordinal); }

std::string python_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(quoted), "\\x{:02x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string repro_script(const Case& parsed, const ReproScript& facts) {
  const bool in_place = works_in_place(parsed.api());
  const Dialect* found = find_dialect(module_of(parsed.api()));
  const Dialect& dialect = found == nullptr ? *find_dialect("paddle") : *found;
  std::string script =
      fmt::format("# Runs one case of assay again; needs only {} and the files beside it.\n",
                  dialect.full_name);
  for (const std::string& line : facts.comment) script += fmt::format("# {}\n", line);
  script += script_head(dialect);
  for (const std::string& module : facts.modules) script += fmt::format("import {}\n", module);
  script += fmt::format("\nprint({})\n", python_string(facts.case_text));
  script += fmt::format("{}({})\n", dialect.seed, facts.draw_seed);
  script += load_tensors(parsed, dialect, in_place);
  script += fmt::format("\n{}print(\"result:\", result)\n", call(parsed, in_place));
  if (facts.backward) script += backward(dialect);
  return script;
}

}  // namespace assay
