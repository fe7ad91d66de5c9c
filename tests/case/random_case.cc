#include "random_case.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>

namespace assay {
namespace {

std::uint64_t below(Random& random, std::uint64_t bound) {
  return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(random);
}

template <typename T, std::size_t N>
const T& one_of(Random& random, const T (&choices)[N]) {
  return choices[below(random, N)];
}

// Any bit pattern that is not NaN, or a value that people write.
double random_double(Random& random) {
  if (below(random, 2) == 0) {
    return one_of(
        random, {0.0, -0.0, 1.0, 2.0, 0.5, 1e-5, 1e16, 1e22, -1e100,
                 std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                 std::numeric_limits<double>::quiet_NaN()});
  }
  const double any = std::bit_cast<double>(random());
  return std::isnan(any) ? 0.25 : any;
}

std::string random_string(Random& random) {
  static const std::string pieces[] = {"a",
                                       "B",
                                       " ",
                                       "\"",
                                       "'",
                                       "\\",
                                       "\n",
                                       "\t",
                                       "\r",
                                       ")",
                                       ",",
                                       "\xC3\xA9",
                                       "\x7F",
                                       "->",
                                       "[",
                                       "]",
                                       "\x01",
                                       "é",
                                       std::string(1, '\0')};
  std::string out;
  for (std::uint64_t i = below(random, 6); i > 0; --i) out += one_of(random, pieces);
  return out;
}

std::string random_place(Random& random) {
  return one_of(random, {"cpu", "gpu:0", "gpu:17", "gpu", "gpu_pinned"});
}

// Never the strides of a contiguous tensor, because the canonical text has none for it.
std::vector<std::int64_t> random_strides(Random& random, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides;
  for (const std::int64_t extent : shape) {
    if (extent > 4) return {};
    strides.push_back(static_cast<std::int64_t>(5 + below(random, 30)));
  }
  for (const std::int64_t extent : shape) {
    if (extent > 1) return strides;
  }
  return {};
}

RandomValue random_value(Random& random, unsigned size, unsigned depth) {
  RandomValue out;
  out.kind = static_cast<ValueKind>(below(random, depth < 5 && size > 0 ? 13 : 10));
  if (below(random, 15) == 0) out.kind = ValueKind::place;
  switch (out.kind) {
    case ValueKind::boolean:
      out.integer = static_cast<std::int64_t>(below(random, 2));
      break;
    case ValueKind::integer:
      out.integer = below(random, 2) == 0 ? static_cast<std::int64_t>(random())
                                          : static_cast<std::int64_t>(below(random, 5)) - 2;
      break;
    case ValueKind::big_integer:
      out.text = (below(random, 2) == 0 ? "-" : "") + std::to_string(1 + below(random, 9)) +
                 std::string(19 + below(random, 30), static_cast<char>('0' + below(random, 10)));
      break;
    case ValueKind::complex:
      out.imaginary = random_double(random);
      [[fallthrough]];
    case ValueKind::floating:
      out.real = random_double(random);
      break;
    case ValueKind::string:
      out.text = random_string(random);
      break;
    case ValueKind::tensor:
      for (std::uint64_t i = below(random, 4); i > 0; --i) {
        out.shape.push_back(
            static_cast<std::int64_t>(below(random, 20) == 0 ? random() >> 1U : below(random, 5)));
      }
      out.dtype = kDTypes[below(random, kDTypes.size())].dtype;
      if (below(random, 4) == 0) out.text = random_place(random);
      if (!out.shape.empty() && below(random, 4) == 0)
        out.strides = random_strides(random, out.shape);
      break;
    case ValueKind::place:
      out.text = random_place(random);
      break;
    case ValueKind::dtype:
      out.form = static_cast<DTypeForm>(below(random, 4));
      out.dtype =
          out.form == DTypeForm::builtin_type
              ? one_of(random, {DType::boolean, DType::int64, DType::float64, DType::complex128})
              : kDTypes[below(random, kDTypes.size())].dtype;
      break;
    case ValueKind::list:
    case ValueKind::tuple:
      for (std::uint64_t i = below(random, 4); i > 0; --i) {
        out.children.push_back(random_value(random, size / 2, depth + 1));
      }
      break;
    case ValueKind::slice:
      for (int i = 0; i < 3; ++i) out.children.push_back(random_value(random, 0, depth + 1));
      break;
    default:
      break;
  }
  return out;
}

// Prints a case; its Random chooses among equivalent notations.
class Writer {
 public:
  explicit Writer(Random& random) : random_(random) {}

