// Rules of CaseReader for values without children: tensors, dtypes, numbers, strings.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>

#include "base/nearest.h"
#include "base/text.h"
#include "case/case_reader.h"

namespace assay {
namespace {

// Short names of dtypes, which no framework has.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kShortNames{
    {{"fp16", "float16"},
     {"bf16", "bfloat16"},
     {"fp32", "float32"},
     {"fp64", "float64"},
     {"half", "float16"}}};

std::string unknown_dtype(std::string_view word) {
  for (const auto& [shortened, whole] : kShortNames) {
    if (word == shortened) {
      return fmt::format("unknown dtype {}; did you mean '{}'?", quote(word), whole);
    }
  }
  std::array<std::string_view, kDTypes.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kDTypes[i].name;
  return fmt::format("unknown dtype {}{}", quote(word), suggest(word, names));
}

struct ScalarType {
  DTypeForm form;
  DType dtype;
};

// Scalar types of Python and NumPy that type(…) accepts. Python's int and float have 64 bits.
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

constexpr std::string_view kTorch = "torch.";
constexpr std::array<MemoryFormat, 4> kMemoryFormats = {{{"channels_last", 4},
                                                         {"channels_last_3d", 5},
                                                         {"contiguous_format", 0},
                                                         {"preserve_format", 0}}};
constexpr std::array<std::string_view, 6> kLayouts = {"strided",    "sparse_coo", "sparse_csr",
                                                      "sparse_csc", "sparse_bsr", "sparse_bsc"};

}  // namespace

std::optional<DType> dtype_of(std::string_view word) {
  for (const std::string_view module : {"torch.", "paddle."}) {
    if (word.starts_with(module)) return find_dtype(word.substr(module.size()));
  }
  return find_dtype(word);
}

const MemoryFormat* find_memory_format(std::string_view word) {
  if (!word.starts_with(kTorch)) return nullptr;
  word.remove_prefix(kTorch.size());
  const auto* found = std::ranges::find(kMemoryFormats, word, &MemoryFormat::name);
  return found == kMemoryFormats.end() ? nullptr : found;
}

bool is_layout(std::string_view word) {
  return word.starts_with(kTorch) &&
         std::ranges::find(kLayouts, word.substr(kTorch.size())) != kLayouts.end();
}

bool CaseReader::tensor() {
  if (*behind_blanks(at_) == '#') return tensor_again();
  Case::TensorEntry entry;
  entry.shape = static_cast<std::uint32_t>(out_.dimensions_.size());
  if (!take('(') || !shape()) return false;
  entry.rank = static_cast<std::uint8_t>(out_.dimensions_.size() - entry.shape);
  if (!take(',') || !dtype_string(entry.dtype) || !tensor_options(entry)) return false;
  add(ValueKind::tensor).first = out_.tensors_.size();
  out_.tensors_.push_back(entry);
  return true;
}

// Reads "#1": the first tensor of the case, again.
bool CaseReader::tensor_again() {
  const char* const begin = at_;
  std::int64_t number = 0;
  skip_blanks();
  ++at_;
  skip_blanks();
  if (!whole_number(number)) return false;
  const std::size_t known = out_.tensors_.size();
  if (number < 1 || static_cast<std::uint64_t>(number) > known) {
    return fail(begin, fmt::format("Tensor#{}: the case has only {} before it", number,
                                   count_of(known, "tensor")));
  }
  Case::Node& node = add(ValueKind::tensor);
  node.first = static_cast<std::uint64_t>(number) - 1;
  node.second = 1;
  return true;
}

// Reads the options after the dtype: place=…, strides=[…], memory_format=…, is_contiguous=….
bool CaseReader::tensor_options(Case::TensorEntry& entry) {
  bool scattered = false;
  skip_blanks();
  while (*at_ == ',') {
    ++at_;
    skip_blanks();
    if (*at_ == ')') break;
    const std::string_view word = scan_word(at_);
    if (word == "is_contiguous") {
      at_ += word.size();
      if (!take('=')) return false;
      skip_blanks();
      const std::string_view truth = scan_word(at_);
      if (truth != "True" && truth != "False") return expected("True or False");
      scattered = truth == "False";
      at_ += truth.size();
    } else if (!tensor_option(word, entry)) {
      return false;
    }
    skip_blanks();
  }
  if (!take(')')) return false;
  if (scattered && !entry.strided) scatter(entry);
  settle_strides(entry);
  return true;
}

// Chooses strides for is_contiguous=False without strides: column-major, or every second element of
// a vector.
void CaseReader::scatter(Case::TensorEntry& entry) {
  entry.strides = static_cast<std::uint32_t>(out_.dimensions_.size());
  entry.strided = true;
  std::int64_t stride = entry.rank == 1 ? 2 : 1;
  for (std::uint32_t axis = 0; axis < entry.rank; ++axis) {
    out_.dimensions_.push_back(stride);
    const std::int64_t extent = std::max<std::int64_t>(out_.dimensions_[entry.shape + axis], 1);
    // Saturates: no memory reaches that far.
    if (__builtin_mul_overflow(stride, extent, &stride)) {
      stride = std::numeric_limits<std::int64_t>::max();
    }
  }
}

