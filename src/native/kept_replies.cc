#include "native/kept_replies.h"

#include <utility>

#include "wire/messages_generated.h"

namespace assay::native {

void KeptReplies::keep(std::span<const std::uint8_t> message,
                       std::vector<const std::uint64_t*> checksums) {
  kept_.push_back({wire::Bytes(message.begin(), message.end()), std::move(checksums)});
}

Status KeptReplies::send(Channel& channel) {
  for (Kept& kept : kept_) {
    auto* const inputs =
        flatbuffers::GetMutableRoot<wire::Reply>(kept.message.data())->mutable_inputs();
    for (flatbuffers::uoffset_t i = 0; i < kept.checksums.size(); ++i) {
      if (kept.checksums[i] == nullptr) continue;
      inputs->GetMutableObject(i)->mutate_checksum(*kept.checksums[i]);
    }
    ASSAY_CHECK(channel.reply(kept.message));
  }
  kept_.clear();
  return {};
}

}  // namespace assay::native
