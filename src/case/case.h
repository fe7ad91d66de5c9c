#pragma once

// The data of one case: a parsed API call. Nothing is evaluated.
//
//   paddle.concat(list[Tensor([2, 3],"float32"),Tensor([2, 3],"float32"),], axis=0, )
//
// A Case owns its text and flat tables (values in pre-order, tensors, dimensions). The tables keep
// their memory when the next line is parsed into the Case. Value and TensorSpec are views, valid
// until the next parse or the end of the Case.

#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "case/dtype.h"

namespace assay {

enum class ValueKind : std::uint8_t {
  none,
  boolean,
  integer,      // fits into int64
  big_integer,  // does not fit into int64; kept as decimal text
  floating,
  complex,
  string,
  ellipsis,
  tensor,
  dtype,
  list,
  tuple,
  slice,  // three children: start, stop, step
  place,  // a device: "gpu:0"
};

// The notation of a dtype, because frameworks distinguish them: Dtype(int64), VarType(int64),
// type(numpy.int64), type(int).
enum class DTypeForm : std::uint8_t { dtype, var_type, numpy_type, builtin_type };

struct TensorSpec {
  std::span<const std::int64_t> shape;  // each ≥ 0; empty: a 0-d tensor
  DType dtype = DType::float32;
  std::span<const std::int64_t> strides;  // in elements; empty: contiguous
  std::string_view place;                 // the device that the case names; usually empty

  // Elements between the first and the last in memory; strides can make this more than elements().
  std::uint64_t storage() const;
  // The product of the shape (1 for 0-d), and the bytes of storage(). Both saturate at the largest
  // uint64, because corpora have shapes of 2.4e18 elements.
  std::uint64_t elements() const;
  std::uint64_t bytes() const;
};

class Case;
class CaseReader;

// A view of one value of a case. Call a getter only for the kind in its comment or name.
class Value {
 public:
  class Iterator;
  class Children;

  ValueKind kind() const;
  bool is(ValueKind other) const { return kind() == other; }

  bool boolean() const;
  std::int64_t integer() const;
  double floating() const;
  std::complex<double> complex() const;
  // string: UTF-8 with escapes resolved; big_integer: "-"? and decimal digits; place: a device
  // name.
  std::string_view text() const;
  // The index of a tensor among all tensors of the case, in order of appearance.
  std::size_t tensor_ordinal() const;
  TensorSpec tensor() const;
  // True for "Tensor#1": a tensor that an earlier value of the case states.
  bool repeats() const;
  DType dtype() const;
  DTypeForm dtype_form() const;
  // Number of children of a list, tuple or slice.
  std::size_t size() const;
  Children children() const;

 private:
  friend class Case;
  Value(const Case* owner, std::uint32_t node) : owner_(owner), node_(node) {}

  const Case* owner_ = nullptr;
  std::uint32_t node_ = 0;
};

struct Argument {
  std::string_view keyword;  // empty: positional
  Value value;
};

class Case {
 public:
  // The call as written, and the name of its API: "paddle.Tensor.__getitem__".
  std::string_view text() const { return text_; }
  std::string_view api() const { return text(api_); }

  // Arguments in written order; positional ones come first.
  std::size_t argument_count() const { return arguments_.size(); }
  // True for a layer, which is constructed and then called: paddle.nn.LayerNorm(8)(Tensor([2, 8],
  // "float32")). The first construction_count() arguments construct it; the others belong to the
  // call.
  bool constructs() const { return constructs_; }
  std::size_t construction_count() const { return constructs_ ? construction_ : 0; }
  Argument argument(std::size_t index) const {
    const ArgumentEntry& entry = arguments_[index];
    return {text(entry.keyword), Value(this, entry.node)};
  }
  auto arguments() const {
    return std::views::iota(std::size_t{0}, argument_count()) |
           std::views::transform([this](std::size_t index) { return argument(index); });
  }

  std::size_t tensor_count() const { return tensors_.size(); }
  TensorSpec tensor(std::size_t ordinal) const {
    const TensorEntry& entry = tensors_[ordinal];
    const std::span dimensions(dimensions_);
    return {dimensions.subspan(entry.shape, entry.rank), entry.dtype,
            dimensions.subspan(entry.strides, entry.strided ? entry.rank : 0), text(entry.place)};
  }
  auto tensors() const {
    return std::views::iota(std::size_t{0}, tensor_count()) |
           std::views::transform([this](std::size_t ordinal) { return tensor(ordinal); });
  }

