// The values that hold no other values: tensors, dtypes, numbers, strings.

#include <fmt/format.h>

#include <array>
#include <bit>
#include <optional>

#include "case/case_reader.h"
#include "case/nearest.h"

namespace assay {
namespace {

std::string unknown_dtype(std::string_view word) {
  std::array<std::string_view, kDTypes.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kDTypes[i].name;
  return fmt::format("unknown dtype {}{}", quote(word), suggest(word, names));
}

struct ScalarType {
  DTypeForm form;
  DType dtype;
};

// The Python and NumPy scalar types that type(…) may name; int and float are Python's, of 64 bits.
std::optional<ScalarType> find_scalar_type(std::string_view word) {
  constexpr std::string_view kNumpy = "numpy.";
  if (word.starts_with(kNumpy)) {
    word.remove_prefix(kNumpy.size());
    const std::optional<DType> dtype = word == "bool_" ? DType::boolean : find_dtype(word);
    if (!dtype) return std::nullopt;
    return ScalarType{DTypeForm::numpy_type, *dtype};
  }
  if (word == "bool") return ScalarType{DTypeForm::builtin_type, DType::boolean};
  if (word == "int") return ScalarType{DTypeForm::builtin_type, DType::int64};
  if (word == "float") return ScalarType{DTypeForm::builtin_type, DType::float64};
  if (word == "complex") return ScalarType{DTypeForm::builtin_type, DType::complex128};
  return std::nullopt;
}

}  // namespace

bool CaseReader::tensor() {
  Case::TensorEntry entry;
  entry.shape = static_cast<std::uint32_t>(out_.dimensions_.size());
  if (!take('(') || !shape()) return false;
  entry.rank = static_cast<std::uint8_t>(out_.dimensions_.size() - entry.shape);
  if (!take(',') || !dtype_string(entry.dtype)) return false;
  skip_blanks();
  if (*at_ == ',') ++at_;
  if (!take(')')) return false;
  add(ValueKind::tensor).first = out_.tensors_.size();
  out_.tensors_.push_back(entry);
  return true;
}

bool CaseReader::shape() {
  skip_blanks();
  if (*at_ != '[') return expected("a shape such as [2, 3]");
  ++at_;
  skip_blanks();
  for (std::size_t rank = 0; *at_ != ']'; ++rank) {
    if (rank == kMaxDimensions) {
      return fail(at_, fmt::format("more than {} dimensions", kMaxDimensions));
    }
    if (!dimension() || !separator(']')) return false;
  }
  ++at_;
  return true;
}

bool CaseReader::dimension() {
  const char* const begin = at_;
  if (*at_ == '-' && is_digit(at_[1])) return fail(begin, "a dimension cannot be negative");
  if (!is_digit(*at_)) return expected("a dimension (a whole number)");
  std::int64_t dimension = 0;
  bool overflow = false;
  for (; is_digit(*at_); ++at_) {
    overflow |= __builtin_mul_overflow(dimension, std::int64_t{10}, &dimension);
    overflow |= __builtin_add_overflow(dimension, std::int64_t{*at_ - '0'}, &dimension);
  }
  if (!scan_word(at_).empty()) return fail(begin, "a dimension must be a whole number");
  if (overflow) return fail(begin, "this dimension does not fit in 64 bits");
  if (*begin == '0' && at_ - begin > 1) return fail(begin, "a dimension cannot begin with 0");
  out_.dimensions_.push_back(dimension);
  return true;
}

bool CaseReader::dtype_string(DType& dtype) {
  skip_blanks();
  if (*at_ != '"' && *at_ != '\'') return expected("a dtype in quotes");
  const char* const begin = at_;
  std::string_view name;
  const std::size_t decoded_size = out_.decoded_.size();
  at_ = scan_string(at_, name, out_.decoded_, error_);
  if (at_ == nullptr) return false;
  out_.decoded_.resize(decoded_size);
  const std::optional<DType> found = find_dtype(name);
  if (!found) return fail(begin, unknown_dtype(name));
  dtype = *found;
  return true;
}

bool CaseReader::dtype(DTypeForm form) {
  if (!take('(')) return false;
  skip_blanks();
  const std::string_view word = scan_word(at_);
  const std::optional<DType> found = find_dtype(word);
  if (word.empty()) return expected("a dtype");
  if (!found) return fail(at_, unknown_dtype(word));
  at_ += word.size();
  Case::Node& node = add(ValueKind::dtype);
  node.form = form;
  node.dtype = *found;
  return take(')');
}

bool CaseReader::scalar_type() {
  if (!take('(')) return false;
  skip_blanks();
  const std::string_view word = scan_word(at_);
  const std::optional<ScalarType> found = find_scalar_type(word);
  if (!found) return expected("bool, int, float, complex or a numpy type such as numpy.float32");
  at_ += word.size();
  Case::Node& node = add(ValueKind::dtype);
  node.form = found->form;
  node.dtype = found->dtype;
  return take(')');
}

bool CaseReader::complex_call() {
  double real = 0;
  double imaginary = 0;
  if (!take('(') || !complex_part(real) || !take(',') || !complex_part(imaginary)) return false;
  skip_blanks();
  if (*at_ == ',') ++at_;
  Case::Node& node = add(ValueKind::complex);
  node.first = std::bit_cast<std::uint64_t>(real);
  node.second = std::bit_cast<std::uint64_t>(imaginary);
  return take(')');
}

bool CaseReader::complex_part(double& out) {
  skip_blanks();
  const char* const begin = at_;
  const bool sign = *at_ == '+' || *at_ == '-';
  if (!sign && !is_digit(*at_) && *at_ != '.' && !names_number(scan_word(at_))) {
    return expected("a number");
  }
  Number number;
  at_ = scan_number(at_, number, error_);
  if (at_ == nullptr) return false;
  return to_double(number, out) || fail(begin, "expected a real number that a float can hold");
}

bool CaseReader::number() {
  Number number;
  at_ = scan_number(at_, number, error_);
  if (at_ == nullptr) return false;
  Case::Node& node = add(number.kind);
  switch (number.kind) {
    case ValueKind::integer:
      node.first = static_cast<std::uint64_t>(number.integer);
      break;
    case ValueKind::big_integer:
      set_text(node, span(number.digits));
      break;
    default:
      node.first = std::bit_cast<std::uint64_t>(number.real);
      node.second = std::bit_cast<std::uint64_t>(number.imaginary);
      break;
  }
  return true;
}

bool CaseReader::string() {
  std::string_view plain;
  const std::size_t decoded_begin = out_.decoded_.size();
  at_ = scan_string(at_, plain, out_.decoded_, error_);
  if (at_ == nullptr) return false;
  Case::TextSpan text{static_cast<std::uint32_t>(decoded_begin) | Case::kDecoded,
                      static_cast<std::uint32_t>(out_.decoded_.size() - decoded_begin)};
  set_text(add(ValueKind::string), plain.data() != nullptr ? span(plain) : text);
  return true;
}

}  // namespace assay
