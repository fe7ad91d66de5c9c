#include "timeline/input/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "base/json.h"

namespace assay::timeline {
namespace {

using nlohmann::json;

class Reader {
 public:
  explicit Reader(std::string_view bytes)
      : bytes_(bytes), left_(kLeastMemory + kMemoryPerByte * bytes.size()) {}

  Result<json> read() {
    while (good_ && !done_) step();
    if (!good_ || stack_.size() != 1) {
      return usage_error(fmt::format("unsupported or damaged pickle at byte {}", at_));
    }
    return std::move(stack_.back());
  }

 private:
  // Little-endian.
  template <typename T>
  T take() {
    T value{};
    const std::string_view raw = take_bytes(sizeof value);
    if (good_) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  std::string_view take_bytes(std::size_t count) {
    if (bytes_.size() - at_ < count) {
      good_ = false;
      return {};
    }
    const std::string_view part = bytes_.substr(at_, count);
    at_ += count;
    return part;
  }
  void push(json value, std::uint32_t depth = 0) {
    const std::size_t text = value.is_string() ? value.get_ref<const std::string&>().size() : 0;
    spend(sizeof(json) + text);
    stack_.push_back(std::move(value));
    depths_.push_back(depth);
  }
  // A recalled text is a copy, so few bytes of a pickle can be much memory.
  void spend(std::size_t bytes) {
    good_ &= bytes <= left_;
    left_ -= std::min(bytes, left_);
  }
  // Takes the values above `size` off the stack; they are now in a container of this depth.
  std::uint32_t shrink(std::size_t size) {
    std::uint32_t depth = 0;
    for (std::size_t i = size; i < depths_.size(); ++i) depth = std::max(depth, depths_[i] + 1);
    good_ &= depth <= kDeepestJson;
    stack_.resize(size);
    depths_.resize(size);
    return depth;
  }
  // The uppermost `count` values have moved into the one below them.
  void contain(std::size_t count) {
    const std::uint32_t depth = shrink(stack_.size() - count);
    depths_.back() = std::max(depths_.back(), depth);
  }
  void tuple(std::size_t count) {
    if (stack_.size() < count) {
      good_ = false;
      return;
    }
    json array = json::array();
    for (std::size_t i = stack_.size() - count; i < stack_.size(); ++i) {
      array.push_back(std::move(stack_[i]));
    }
    const std::uint32_t depth = shrink(stack_.size() - count);
    push(std::move(array), depth);
  }
  // The number of values above the last mark.
  std::size_t marked() {
    if (marks_.empty() || marks_.back() > stack_.size()) {
      good_ = false;
      return 0;
    }
    const std::size_t count = stack_.size() - marks_.back();
    marks_.pop_back();
    return count;
  }
  void append(std::size_t count) {
    if (stack_.size() < count + 1) {
      good_ = false;
      return;
    }
    json& list = stack_[stack_.size() - count - 1];
    if (!list.is_array()) {
      good_ = false;
      return;
    }
    for (std::size_t i = stack_.size() - count; i < stack_.size(); ++i) {
      list.push_back(std::move(stack_[i]));
    }
    contain(count);
  }
  void set_items(std::size_t count) {
    if (stack_.size() < count + 1 || count % 2 != 0 ||
        !stack_[stack_.size() - count - 1].is_object()) {
      good_ = false;
      return;
    }
    json& object = stack_[stack_.size() - count - 1];
    for (std::size_t i = stack_.size() - count; i < stack_.size(); i += 2) {
      const json& key = stack_[i];
      object[key.is_string() ? key.get<std::string>() : key.dump()] = std::move(stack_[i + 1]);
    }
    contain(count);
  }
  void remember(std::uint32_t id) {
    constexpr std::size_t kMaxRemembered = 1U << 22U;
    if (stack_.empty() || memo_.size() > kMaxRemembered) {
      good_ = false;
      return;
    }
    // Containers are memoized while still empty, so only other values can be recalled.
    const json& top = stack_.back();
    spend(sizeof(json) + (top.is_string() ? top.get_ref<const std::string&>().size() : 0));
    memo_[id] = top.is_structured() ? (top.is_array() ? json::array() : json::object()) : top;
  }
  void recall(std::uint32_t id) {
    const auto found = memo_.find(id);
    good_ &= found != memo_.end();
    if (good_) push(found->second);
  }
  void long_number() {
    const auto size = take<std::uint8_t>();
    const std::string_view raw = take_bytes(size);
    std::int64_t value = 0;
    if (size > sizeof value) good_ = false;
    if (!good_) return;
    std::memcpy(&value, raw.data(), size);
    if (size > 0 && size < sizeof value && (static_cast<unsigned char>(raw.back()) & 0x80U) != 0) {
      value -= std::int64_t{1} << (8U * size);
    }
    push(value);
  }
  void real_number() {
    std::uint64_t bits = 0;
    for (const char c : take_bytes(sizeof bits)) bits = bits << 8U | static_cast<unsigned char>(c);
    push(std::bit_cast<double>(bits));
  }

  void step();
  bool take_scalar(std::uint8_t code);
  bool take_container(std::uint8_t code);

  static constexpr std::size_t kMaxStack = 1U << 22U;
  static constexpr std::size_t kLeastMemory = 1U << 24U;
  static constexpr std::size_t kMemoryPerByte = 64;
  std::string_view bytes_;
  std::size_t at_ = 0;
  std::size_t left_;  // of the memory that values may take
  std::vector<json> stack_;
  std::vector<std::uint32_t> depths_;  // of the values on the stack; 0: it holds no other
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, json> memo_;
  bool good_ = true;
  bool done_ = false;
};

void Reader::step() {
  const auto code = take<std::uint8_t>();
  if (stack_.size() > kMaxStack || marks_.size() > kMaxStack) good_ = false;
  if (!good_ || take_scalar(code) || take_container(code)) return;
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
      good_ = false;
  }
}

// Numbers, texts and constants; false for other opcodes.
bool Reader::take_scalar(std::uint8_t code) {
  switch (code) {
    case 'X':
      push(std::string(take_bytes(take<std::uint32_t>())));
      return true;
    case 0x8c:
      push(std::string(take_bytes(take<std::uint8_t>())));
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
bool Reader::take_container(std::uint8_t code) {
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
      append(1);
      return true;
    case 'e':
      append(marked());
      return true;
    case 's':
      set_items(2);
      return true;
    case 'u':
      set_items(marked());
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

}  // namespace

Result<json> read_pickle(std::string_view bytes) { return Reader(bytes).read(); }

}  // namespace assay::timeline