  // Sums over all tensors; they saturate at the largest uint64.
  std::uint64_t total_elements() const;
  std::uint64_t total_bytes() const;

  // True if both mean the same, whatever their blanks, quotes and trailing commas. Floats are
  // compared by their bits: NaN equals itself, and -0.0 differs from 0.0.
  friend bool operator==(const Case& a, const Case& b);

 private:
  friend class Value;
  friend class CaseReader;

  // A part of text_, or of decoded_ if `begin` has the bit kDecoded.
  struct TextSpan {
    std::uint32_t begin = 0;
    std::uint32_t size = 0;
  };
  static constexpr std::uint32_t kDecoded = 1U << 31;
  // `first` and `second` depend on the kind: the value (a double as its bits), a TextSpan, a
  // tensor's ordinal (and 1 if it repeats an earlier one), or the number of children. Children
  // follow their node directly.
  struct Node {
    ValueKind kind = ValueKind::none;
    DTypeForm form = DTypeForm::dtype;
    DType dtype = DType::boolean;
    std::uint32_t subtree =
        1;  // number of nodes including this one, so the distance to the next sibling
    std::uint64_t first = 0;
    std::uint64_t second = 0;
  };
  struct ArgumentEntry {
    TextSpan keyword;
    std::uint32_t node = 0;
  };
  struct TensorEntry {
    std::uint32_t shape = 0;    // index in dimensions_
    std::uint32_t strides = 0;  // index in dimensions_, if strided
    std::uint8_t rank = 0;
    DType dtype = DType::float32;
    bool strided = false;
    TextSpan place;
  };

  std::string_view text(TextSpan span) const {
    const std::string& home = (span.begin & kDecoded) == 0 ? text_ : decoded_;
    return std::string_view(home).substr(span.begin & ~kDecoded, span.size);
  }
  std::string_view text(const Node& node) const {
    return text({static_cast<std::uint32_t>(node.first), static_cast<std::uint32_t>(node.second)});
  }
  bool same_tensor(const TensorEntry& mine, const Case& other, const TensorEntry& theirs) const;
  bool same_node(const Node& mine, const Case& other, const Node& theirs) const;

  std::string text_;
  std::string decoded_;  // the text of strings with escapes
  TextSpan api_;
  std::vector<ArgumentEntry> arguments_;
  std::vector<Node> nodes_;
  std::vector<TensorEntry> tensors_;
  std::vector<std::int64_t> dimensions_;
  std::uint32_t construction_ = 0;
  bool constructs_ = false;
};

// Iterates over siblings.
class Value::Iterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = Value;

  Iterator() : at_(nullptr, 0) {}
  explicit Iterator(Value at) : at_(at) {}
  Value operator*() const { return at_; }
  Iterator& operator++() {
    at_.node_ += at_.owner_->nodes_[at_.node_].subtree;
    return *this;
  }
  Iterator operator++(int) {
    Iterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Iterator& other) const { return at_.node_ == other.at_.node_; }

 private:
  Value at_;
};

class Value::Children {
 public:
  Children(Iterator first, Iterator last) : first_(first), last_(last) {}
  Iterator begin() const { return first_; }
  Iterator end() const { return last_; }

 private:
  Iterator first_;
  Iterator last_;
};

inline ValueKind Value::kind() const { return owner_->nodes_[node_].kind; }
inline bool Value::boolean() const { return owner_->nodes_[node_].first != 0; }
inline std::int64_t Value::integer() const {
  return static_cast<std::int64_t>(owner_->nodes_[node_].first);
}
inline double Value::floating() const { return std::bit_cast<double>(owner_->nodes_[node_].first); }
inline std::complex<double> Value::complex() const {
  return {floating(), std::bit_cast<double>(owner_->nodes_[node_].second)};
}
inline std::string_view Value::text() const { return owner_->text(owner_->nodes_[node_]); }
inline std::size_t Value::tensor_ordinal() const { return owner_->nodes_[node_].first; }
inline bool Value::repeats() const { return owner_->nodes_[node_].second != 0; }
inline TensorSpec Value::tensor() const { return owner_->tensor(tensor_ordinal()); }
inline DType Value::dtype() const { return owner_->nodes_[node_].dtype; }
inline DTypeForm Value::dtype_form() const { return owner_->nodes_[node_].form; }
inline std::size_t Value::size() const { return owner_->nodes_[node_].first; }
inline Value::Children Value::children() const {
  const std::uint32_t end = node_ + owner_->nodes_[node_].subtree;
  return {Iterator(Value(owner_, node_ + 1)), Iterator(Value(owner_, end))};
}

}  // namespace assay
