#pragma once

// Leaves as a lane sends them, and the arena that holds them.

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "case/dtype.h"
#include "slot/batch.h"
#include "slot/compare.h"
#include "wire/arena.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

namespace assay::testing {

class Lane {
 public:
  Lane() {
    auto created = wire::Arena::create();
    if (!created) throw std::runtime_error(created.error().message);
    arena_ = std::move(*created);
  }

  template <typename T>
  Lane& tensor(const std::string& path, DType dtype, const std::vector<std::int64_t>& shape,
               const std::vector<T>& elements, wire::Equality equality = wire::Equality::value) {
    const std::size_t bytes = elements.size() * sizeof(T);
    const std::uint64_t offset = *arena_.reserve(bytes);
    std::memcpy(arena_.data() + offset, elements.data(), bytes);
    return tensor_at(path, dtype, shape, offset, bytes, equality);
  }

  Lane& tensor_at(const std::string& path, DType dtype, const std::vector<std::int64_t>& shape,
                  std::uint64_t offset, std::uint64_t bytes,
                  wire::Equality equality = wire::Equality::value) {
    leaves_.push_back(wire::CreateLeafDirect(builder_, path.c_str(), wire::LeafKind::tensor,
                                             static_cast<std::uint8_t>(dtype), &shape, offset,
                                             bytes, 0, 0, 0, nullptr, nullptr, equality));
    return *this;
  }

  // A leaf that only a broken lane sends.
  Lane& without_shape(wire::LeafKind kind) {
    leaves_.push_back(wire::CreateLeafDirect(builder_, nullptr, kind));
    return *this;
  }

  Lane& scalar(const std::string& path, wire::LeafKind kind, double number = 0,
               std::int64_t integer = 0, const std::string& text = "") {
    leaves_.push_back(wire::CreateLeafDirect(builder_, path.c_str(), kind, 0, nullptr, 0, 0, number,
                                             0, integer, text.c_str()));
    return *this;
  }

  // A distribution for a result of this dtype and shape; arrays of double stand for its parameters.
  Lane& distribution(const std::string& name, DType dtype, const std::vector<std::int64_t>& shape,
                     const std::vector<std::vector<double>>& arrays,
                     const std::vector<double>& numbers) {
    std::vector<flatbuffers::Offset<wire::Parameter>> parameters;
    for (const std::vector<double>& array : arrays) {
      const std::size_t bytes = array.size() * sizeof(double);
      const std::uint64_t offset = *arena_.reserve(bytes);
      std::memcpy(arena_.data() + offset, array.data(), bytes);
      parameters.push_back(wire::CreateParameter(
          builder_, 0, static_cast<std::uint8_t>(DType::float64), offset, bytes, true));
    }
    for (const double number : numbers) {
      parameters.push_back(wire::CreateParameter(builder_, number));
    }
    leaves_.push_back(wire::CreateLeafDirect(builder_, "", wire::LeafKind::distribution,
                                             static_cast<std::uint8_t>(dtype), &shape, 0, 0, 0, 0,
                                             0, name.c_str(), &parameters));
    return *this;
  }

  // A tensor in this process's own memory, read block by block.
  template <typename T>
  Lane& lent(const std::string& path, DType dtype, const std::vector<T>& elements,
             double scale_floor = 0) {
    const std::vector<std::int64_t> shape{static_cast<std::int64_t>(elements.size())};
    leaves_.push_back(wire::CreateLeafDirect(
        builder_, path.c_str(), wire::LeafKind::tensor, static_cast<std::uint8_t>(dtype), &shape,
        reinterpret_cast<std::uintptr_t>(elements.data()), elements.size() * sizeof(T), 0, 0, 0,
        nullptr, nullptr, wire::Equality::value, /*lent=*/true, nullptr, 1, scale_floor));
    read_lent_ = [this](std::uint64_t address, std::span<std::byte> to) {
      if (gone) return Status(fail("the lane is gone"));
      std::memcpy(to.data(), reinterpret_cast<const void*>(address), to.size());
      return Status();
    };
    return *this;
  }
  bool gone = false;

  // How a job ended that has these leaves as results. It lives no longer than this. Call it once,
  // after the last leaf.
  LaneResult ending() {
    LaneResult ending;
    results();
    ending.reply = flatbuffers::GetRoot<wire::Reply>(bytes_.data());
    ending.arena = {std::shared_ptr<void>(), &arena_};
    return ending;
  }

  // Call it once, after the last leaf.
  Results results() {
    const auto leaves = builder_.CreateVector(leaves_);
    wire::ReplyBuilder reply(builder_);
    reply.add_outputs(leaves);
    builder_.Finish(reply.Finish());
    bytes_ = {wire::bytes_of(builder_).begin(), wire::bytes_of(builder_).end()};
    return {flatbuffers::GetRoot<wire::Reply>(bytes_.data())->outputs(), {&arena_, read_lent_}};
  }

 private:
  wire::Arena arena_;
  flatbuffers::FlatBufferBuilder builder_;
  std::vector<flatbuffers::Offset<wire::Leaf>> leaves_;
  wire::Bytes bytes_;
  ReadLent read_lent_;
};

}  // namespace assay::testing