  std::string write(const RandomCase& source) {
    text_ = source.api;
    if (source.constructs) {
      arguments(source, 0, source.construction);
      blanks();
    }
    arguments(source, source.construction, source.arguments.size());
    return text_;
  }

 private:
  void arguments(const RandomCase& source, std::size_t first, std::size_t last) {
    sequence("(", ")", last - first, false, [&](std::size_t i) {
      const auto& [keyword, value] = source.arguments[first + i];
      if (!keyword.empty()) {
        text_ += keyword;
        blanks();
        text_ += "=";
        blanks();
      }
      this->value(value);
    });
  }

  // Sometimes prints a sum, difference, product or quotient.
  void extent(std::int64_t value) {
    if (value > 1'000'000 || below(random_, 4) != 0) {
      text_ += std::to_string(value);
      return;
    }
    const std::string whole = std::to_string(value);
    const std::string blank = coin() ? " " : "";
    text_ += one_of(random_, {whole + blank + "*" + blank + "1", "2*" + whole + "//2",
                              std::to_string(value * 4 + 3) + blank + "//" + blank + "4",
                              whole + "+1" + blank + "-1", "7+" + whole + "-1*7"});
  }

  void tensor(const RandomValue& source) {
    text_ += "Tensor(";
    const bool size = coin();
    if (size) text_ += "paddle.Size(";
    sequence("[", "]", source.shape.size(), false, [&](std::size_t i) { extent(source.shape[i]); });
    if (size) text_ += ")";
    text_ += ",";
    blanks();
    string(std::string(info(source.dtype).name));
    std::vector<std::string> options;
    if (!source.text.empty()) options.push_back("place=Place(" + source.text + ")");
    if (!source.strides.empty()) {
      std::string strides = coin() ? "strides=list[" : "strides=[";
      for (const std::int64_t stride : source.strides) strides += std::to_string(stride) + ",";
      options.push_back(strides + "]");
      if (coin()) options.push_back("is_contiguous=False");
    } else if (coin()) {
      options.push_back("is_contiguous=True");
    }
    if (coin()) std::ranges::reverse(options);
    for (const std::string& option : options) {
      text_ += coin() ? "," : " , ";
      text_ += option;
    }
    text_ += ")";
  }

  bool coin() { return below(random_, 2) == 0; }
  void blanks() { text_ += one_of(random_, {"", "", "", " ", "  ", "\t"}); }

  template <typename Item>
  void sequence(std::string_view open, std::string_view close, std::size_t count,
                bool comma_behind_one, Item item) {
    text_ += open;
    blanks();
    for (std::size_t i = 0; i < count; ++i) {
      item(i);
      blanks();
      if (i + 1 < count || coin() || (comma_behind_one && count == 1)) text_ += ",";
      blanks();
    }
    text_ += close;
  }

  void children(const char* open, const char* close, const RandomValue& source) {
    sequence(open, close, source.children.size(), *open == '(',
             [&](std::size_t i) { value(source.children[i]); });
  }

  void number(double value) {
    if (std::isnan(value)) {
      text_ += one_of(random_, {"nan", "math.nan", "-nan", "numpy.nan"});
    } else if (std::isinf(value)) {
      text_ += value < 0 ? "-" : coin() ? "+" : "";
      text_ += one_of(random_, {"inf", "math.inf", "np.inf"});
    } else {
      // 17 significant digits name any double; %e always has a point or an exponent.
      char buffer[64];
      std::snprintf(buffer, sizeof buffer, coin() ? "%.16e" : "%.20e", value);
      text_ += buffer;
    }
  }

  void string(const std::string& source) {
    const char quote = coin() ? '"' : '\'';
    text_ += quote;
    for (const char c : source) {
      if (c == quote || c == '\\') {
        text_ += '\\';
        text_ += c;
      } else if (c == '\0' || (c > 0 && c < 0x20)) {
        char buffer[8];
        std::snprintf(buffer, sizeof buffer, "\\x%02x", static_cast<unsigned>(c));
        text_ += buffer;
      } else {
        text_ += c;
      }
    }
    text_ += quote;
  }

  void dtype(const RandomValue& source) {
    static const char* const opens[] = {"Dtype(", "VarType(", "type(numpy.", "type("};
    text_ += opens[static_cast<std::size_t>(source.form)];
    if (source.form == DTypeForm::builtin_type) {
      text_ += source.dtype == DType::boolean   ? "bool"
               : source.dtype == DType::int64   ? "int"
               : source.dtype == DType::float64 ? "float"
                                                : "complex";
    } else {
      text_ += info(source.dtype).name;
    }
    text_ += ")";
  }