// Reads "channels_last", in quotes or after "torch.", as the strides that PyTorch gives such a
// tensor: the second axis lies closest together, then the last one, and so on.
bool CaseReader::memory_format(Case::TensorEntry& entry) {
  const char* const begin = at_;
  std::string word(kTorch);
  if (*at_ == '"' || *at_ == '\'') {
    std::string_view name;
    const std::size_t decoded_size = out_.decoded_.size();
    at_ = scan_string(at_, name, out_.decoded_, error_);
    if (at_ == nullptr) return false;
    out_.decoded_.resize(decoded_size);
    word += name;
  } else {
    word = scan_word(at_);
    at_ += word.size();
  }
  const MemoryFormat* format = find_memory_format(word);
  if (format == nullptr || format->name == "preserve_format") {
    return fail(begin, "a tensor is channels_last, channels_last_3d or contiguous_format");
  }
  if (format->rank == 0) return true;
  if (format->rank != entry.rank) {
    return fail(begin, fmt::format("{} is for {} dimensions, and the tensor has {}", format->name,
                                   format->rank, entry.rank));
  }
  entry.strides = static_cast<std::uint32_t>(out_.dimensions_.size());
  entry.strided = true;
  out_.dimensions_.resize(entry.strides + entry.rank);
  std::int64_t stride = 1;
  for (std::uint32_t step = 0; step < entry.rank; ++step) {
    // The order of axes: 1, then from the last one down to 2, then 0.
    const std::uint32_t axis = step == 0 ? 1 : step + 1 == entry.rank ? 0 : entry.rank - step;
    out_.dimensions_[entry.strides + axis] = stride;
    const std::int64_t extent = std::max<std::int64_t>(out_.dimensions_[entry.shape + axis], 1);
    if (__builtin_mul_overflow(stride, extent, &stride)) {
      stride = std::numeric_limits<std::int64_t>::max();  // no memory reaches that far
    }
  }
  return true;
}

// Drops the strides of a contiguous tensor, so that each meaning has one canonical text.
void CaseReader::settle_strides(Case::TensorEntry& entry) {
  if (!entry.strided) return;
  std::int64_t stride = 1;
  bool plain = true;
  for (std::uint32_t axis = entry.rank; axis-- > 0;) {
    const std::int64_t extent = out_.dimensions_[entry.shape + axis];
    plain = plain && (extent == 1 || out_.dimensions_[entry.strides + axis] == stride);
    plain = !__builtin_mul_overflow(stride, std::max<std::int64_t>(extent, 1), &stride) && plain;
  }
  if (!plain) return;
  out_.dimensions_.resize(entry.strides);
  entry.strides = 0;
  entry.strided = false;
}

bool CaseReader::tensor_option(std::string_view word, Case::TensorEntry& entry) {
  if (word != "place" && word != "strides" && word != "memory_format") {
    return expected("place=…, strides=[…], memory_format=… or is_contiguous=…");
  }
  const char* const begin = at_;
  at_ += word.size();
  if (!take('=')) return false;
  skip_blanks();
  if (word == "place") {
    if (scan_word(at_) != "Place") return expected("a place such as Place(cpu)");
    at_ += std::string_view("Place").size();
    return place_name(entry.place);
  }
  if (word == "memory_format") return memory_format(entry);
  entry.strides = static_cast<std::uint32_t>(out_.dimensions_.size());
  entry.strided = true;
  if (scan_word(at_) == "list") at_ += std::string_view("list").size();
  if (!numbers("strides such as [3, 1]")) return false;
  return out_.dimensions_.size() - entry.strides == entry.rank ||
         fail(begin, fmt::format("{} strides for {} dimensions",
                                 out_.dimensions_.size() - entry.strides, entry.rank));
}

bool CaseReader::shape() {
  skip_blanks();
  const std::string_view word = scan_word(at_);
  if (word != "paddle.Size") return numbers("a shape such as [2, 3]");
  at_ += word.size();
  return take('(') && numbers("a shape such as [2, 3]") && take(')');
}

bool CaseReader::numbers(std::string_view what) {
  skip_blanks();
  if (*at_ != '[') return expected(what);
  ++at_;
  skip_blanks();
  for (std::size_t rank = 0; *at_ != ']'; ++rank) {
    if (rank == kMaxDimensions) {
      return fail(at_, fmt::format("more than {} dimensions", kMaxDimensions));
    }
    if (!extent() || !separator(']')) return false;
  }
  ++at_;
  return true;
}

