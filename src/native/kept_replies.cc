#include "native/kept_replies.h"

#include <iterator>
#include <utility>

#include "wire/messages_generated.h"

namespace assay::native {

void KeptReplies::keep(std::span<const std::uint8_t> message,
                       std::vector<const std::uint64_t*> checksums) {
  kept_.push_back({wire::Bytes(message.begin(), message.end()), std::move(checksums)});
}

Status KeptReplies::send(Channel& channel) {
  marked_ = kept_.size();
  return send_marked(channel);
}

Status KeptReplies::send_marked(Channel& channel) {
  const auto end = kept_.begin() + static_cast<std::ptrdiff_t>(marked_);
  for (auto kept = kept_.begin(); kept != end; ++kept) {
    auto* const inputs =
        flatbuffers::GetMutableRoot<wire::Reply>(kept->message.data())->mutable_inputs();
    for (flatbuffers::uoffset_t i = 0; i < kept->checksums.size(); ++i) {
      if (kept->checksums[i] == nullptr) continue;
      inputs->GetMutableObject(i)->mutate_checksum(*kept->checksums[i]);
    }
    ASSAY_CHECK(channel.reply(kept->message, std::next(kept) != end));
  }
  kept_.erase(kept_.begin(), end);
  marked_ = 0;
  return {};
}

}  // namespace assay::native
