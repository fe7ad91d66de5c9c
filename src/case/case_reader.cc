// Rules of CaseReader for the structure of a call: arguments, keywords, nesting.

#include "case/case_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/nearest.h"
#include "base/utf8.h"

namespace assay {
namespace {

constexpr std::string_view kAllowedNames[] = {"Tensor",
                                              "None",
                                              "True",
                                              "False",
                                              "list",
                                              "tuple",
                                              "slice",
                                              "Dtype",
                                              "VarType",
                                              "type",
                                              "complex",
                                              "Ellipsis",
                                              "inf",
                                              "nan",
                                              "Place",
                                              "paddle.Size",
                                              "torch.channels_last",
                                              "torch.channels_last_3d",
                                              "torch.contiguous_format",
                                              "torch.preserve_format"};

// Names joined by dots; none is empty or begins with a digit.
bool is_dotted_path(std::string_view word) {
  if (word.empty() || word.back() == '.') return false;
  bool at_start = true;
  for (const char c : word) {
    if (at_start && !is_name_start(c)) return false;
    at_start = c == '.';
  }
  return true;
}

}  // namespace

tl::expected<std::size_t, ParseError> CaseReader::read(std::string_view text) {
  const auto error = [&](std::size_t offset, std::string message) {
    return tl::unexpected(
        ParseError{count_characters(text.substr(0, offset)) + 1, std::move(message)});
  };
  if (text.size() > kMaxLineBytes) {
    return error(kMaxLineBytes,
                 fmt::format("the line is longer than {} MiB", kMaxLineBytes >> 20U));
  }
  const std::size_t bad = find_bad_byte(text);
  if (bad != text.size()) {
    return error(bad, text[bad] == '\0' ? "expected text, found a NUL byte"
                                        : "expected text, found a byte that is not UTF-8");
  }
  const std::size_t blanks = std::min(text.find_first_not_of(" \t"), text.size());
  begin(text.substr(blanks));
  const char* const first = at_;
  if (!call()) {
    return error(blanks + static_cast<std::size_t>(error_.at - first), std::move(error_.message));
  }
  const auto call_bytes = static_cast<std::size_t>(at_ - first);
  skip_blanks();
  const auto read_bytes = static_cast<std::size_t>(at_ - first);
  out_.text_.resize(call_bytes);
  return blanks + read_bytes;
}

void CaseReader::begin(std::string_view text) {
  out_.text_.assign(text);
  out_.decoded_.clear();
  out_.arguments_.clear();
  out_.nodes_.clear();
  out_.tensors_.clear();
  out_.dimensions_.clear();
  out_.constructs_ = false;
  out_.construction_ = 0;
  list_begin_ = 0;
  at_ = out_.text_.c_str();
}

bool CaseReader::call() {
  const std::string_view api = scan_word(at_);
  if (!is_dotted_path(api) || api.find('.') == std::string_view::npos) {
    return expected("an API name of two parts or more, such as paddle.add");
  }
  out_.api_ = span(api);
  at_ += api.size();
  return take('(') && arguments() && layer_arguments();
}

// If another argument list follows, the first one constructed a layer.
bool CaseReader::layer_arguments() {
  const char* const behind = behind_blanks(at_);
  if (*behind != '(') return true;
  at_ = behind + 1;
  list_begin_ = out_.arguments_.size();
  out_.construction_ = static_cast<std::uint32_t>(list_begin_);
  out_.constructs_ = true;
  return arguments();
}

bool CaseReader::arguments() {
  skip_blanks();
  while (*at_ != ')') {
    if (out_.arguments_.size() == kMaxArguments) {
      return fail(at_, fmt::format("more than {} arguments", kMaxArguments));
    }
    if (!argument() || !separator(')')) return false;
  }
  ++at_;
  return true;
}

bool CaseReader::argument() {
  const bool keywords_begun =
      out_.arguments_.size() > list_begin_ && out_.arguments_.back().keyword.size != 0;
  out_.arguments_.push_back({{}, static_cast<std::uint32_t>(out_.nodes_.size())});
  if (is_name_start(*at_)) {
    const std::string_view word = scan_word(at_);
    const char* const behind = behind_blanks(at_ + word.size());
    if (*behind == '=') {
      if (!keyword(word)) return false;
      at_ = behind_blanks(behind + 1);
      return value(0);
    }
  }
  if (keywords_begun) {
    return fail(at_, "expected 'name=value': no positional argument can follow a keyword argument");
  }
  return value(0);
}

bool CaseReader::keyword(std::string_view word) {
  if (word.find('.') != std::string_view::npos) {
    return fail(at_, fmt::format("{} cannot be a keyword: it holds a dot", quote(word)));
  }
  for (const Case::ArgumentEntry& other : std::span(out_.arguments_).subspan(list_begin_)) {
    if (out_.text(other.keyword) == word) {
      return fail(at_, fmt::format("the keyword {} is given twice", quote(word)));
    }
  }
  out_.arguments_.back().keyword = span(word);
  return true;
}

bool CaseReader::value(unsigned depth) {
  switch (*at_) {
    case '"':
    case '\'':
      return string();
    case '[':
      return items(ValueKind::list, ']', depth);
    case '(':
      return parenthesised(depth);
    case '+':
    case '-':
      return number();
    case '.':
      if (at_[1] == '.' && at_[2] == '.') return constant("...", ValueKind::ellipsis);
      return number();
    default:
      break;
  }
  if (is_digit(*at_)) return number();
  if (is_name_start(*at_)) return named_value(scan_word(at_), depth);
  return expected("a value");
}

bool CaseReader::named_value(std::string_view word, unsigned depth) {
  if (word == "None") return constant(word, ValueKind::none);
  if (word == "True") return constant(word, ValueKind::boolean, true);
  if (word == "False") return constant(word, ValueKind::boolean);
  if (word == "Ellipsis") return constant(word, ValueKind::ellipsis);
  if (names_number(word)) return number();

  const char* const begin = at_;
  at_ += word.size();
  if (word == "Tensor") return tensor();
  if (word == "slice") return slice(depth);
  if (word == "Dtype") return dtype(DTypeForm::dtype);
  if (word == "VarType") return dtype(DTypeForm::var_type);
  if (word == "type") return scalar_type();
  if (word == "complex") return complex_call();
  if (word == "Place") return place();
  if (word == "paddle.Size") return size_of_paddle(depth);
  if (find_memory_format(word) || is_layout(word)) {
    set_text(add(ValueKind::string), span(word.substr(word.find('.') + 1)));
    return true;
  }
  if (word.find('.') != std::string_view::npos) {
    if (const std::optional<DType> found = dtype_of(word)) return dtype_object(*found);
  }
  if (word == "list" || word == "tuple") {
    const bool list = word == "list";
    skip_blanks();
    if (*at_ != (list ? '[' : '(')) return expected(list ? "'['" : "'('");
    return items(list ? ValueKind::list : ValueKind::tuple, list ? ']' : ')', depth);
  }
  return fail(begin, fmt::format("expected a value, found the unknown name {}{}", quote(word),
                                 suggest(word, kAllowedNames)));
}

bool CaseReader::items(ValueKind kind, char close, unsigned depth) {
  if (depth == kMaxNesting) {
    return fail(at_, fmt::format("nested deeper than {} levels", kMaxNesting));
  }
  ++at_;
  const std::size_t node = out_.nodes_.size();
  add(kind);
  std::uint64_t count = 0;
  skip_blanks();
  while (*at_ != close) {
    if (!value(depth + 1) || !separator(close)) return false;
    ++count;
  }
  ++at_;
  out_.nodes_[node].first = count;
  out_.nodes_[node].subtree = static_cast<std::uint32_t>(out_.nodes_.size() - node);
  return true;
}

bool CaseReader::parenthesised(unsigned depth) {
  const auto node = static_cast<std::ptrdiff_t>(out_.nodes_.size());
  if (!items(ValueKind::tuple, ')', depth)) return false;
  // Parentheses around one value are the value, as in Python, which prints a complex as "(1+2j)".
  const auto tuple = out_.nodes_.begin() + node;
  if (tuple->first == 1 && !after_comma_) out_.nodes_.erase(tuple);
  return true;
}

bool CaseReader::slice(unsigned depth) {
  skip_blanks();
  if (*at_ != '(') return expected("'('");
  const char* const begin = at_;
  const std::size_t node = out_.nodes_.size();
  if (!items(ValueKind::slice, ')', depth)) return false;
  const std::uint64_t count = out_.nodes_[node].first;
  if (count == 3) return true;
  return fail(begin, fmt::format("a slice has three values: start, stop, step; found {}", count));
}

// Reads paddle.Size([2, 3]) as the list.
bool CaseReader::size_of_paddle(unsigned depth) {
  if (!take('(')) return false;
  skip_blanks();
  if (*at_ != '[') return expected("'['");
  return items(ValueKind::list, ']', depth) && take(')');
}

bool CaseReader::constant(std::string_view word, ValueKind kind, bool set) {
  at_ += word.size();
  add(kind).first = set ? 1 : 0;
  return true;
}

Case::Node& CaseReader::add(ValueKind kind) {
  Case::Node& node = out_.nodes_.emplace_back();
  node.kind = kind;
  return node;
}

bool CaseReader::take(char wanted) {
  skip_blanks();
  if (*at_ != wanted) return expected(fmt::format("'{}'", wanted));
  ++at_;
  return true;
}

bool CaseReader::separator(char close) {
  skip_blanks();
  after_comma_ = *at_ == ',';
  if (after_comma_) {
    ++at_;
    skip_blanks();
    return true;
  }
  return *at_ == close || expected(fmt::format("',' or '{}'", close));
}

bool CaseReader::expected(std::string_view what) {
  std::string found = "the end of the line";
  if (const std::string_view word = scan_word(at_); !word.empty()) {
    found = quote(word);
  } else if (*at_ != '\0') {
    found = quote(std::string_view(at_, character_size(*at_)));
  }
  return fail(at_, fmt::format("expected {}, found {}", what, found));
}

std::string quote(std::string_view word) {
  constexpr std::size_t kMostShown = 40;
  std::string shown = "'";
  while (!word.empty() && shown.size() < kMostShown) {
    const auto byte = static_cast<unsigned char>(word[0]);
    const std::size_t size = character_size(word[0]);
    shown += byte < 0x20 || byte == 0x7F ? "?" : word.substr(0, size);
    word.remove_prefix(size);
  }
  return shown + (word.empty() ? "'" : "…'");
}

}  // namespace assay