// Evaluates an extent such as 16777216//4 or 2*8+1.
bool CaseReader::extent() {
  const char* const begin = at_;
  if (*at_ == '-' && is_digit(at_[1])) return fail(begin, "a dimension cannot be negative");
  std::int64_t sum = 0;
  if (!product(sum)) return false;
  for (skip_blanks(); *at_ == '+' || *at_ == '-'; skip_blanks()) {
    const bool minus = *at_ == '-';
    ++at_;
    skip_blanks();
    std::int64_t more = 0;
    if (!product(more)) return false;
    if (minus ? __builtin_sub_overflow(sum, more, &sum) : __builtin_add_overflow(sum, more, &sum)) {
      return fail(begin, "this dimension does not fit in 64 bits");
    }
  }
  if (sum < 0) return fail(begin, "a dimension cannot be negative");
  out_.dimensions_.push_back(sum);
  return true;
}

bool CaseReader::product(std::int64_t& out) {
  const char* const begin = at_;
  if (!whole_number(out)) return false;
  for (const char* next = behind_blanks(at_); *next == '*' || *next == '/';
       next = behind_blanks(at_)) {
    const bool divides = *next == '/';
    at_ = next;
    if (divides && next[1] != '/') return expected("'//', the division of whole numbers,");
    at_ = behind_blanks(next + (divides ? 2 : 1));
    std::int64_t factor = 0;
    const char* const at_factor = at_;
    if (!whole_number(factor)) return false;
    if (divides) {
      if (factor == 0) return fail(at_factor, "a division by zero");
      out /= factor;  // exact floor division, because neither operand is negative
    } else if (__builtin_mul_overflow(out, factor, &out)) {
      return fail(begin, "this dimension does not fit in 64 bits");
    }
  }
  return true;
}

bool CaseReader::whole_number(std::int64_t& out) {
  const char* const begin = at_;
  if (!is_digit(*at_)) return expected("a dimension (a whole number)");
  bool overflow = false;
  out = 0;
  for (; is_digit(*at_); ++at_) {
    overflow |= __builtin_mul_overflow(out, std::int64_t{10}, &out);
    overflow |= __builtin_add_overflow(out, std::int64_t{*at_ - '0'}, &out);
  }
  if (!scan_word(at_).empty()) return fail(begin, "a dimension must be a whole number");
  if (overflow) return fail(begin, "this dimension does not fit in 64 bits");
  if (*begin == '0' && at_ - begin > 1) return fail(begin, "a dimension cannot begin with 0");
  return true;
}

bool CaseReader::place() {
  Case::TextSpan name;
  if (!place_name(name)) return false;
  set_text(add(ValueKind::place), name);
  return true;
}

// Reads "(gpu:0)" or "(cpu)".
bool CaseReader::place_name(Case::TextSpan& name) {
  if (!take('(')) return false;
  skip_blanks();
  const char* const begin = at_;
  if (!is_name_start(*at_)) return expected("a device such as cpu or gpu:0");
  at_ += scan_word(at_).size();
  if (*at_ == ':') {
    ++at_;
    if (!is_digit(*at_)) return expected("the number of a device");
    while (is_digit(*at_)) ++at_;
  }
  name = span({begin, static_cast<std::size_t>(at_ - begin)});
  return take(')');
}

bool CaseReader::dtype_string(DType& dtype) {
  skip_blanks();
  const char* const begin = at_;
  const std::string_view word = scan_word(at_);
  if (const auto found = dtype_of(word); found && word.find('.') != std::string_view::npos) {
    dtype = *found;
    at_ += word.size();
    return true;
  }
  if (*at_ != '"' && *at_ != '\'') return expected("a dtype in quotes");
  std::string_view name;
  const std::size_t decoded_size = out_.decoded_.size();
  at_ = scan_string(at_, name, out_.decoded_, error_);
  if (at_ == nullptr) return false;
  out_.decoded_.resize(decoded_size);
  const std::optional<DType> found = dtype_of(name);
  if (!found) return fail(begin, unknown_dtype(name));
  dtype = *found;
  return true;
}

bool CaseReader::dtype(DTypeForm form) {
  if (!take('(')) return false;
  skip_blanks();
  const std::string_view word = scan_word(at_);
  const std::optional<DType> found = dtype_of(word);
  if (word.empty()) return expected("a dtype");
  if (!found) return fail(at_, unknown_dtype(word));
  at_ += word.size();
  Case::Node& node = add(ValueKind::dtype);
  node.form = form;
  node.dtype = *found;
  return take(')');
}

// Reads torch.float32 or paddle.float32, which is Dtype(float32).
bool CaseReader::dtype_object(DType dtype) {
  Case::Node& node = add(ValueKind::dtype);
  node.form = DTypeForm::dtype;
  node.dtype = dtype;
  return true;
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
