#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "case/case.h"
#include "case/literal.h"
#include "case/parse_error.h"

namespace assay {

inline const char* behind_blanks(const char* at) {
  while (*at == ' ' || *at == '\t') ++at;
  return at;
}

// The recursive-descent parser behind case/parser.h, which has the grammar. It reads the copy of
// the text that the Case owns; the final NUL ends every scan. Each member reads one rule at at_,
// and returns false after it has set error_.
class CaseReader {
 public:
  explicit CaseReader(Case& out) : out_(out) {}

  // Reads the call at the start of `text`. Returns the number of bytes read, with surrounding
  // blanks.
  tl::expected<std::size_t, ParseError> read(std::string_view text);

 private:
  void begin(std::string_view text);
  bool call();
  bool arguments();
  bool layer_arguments();
  bool argument();
  bool keyword(std::string_view word);
  bool value(unsigned depth);
  bool named_value(std::string_view word, unsigned depth);
  bool items(ValueKind kind, char close, unsigned depth);
  bool parenthesised(unsigned depth);
  bool slice(unsigned depth);
  bool tensor();
  bool tensor_again();
  bool tensor_options(Case::TensorEntry& entry);
  bool tensor_option(std::string_view word, Case::TensorEntry& entry);
  bool memory_format(Case::TensorEntry& entry);
  void scatter(Case::TensorEntry& entry);
  void settle_strides(Case::TensorEntry& entry);
  bool shape();
  bool numbers(std::string_view what);
  bool extent();
  bool product(std::int64_t& out);
  bool whole_number(std::int64_t& out);
  bool size_of_paddle(unsigned depth);
  bool place();
  bool place_name(Case::TextSpan& name);
  bool dtype_string(DType& dtype);
  bool dtype(DTypeForm form);
  bool dtype_object(DType dtype);
  bool scalar_type();
  bool complex_call();
  bool complex_part(double& out);
  bool number();
  bool string();

  bool constant(std::string_view word, ValueKind kind, bool set = false);
  Case::Node& add(ValueKind kind);
  void skip_blanks() { at_ = behind_blanks(at_); }
  // Skips blanks and takes the character, or fails.
  bool take(char wanted);
  // Takes the comma after a value. The last value before `close` needs none.
  bool separator(char close);
  bool expected(std::string_view what);
  bool fail(const char* at, std::string message) {
    error_ = {at, std::move(message)};
    return false;
  }
  Case::TextSpan span(std::string_view piece) const {
    return {static_cast<std::uint32_t>(piece.data() - out_.text_.data()),
            static_cast<std::uint32_t>(piece.size())};
  }
  void set_text(Case::Node& node, Case::TextSpan text) {
    node.first = text.begin;
    node.second = text.size;
  }

  Case& out_;
  const char* at_ = nullptr;
  bool after_comma_ = false;    // whether the last separator() was a comma
  std::size_t list_begin_ = 0;  // index of the first argument of the current list
  SyntaxError error_;
};

// A memory format of PyTorch, and how many dimensions tensors with its strides have; 0: any number.
struct MemoryFormat {
  std::string_view name;
  std::uint8_t rank;
};

// Finds "torch.channels_last" and the like; nullptr for another word.
const MemoryFormat* find_memory_format(std::string_view word);
// Whether the word is a layout of PyTorch: "torch.strided", "torch.sparse_coo" and the like.
bool is_layout(std::string_view word);
// The dtype of this name, also as programs write it: torch.bfloat16, paddle.float32.
std::optional<DType> dtype_of(std::string_view word);

// Quotes a word for a message: long words are cut, control characters replaced.
std::string quote(std::string_view word);

}  // namespace assay
