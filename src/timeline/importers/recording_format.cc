#include "timeline/importers/recording_format.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace assay::timeline {
namespace {

template <typename T>
void put(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

void put_record(std::string& out, recording::What what, std::string_view rest) {
  put(out, static_cast<std::uint8_t>(what));
  put(out, static_cast<std::uint16_t>(rest.size()));
  out += rest;
}

}  // namespace

std::string RecordingEncoder::header(std::uint32_t pid, std::string_view host) {
  std::string out(recording::kMagic);
  put(out, recording::kVersion);
  put(out, pid);
  out += host.substr(0, recording::kHostBytes);
  out.resize(recording::kHeaderBytes);
  return out;
}

std::uint32_t RecordingEncoder::name_id(std::string_view name) {
  constexpr std::size_t kMaxName = 4096;  // templates of kernels grow long
  name = name.substr(0, kMaxName);
  const auto [entry, is_new] = names_.try_emplace(std::string(name), names_.size());
  if (is_new) {
    std::string rest;
    put(rest, entry->second);
    rest += name;
    put_record(payload_, recording::What::name, rest);
  }
  return entry->second;
}

void RecordingEncoder::add(const RecordedSlice& slice) {
  const std::uint32_t name = name_id(slice.name);
  std::string rest;
  put(rest, name);
  put(rest, static_cast<std::uint8_t>(slice.kind));
  put(rest, static_cast<std::uint8_t>((slice.gpu ? 1 : 0) | (slice.job ? 2 : 0)));
  put(rest, slice.device);
  put(rest, slice.lane);
  put(rest, slice.begin);
  put(rest, slice.end);
  put(rest, slice.micro_batch);
  put_record(payload_, recording::What::slice, rest);
}

void RecordingEncoder::add_step(const Step& step) {
  std::string rest;
  put(rest, step.number);
  put(rest, step.begin);
  put(rest, step.end);
  put_record(payload_, recording::What::step, rest);
}

void RecordingEncoder::add_lost(std::uint64_t records) {
  std::string rest;
  put(rest, records);
  put_record(payload_, recording::What::lost, rest);
}

std::string RecordingEncoder::take_block() {
  std::string block;
  put(block, recording::kBlockMagic);
  put(block, static_cast<std::uint32_t>(payload_.size()));
  put(block, static_cast<std::uint64_t>(XXH64(payload_.data(), payload_.size(), 0)));
  block += payload_;
  payload_.clear();
  names_.clear();
  return block;
}

}  // namespace assay::timeline
