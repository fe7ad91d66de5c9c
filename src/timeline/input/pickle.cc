#include "timeline/input/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "timeline/input/bytes.h"

namespace assay::timeline {

class PickleReader {
 public:
  using json = nlohmann::json;

  explicit PickleReader(std::string_view bytes)
      : bytes_{bytes}, size_(bytes.size()), left_(kLeastMemory + kMemoryPerByte * size_) {}

  Result<PickleTree> read() {
    while (good() && !done_) step();
    if (!good() || stack_.size() != 1) {
      return usage_error(
          fmt::format("unsupported or damaged pickle at byte {}", size_ - bytes_.rest.size()));
    }
    PickleTree tree;
    tree.nodes_ = std::move(nodes_);
    tree.root_ = stack_.back();
    tree.left_ = left_;
    return tree;
  }

 private:
  using NodeId = PickleTree::NodeId;
  using Node = PickleTree::Node;

  template <typename T>
  T take() {
    return bytes_.get<T>();
  }
  bool good() const { return bytes_.ok; }
  // A value on the stack is a node: a recalled container is the same node, not a copy.
  void push(json value) {
    const std::size_t text = value.is_string() ? value.get_ref<const std::string&>().size() : 0;
    spend(sizeof(Node) + text);
    stack_.push_back(static_cast<NodeId>(nodes_.size()));
    nodes_.push_back({std::move(value), {}});
  }
  void spend(std::size_t bytes) {
    bytes_.ok &= bytes <= left_;
    left_ -= std::min(bytes, left_);
  }
  // Moves the uppermost `count` values into the container below them; false without that many.
  bool fill(std::size_t count) {
    bytes_.ok &=
        stack_.size() > count && nodes_[stack_[stack_.size() - count - 1]].value.is_structured();
    if (!good()) return false;
    const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
    auto& children = nodes_[*std::prev(first)].children;
    spend(count * sizeof(NodeId));
    children.insert(children.end(), first, stack_.end());
    stack_.erase(first, stack_.end());
    return good();
  }
  void tuple(std::size_t count) {
    bytes_.ok &= stack_.size() >= count;
    if (!good()) return;
    spend(sizeof(Node));
    const auto id = static_cast<NodeId>(nodes_.size());
    nodes_.push_back({json::array(), {}});
    stack_.insert(stack_.end() - static_cast<std::ptrdiff_t>(count), id);
    fill(count);
  }
  // The number of values above the last mark.
  std::size_t marked() {
    if (marks_.empty() || marks_.back() > stack_.size()) {
      bytes_.ok = false;
      return 0;
    }
    const std::size_t count = stack_.size() - marks_.back();
    marks_.pop_back();
    return count;
  }
  void remember(std::uint32_t id) {
    constexpr std::size_t kMaxRemembered = 1U << 22U;
    bytes_.ok &= !stack_.empty() && memo_.size() <= kMaxRemembered;
    if (good()) memo_[id] = stack_.back();
  }
  void recall(std::uint32_t id) {
    const auto found = memo_.find(id);
    bytes_.ok &= found != memo_.end();
    spend(sizeof(NodeId));
    if (good()) stack_.push_back(found->second);
  }
  void long_number() {
    const auto size = take<std::uint8_t>();
    const std::string_view raw = bytes_.get_bytes(size);
    std::int64_t value = 0;
    if (size > sizeof value) bytes_.ok = false;
    if (!good()) return;
    std::memcpy(&value, raw.data(), size);
    if (size > 0 && size < sizeof value && (static_cast<unsigned char>(raw.back()) & 0x80U) != 0) {
      value -= std::int64_t{1} << (8U * size);
    }
    push(value);
  }
  void real_number() {
    std::uint64_t bits = 0;
    for (const char c : bytes_.get_bytes(sizeof bits))
      bits = bits << 8U | static_cast<unsigned char>(c);
    push(std::bit_cast<double>(bits));
  }

  void step();
  bool take_scalar(std::uint8_t code);
  bool take_container(std::uint8_t code);