  void value(const RandomValue& source) {
    switch (source.kind) {
      case ValueKind::none:
        text_ += "None";
        break;
      case ValueKind::boolean:
        text_ += source.integer != 0 ? "True" : "False";
        break;
      case ValueKind::integer:
        text_ += (source.integer >= 0 && coin() ? "+" : "") + std::to_string(source.integer);
        break;
      case ValueKind::big_integer:
        text_ += source.text;
        break;
      case ValueKind::floating:
        number(source.real);
        break;
      case ValueKind::complex:
        text_ += "complex(";
        number(source.real);
        text_ += coin() ? "," : " , ";
        number(source.imaginary);
        text_ += ")";
        break;
      case ValueKind::string:
        string(source.text);
        break;
      case ValueKind::ellipsis:
        text_ += coin() ? "..." : "Ellipsis";
        break;
      case ValueKind::tensor:
        tensor(source);
        break;
      case ValueKind::dtype:
        dtype(source);
        break;
      case ValueKind::list:
        children(coin() ? "list[" : "[", "]", source);
        break;
      case ValueKind::tuple:
        children(coin() ? "tuple(" : "(", ")", source);
        break;
      case ValueKind::slice:
        children("slice(", ")", source);
        break;
      case ValueKind::place:
        text_ += "Place(";
        blanks();
        text_ += source.text;
        blanks();
        text_ += ")";
        break;
    }
  }

  Random& random_;
  std::string text_;
};

bool same_double(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

bool same(const RandomValue& source, Value parsed, std::size_t& tensors) {
  if (source.kind != parsed.kind()) return false;
  switch (source.kind) {
    case ValueKind::none:
    case ValueKind::ellipsis:
      return true;
    case ValueKind::boolean:
      return (source.integer != 0) == parsed.boolean();
    case ValueKind::integer:
      return source.integer == parsed.integer();
    case ValueKind::big_integer:
    case ValueKind::string:
    case ValueKind::place:
      return source.text == parsed.text();
    case ValueKind::floating:
      return same_double(source.real, parsed.floating());
    case ValueKind::complex:
      return same_double(source.real, parsed.complex().real()) &&
             same_double(source.imaginary, parsed.complex().imag());
    case ValueKind::tensor: {
      const TensorSpec spec = parsed.tensor();
      return parsed.tensor_ordinal() == tensors++ && spec.dtype == source.dtype &&
             spec.place == source.text && std::ranges::equal(spec.strides, source.strides) &&
             std::ranges::equal(spec.shape, source.shape);
    }
    case ValueKind::dtype:
      return source.dtype == parsed.dtype() && source.form == parsed.dtype_form();
    default:
      break;
  }
  if (parsed.size() != source.children.size()) return false;
  std::size_t i = 0;
  for (const Value child : parsed.children()) {
    if (i == source.children.size() || !same(source.children[i++], child, tensors)) return false;
  }
  return i == source.children.size();
}

}  // namespace

RandomCase random_case(Random& random, unsigned size) {
  RandomCase out;
  out.api = one_of(random, {"paddle.f", "paddle.Tensor.__getitem__", "a.b.c.d_1"});
  const std::uint64_t positional = below(random, size + 1);
  for (std::uint64_t i = 0; i < positional; ++i) {
    out.arguments.emplace_back("", random_value(random, size, 0));
  }
  std::set<std::string> keywords;
  if (below(random, 5) == 0) {
    out.constructs = true;
    out.construction = below(random, positional + 1);
  }
  for (std::uint64_t i = below(random, size + 1); i > 0; --i) {
    const std::string keyword =
        one_of(random, {"x", "axis", "list", "Tensor", "_1", "inf", "None"});
    if (!keywords.insert(keyword).second) continue;
    out.arguments.emplace_back(keyword, random_value(random, size, 0));
  }
  return out;
}

std::string write_somehow(const RandomCase& source, Random& random) {
  return Writer(random).write(source);
}

std::string difference(const RandomCase& source, const Case& parsed) {
  if (parsed.api() != source.api) return "the API";
  if (parsed.argument_count() != source.arguments.size()) return "the number of arguments";
  if (parsed.constructs() != source.constructs) return "whether a layer is made";
  if (parsed.construction_count() != source.construction) return "what the layer is made with";
  std::size_t tensors = 0;
  for (std::size_t i = 0; i < source.arguments.size(); ++i) {
    const Argument argument = parsed.argument(i);
    if (argument.keyword != source.arguments[i].first) return "keyword " + std::to_string(i);
    if (!same(source.arguments[i].second, argument.value, tensors)) {
      return "value " + std::to_string(i);
    }
  }
  return tensors == parsed.tensor_count() ? "" : "the number of tensors";
}

}  // namespace assay
