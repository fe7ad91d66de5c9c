#include "case/canonical.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <span>

#include "case/value_text.h"

namespace assay {
namespace {

template <typename Number>
void append_number(Number number, std::string& out) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  out.append(text.data(), end);
}

// Writes 2 as "2.0", so that it is read as a float.
void append_float(double number, std::string& out) {
  if (std::isnan(number)) {
    out += "nan";
    return;
  }
  if (std::isinf(number)) {
    out += number < 0 ? "-math.inf" : "math.inf";
    return;
  }
  const std::size_t begin = out.size();
  append_number(number, out);
  if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";
}

void append_string(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_numbers(std::span<const std::int64_t> numbers, std::string& out) {
  out += '[';
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i != 0) out += ", ";
    append_number(numbers[i], out);
  }
  out += ']';
}

void append_place(std::string_view place, std::string& out) {
  out += "Place(";
  out += place;
  out += ')';
}

void append_tensor(const TensorSpec& spec, std::string& out) {
  out += "Tensor(";
  append_numbers(spec.shape, out);
  out += ", \"";
  out += name(spec.dtype);
  out += '"';
  if (!spec.place.empty()) {
    out += ", place=";
    append_place(spec.place, out);
  }
  if (!spec.strides.empty()) {
    out += ", is_contiguous=False, strides=";
    append_numbers(spec.strides, out);
  }
  out += ')';
}

std::string_view builtin_name(DType dtype) {
  switch (dtype) {
    case DType::int64:
      return "int";
    case DType::float64:
      return "float";
    case DType::complex128:
      return "complex";
    default:
      return "bool";
  }
}

void append_dtype(Value value, std::string& out) {
  switch (value.dtype_form()) {
    case DTypeForm::dtype:
      out += "Dtype(";
      break;
    case DTypeForm::var_type:
      out += "VarType(";
      break;
    case DTypeForm::numpy_type:
      out += "type(numpy.";
      break;
    case DTypeForm::builtin_type:
      out += "type(";
      break;
  }
  const bool builtin = value.dtype_form() == DTypeForm::builtin_type;
  out += builtin ? builtin_name(value.dtype()) : name(value.dtype());
  out += ')';
}

void append_value(Value value, std::string& out);

void append_items(std::string_view open, Value value, char close, std::string& out) {
  out += open;
  bool first = true;
  for (const Value child : value.children()) {
    if (!first) out += ", ";
    first = false;
    append_value(child, out);
  }
  out += close;
}

// The parser limits the depth of this recursion (kMaxNesting).
void append_value(Value value, std::string& out) {
  switch (value.kind()) {
    case ValueKind::none:
      out += "None";
      break;
    case ValueKind::boolean:
      out += value.boolean() ? "True" : "False";
      break;
    case ValueKind::integer:
      append_number(value.integer(), out);
      break;
    case ValueKind::big_integer:
      out += value.text();
      break;
    case ValueKind::floating:
      append_float(value.floating(), out);
      break;
    case ValueKind::complex:
      out += "complex(";
      append_float(value.complex().real(), out);
      out += ", ";
      append_float(value.complex().imag(), out);
      out += ')';
      break;
    case ValueKind::string:
      append_string(value.text(), out);
      break;
    case ValueKind::ellipsis:
      out += "Ellipsis";
      break;
    case ValueKind::tensor:
      if (value.repeats()) {
        out += fmt::format("Tensor#{}", value.tensor_ordinal() + 1);
      } else {
        append_tensor(value.tensor(), out);
      }
      break;
    case ValueKind::dtype:
      append_dtype(value, out);
      break;
    case ValueKind::list:
      append_items("list[", value, ']', out);
      break;
    case ValueKind::tuple:
      append_items("tuple(", value, ')', out);
      break;
    case ValueKind::slice:
      append_items("slice(", value, ')', out);
      break;
    case ValueKind::place:
      append_place(value.text(), out);
      break;
  }
}

}  // namespace

void append_canonical(Value value, std::string& out) { append_value(value, out); }

void append_canonical(const Case& source, std::string& out) {
  out += source.api();
  out += '(';
  bool first = true;
  for (std::size_t i = 0; i < source.argument_count(); ++i) {
    if (source.constructs() && i == source.construction_count()) {
      out += ")(";
      first = true;
    }
    const Argument argument = source.argument(i);
    if (!first) out += ", ";
    first = false;
    if (!argument.keyword.empty()) {
      out += argument.keyword;
      out += '=';
    }
    append_value(argument.value, out);
  }
  if (source.constructs() && source.construction_count() == source.argument_count()) out += ")(";
  out += ')';
}

std::string canonical_text(const Case& source) {
  std::string out;
  append_canonical(source, out);
  return out;
}

CaseId case_id(std::string_view canonical) {
  return XXH3_64bits(canonical.data(), canonical.size());
}

std::string format_case_id(CaseId id) { return fmt::format("{:016x}", id); }

std::optional<CaseId> parse_case_id(std::string_view text) {
  CaseId id = 0;
  const char* const end = text.data() + text.size();
  if (text.size() != 16 || text.find_first_of("ABCDEF") != std::string_view::npos) {
    return std::nullopt;
  }
  const auto [stop, code] = std::from_chars(text.data(), end, id, 16);
  if (code != std::errc() || stop != end) return std::nullopt;
  return id;
}

}  // namespace assay