  static constexpr std::size_t kMaxStack = 1U << 22U;
  static constexpr std::size_t kLeastMemory = 1U << 24U;
  static constexpr std::size_t kMemoryPerByte = 64;
  Bytes bytes_;
  std::size_t size_;
  std::size_t left_;  // of the memory that values may take
  std::vector<Node> nodes_;
  std::vector<NodeId> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, NodeId> memo_;
  bool done_ = false;
};

void PickleReader::step() {
  const auto code = take<std::uint8_t>();
  if (stack_.size() > kMaxStack || marks_.size() > kMaxStack) bytes_.ok = false;
  if (!good() || take_scalar(code) || take_container(code)) return;
  switch (code) {
    case 0x80:  // protocol
      take<std::uint8_t>();
      break;
    case 0x95:  // frame
      take<std::uint64_t>();
      break;
    case 'q':
      remember(take<std::uint8_t>());
      break;
    case 'r':
      remember(take<std::uint32_t>());
      break;
    case 0x94:
      remember(static_cast<std::uint32_t>(memo_.size()));
      break;
    case 'h':
      recall(take<std::uint8_t>());
      break;
    case 'j':
      recall(take<std::uint32_t>());
      break;
    case '.':
      done_ = true;
      break;
    default:
      bytes_.ok = false;
  }
}

// Numbers, texts and constants; false for other opcodes.
bool PickleReader::take_scalar(std::uint8_t code) {
  switch (code) {
    case 'X':
      push(std::string(bytes_.get_bytes(take<std::uint32_t>())));
      return true;
    case 0x8c:
      push(std::string(bytes_.get_bytes(take<std::uint8_t>())));
      return true;
    case 'J':
      push(take<std::int32_t>());
      return true;
    case 'K':
      push(take<std::uint8_t>());
      return true;
    case 'M':
      push(take<std::uint16_t>());
      return true;
    case 0x8a:
      long_number();
      return true;
    case 'G':
      real_number();
      return true;
    case 'N':
      push(nullptr);
      return true;
    case 0x88:
    case 0x89:
      push(code == 0x88);
      return true;
    default:
      return false;
  }
}

// Lists, tuples and dictionaries, and their items; false for other opcodes.
bool PickleReader::take_container(std::uint8_t code) {
  switch (code) {
    case '}':
      push(json::object());
      return true;
    case ']':
    case ')':
      push(json::array());
      return true;
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case 'a':
      fill(1);
      return true;
    case 'e':
      fill(marked());
      return true;
    case 's':
      fill(2);
      return true;
    case 'u':
      fill(marked());
      return true;
    case 't':
      tuple(marked());
      return true;
    case 0x85:
    case 0x86:
    case 0x87:
      tuple(static_cast<std::size_t>(code) - 0x84);
      return true;
    default:
      return false;
  }
}

Result<PickleTree> PickleTree::read(std::string_view bytes) { return PickleReader(bytes).read(); }

PickleTree::NodeId PickleTree::find(NodeId dictionary, std::string_view key) const {
  if (dictionary >= nodes_.size() || !nodes_[dictionary].value.is_object()) return kMissing;
  const auto& children = nodes_[dictionary].children;
  for (std::size_t i = 0; i + 1 < children.size() && i / 2 < kMostKeys; i += 2) {
    if (text(children[i]) == key) return children[i + 1];
  }
  return kMissing;
}

std::span<const PickleTree::NodeId> PickleTree::items(NodeId list) const {
  if (list >= nodes_.size() || !nodes_[list].value.is_array()) return {};
  return nodes_[list].children;
}

std::string_view PickleTree::text(NodeId node) const {
  if (node >= nodes_.size() || !nodes_[node].value.is_string()) return {};
  return nodes_[node].value.get_ref<const std::string&>();
}

std::int64_t PickleTree::whole(NodeId node, std::int64_t fallback) const {
  if (node >= nodes_.size() || !nodes_[node].value.is_number_integer()) return fallback;
  return nodes_[node].value.get<std::int64_t>();
}

// A shared node becomes several values, so few bytes of a pickle can be much memory, and a node
// within itself has no end: both are refused.
nlohmann::json PickleTree::expand(NodeId id, std::uint32_t depth, std::size_t& left) const {
  const Node& node = nodes_[id];
  const bool is_text = node.value.is_string();
  const std::size_t size =
      sizeof(nlohmann::json) + (is_text ? node.value.get_ref<const std::string&>().size() : 0);
  if (size > left || depth > kDeepestJson) {
    left = 0;
    return {};
  }
  left -= size;
  nlohmann::json result = node.value;
  if (result.is_array()) {
    for (const NodeId child : node.children) result.push_back(expand(child, depth + 1, left));
  } else if (result.is_object()) {
    for (std::size_t i = 0; left > 0 && i + 1 < node.children.size(); i += 2) {
      const nlohmann::json key = expand(node.children[i], depth + 1, left);
      result[key.is_string() ? key.get<std::string>() : key.dump()] =
          expand(node.children[i + 1], depth + 1, left);
    }
  }
  return result;
}

Result<nlohmann::json> read_pickle(std::string_view bytes) {
  ASSAY_TRY(const PickleTree tree, PickleTree::read(bytes));
  return tree.expanded();
}

Result<nlohmann::json> PickleTree::expanded() const {
  std::size_t left = left_;
  nlohmann::json value = expand(root_, 0, left);
  if (left == 0) return usage_error("the pickle is too deep or shares too much");
  return value;
}

}  // namespace assay::timeline
