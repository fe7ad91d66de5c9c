#include "case/name_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"

namespace assay {

namespace {

// The framework's name counts only as a whole, so that "add" is not in every "paddle.…".
bool holds_part(std::string_view name, std::string_view part) {
  const std::size_t framework = std::min(name.find('.'), name.size());
  if (name.substr(framework).find(part) != std::string_view::npos) return true;
  return part.size() >= framework && name.starts_with(part);
}

}  // namespace

struct NameFilter::Node {
  enum class Kind { contains, all, any, negation };  // a negation has one child
  Kind kind = Kind::contains;
  std::string part;  // in lower case
  std::vector<Node> children;

  bool holds(const std::string& name) const {
    switch (kind) {
      case Kind::contains:
        return holds_part(name, part);
      case Kind::negation:
        return !children.front().holds(name);
      case Kind::all:
        for (const Node& child : children) {
          if (!child.holds(name)) return false;
        }
        return true;
      case Kind::any:
        for (const Node& child : children) {
          if (child.holds(name)) return true;
        }
        return false;
    }
    return false;
  }
};

namespace {

using Node = NameFilter::Node;

// The parser recurses once for each parenthesis and each `not`.
constexpr std::size_t kLongest = 4096;

// Recursive descent: any = all ("or" all)*, all = one ("and" one)*, one = "not" one | "(" any ")" |
// part.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) { advance(); }

  Result<Node> parse() {
    ASSAY_TRY(Node node, any());
    if (!token_.empty()) return expected("`and`, `or` or the end");
    return node;
  }

 private:
  Result<Node> any() { return chain("or", Node::Kind::any, &Parser::all); }
  Result<Node> all() { return chain("and", Node::Kind::all, &Parser::one); }

  Result<Node> chain(std::string_view word, Node::Kind kind, Result<Node> (Parser::*operand)()) {
    ASSAY_TRY(Node first, (this->*operand)());
    if (token_ != word) return first;
    Node node{kind, {}, {}};
    node.children.push_back(std::move(first));
    while (token_ == word) {
      advance();
      ASSAY_TRY(Node next, (this->*operand)());
      node.children.push_back(std::move(next));
    }
    return node;
  }

  Result<Node> one() {
    if (token_ == "not") {
      advance();
      ASSAY_TRY(Node inner, one());
      Node node{Node::Kind::negation, {}, {}};
      node.children.push_back(std::move(inner));
      return node;
    }
    if (token_ == "(") {
      advance();
      ASSAY_TRY(Node inner, any());
      if (token_ != ")") return expected("`)`");
      advance();
      return inner;
    }
    if (token_.empty() || token_ == ")" || token_ == "and" || token_ == "or") {
      return expected("a part of a name");
    }
    Node node{Node::Kind::contains, lowered(token_), {}};
    advance();
    return node;
  }

  // Moves to the next parenthesis or word; an empty token is the end.
  void advance() {
    constexpr std::string_view kBlanks = " \t\r\n";
    constexpr std::string_view kEnds = " \t\r\n()";
    at_ = std::min(text_.find_first_not_of(kBlanks, at_ + token_.size()), text_.size());
    const std::string_view rest = text_.substr(at_);
    const bool parenthesis = rest.starts_with('(') || rest.starts_with(')');
    token_ = rest.substr(0, parenthesis ? 1 : rest.find_first_of(kEnds));
  }

  tl::unexpected<Error> expected(std::string_view what) const {
    return usage_error(fmt::format("-k, column {}: expected {}, found {}", at_ + 1, what,
                                   token_.empty() ? "the end" : fmt::format("'{}'", token_)));
  }

  std::string_view text_;
  std::string_view token_;
  std::size_t at_ = 0;  // of the token
};

}  // namespace

Result<NameFilter> NameFilter::parse(std::string_view expression) {
  if (expression.size() > kLongest) {
    return usage_error(fmt::format("-k takes at most {} characters", kLongest));
  }
  ASSAY_TRY(Node root, Parser(expression).parse());
  return NameFilter(std::make_shared<const Node>(std::move(root)));
}

bool NameFilter::matches(std::string_view name) const { return root_->holds(lowered(name)); }

}  // namespace assay
