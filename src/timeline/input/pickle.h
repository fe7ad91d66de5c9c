#pragma once

// Reads the numbers, texts, lists, tuples and dictionaries of a Python pickle. Never calls
// anything: refuses a pickle that names a function or a class.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::timeline {

// The values of a pickle. A value that the pickle refers to many times is one node, so a large dump
// needs little memory. A node may contain itself: do not descend without a limit.
class PickleTree {
 public:
  using NodeId = std::uint32_t;
  static constexpr NodeId kMissing = 0xffffffff;
  static constexpr std::size_t kMostKeys = 64;

  static Result<PickleTree> read(std::string_view bytes);

  NodeId root() const { return root_; }
  // The value of a dictionary; kMissing without such a key among the first 64, or for another node.
  NodeId find(NodeId dictionary, std::string_view key) const;
  // Of a list or tuple; empty for another node.
  std::span<const NodeId> items(NodeId list) const;
  // Empty, or `fallback`, for another node.
  std::string_view text(NodeId node) const;
  std::int64_t whole(NodeId node, std::int64_t fallback) const;
  // The node with all that it contains.
  Result<nlohmann::json> expanded() const;

 private:
  friend class PickleReader;
  struct Node {
    nlohmann::json value;          // of a container: an empty one of its kind
    std::vector<NodeId> children;  // of a dictionary: keys and values in turn
  };
  nlohmann::json expand(NodeId id, std::uint32_t depth, std::size_t& left) const;

  std::vector<Node> nodes_;
  NodeId root_ = kMissing;
  std::size_t left_ = 0;  // of the memory that values may take
};

// Tuples become arrays and dictionary keys become texts.
Result<nlohmann::json> read_pickle(std::string_view bytes);

}  // namespace assay::timeline
