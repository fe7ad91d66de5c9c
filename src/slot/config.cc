#include "slot/config.h"

namespace assay {

wire::Bytes begin_message(const SlotConfig& config) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::LaneSpec>> lanes;
  lanes.reserve(config.lanes.size());
  for (const wire::LaneSpecT& lane : config.lanes) {
    lanes.push_back(wire::LaneSpec::Pack(builder, &lane));
  }
  const auto lane_vector = builder.CreateVector(lanes);
  const auto settings = wire::CaseSettings::Pack(builder, &config.settings);
  const auto log_dir = builder.CreateString(config.log_dir);
  const auto begin =
      wire::CreateBegin(builder, config.index, lane_vector, settings, log_dir, config.slots);
  builder.Finish(
      wire::CreateToSlot(builder, wire::kMessageVersion, wire::ToSlotBody::Begin, begin.Union()));
  const auto bytes = wire::bytes_of(builder);
  return {bytes.begin(), bytes.end()};
}

Result<SlotConfig> read_begin(const wire::Bytes& message) {
  ASSAY_TRY(const wire::ToSlot* root, wire::open<wire::ToSlot>(message));
  const wire::Begin* begin = root->body_as_Begin();
  if (begin == nullptr || begin->lanes() == nullptr || begin->lanes()->size() == 0 ||
      begin->settings() == nullptr) {
    return fail("slot: the supervisor did not begin with lanes and settings");
  }
  SlotConfig config;
  config.index = begin->slot();
  for (const wire::LaneSpec* lane : *begin->lanes()) lane->UnPackTo(&config.lanes.emplace_back());
  begin->settings()->UnPackTo(&config.settings);
  if (begin->log_dir() != nullptr) config.log_dir = begin->log_dir()->str();
  config.slots = begin->slots();
  return config;
}

}  // namespace assay
