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

std::uint64_t recording::checksum(std::string_view payload) {
  return XXH64(payload.data(), payload.size(), 0);
}

std::string RecordingEncoder::header(std::uint32_t pid, std::string_view host) {
  std::string out(recording::kMagic);
  put(out, recording::kVersion);
  put(out, pid);
  out += host.substr(0, recording::kHostBytes);
  out.resize(recording::kHeaderBytes);
  return out;
}

std::uint32_t RecordingEncoder::name_id(std::string_view name) {
  constexpr std::size_t kLongestName = 4096;  // names of kernel templates can be very long
  name = name.substr(0, kLongestName);
  const auto known = names_.find(name);
  if (known != names_.end()) return known->second;
  const auto id = static_cast<std::uint32_t>(names_.size());
  names_.emplace(name, id);
  std::string rest;
  put(rest, id);
  rest += name;
  put_record(payload_, recording::What::name, rest);
  return id;
}

void RecordingEncoder::add(const RecordedSlice& slice) {
  const std::uint32_t name = name_id(slice.name);
  std::string& rest = scratch_;
  rest.clear();
  put(rest, name);
  put(rest, static_cast<std::uint8_t>(slice.kind));
  put(rest, static_cast<std::uint8_t>((slice.gpu ? 1 : 0) | (slice.job ? 2 : 0)));
  put(rest, slice.device);
  put(rest, slice.lane);
  put(rest, slice.begin);
  put(rest, slice.end);
  put(rest, slice.micro_batch);
  put(rest, slice.id);
  if (!slice.gpu) put(rest, slice.parent);
  put_record(payload_, recording::What::slice, rest);
}

void RecordingEncoder::add_step(const Step& step, std::uint64_t id) {
  std::string rest;
  put(rest, step.number);
  put(rest, step.begin);
  put(rest, step.end);
  put(rest, id);
  put_record(payload_, recording::What::step, rest);
}

void RecordingEncoder::add_launches(std::uint64_t id, std::span<const std::uint32_t> correlations) {
  std::string rest;
  put(rest, id);
  for (const std::uint32_t correlation : correlations) put(rest, correlation);
  put_record(payload_, recording::What::launches, rest);
}

void RecordingEncoder::add_note(std::string_view text) {
  constexpr std::size_t kMaxNote = 1024;
  put_record(payload_, recording::What::note, text.substr(0, kMaxNote));
}

void RecordingEncoder::add_lost(std::uint64_t records) {
  std::string rest;
  put(rest, records);
  put_record(payload_, recording::What::lost, rest);
}

void RecordingEncoder::add_identity(std::int32_t rank, std::int32_t world_size) {
  std::string rest;
  put(rest, rank);
  put(rest, world_size);
  put_record(payload_, recording::What::identity, rest);
}

void RecordingEncoder::add_collective(std::int64_t sequence, Nanos launched, bool ended,
                                      std::string_view name) {
  constexpr std::size_t kLongestName = 4096;
  std::string rest;
  put(rest, sequence);
  put(rest, launched);
  put(rest, static_cast<std::uint8_t>(ended ? 1 : 0));
  rest += name.substr(0, kLongestName);
  put_record(payload_, recording::What::collective, rest);
}

std::string RecordingEncoder::take_block() {
  std::string block;
  put(block, recording::kBlockMagic);
  put(block, static_cast<std::uint32_t>(payload_.size()));
  put(block, recording::checksum(payload_));
  block += payload_;
  payload_.clear();
  names_.clear();
  return block;
}

}  // namespace assay::timeline
