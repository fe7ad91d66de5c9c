#include "verdict/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "case/dtype.h"
#include "measure/measure.h"

namespace assay {
namespace {

// NaN is printed without its sign, which has no meaning.
std::string number(double value, int digits = 9) {
  return std::isnan(value) ? "nan" : fmt::format("{:.{}g}", value, digits);
}

std::string shape_text(const flatbuffers::Vector<std::int64_t>* shape) {
  std::string joined;
  for (std::size_t i = 0; shape != nullptr && i < shape->size(); ++i) {
    joined +=
        fmt::format("{}{}", i == 0 ? "" : ", ", shape->Get(static_cast<flatbuffers::uoffset_t>(i)));
  }
  return "[" + joined + "]";
}

std::string side_of_bar(const wire::Distance& side) {
  if (side.specials() > 0)
    return fmt::format("{} elements not finite as they should be", side.specials());
  return fmt::format("{} ulps off, {} times what rounding can do", number(side.ulps(), 3),
                     number(side.errors(), 3));
}

}  // namespace

std::string text(const flatbuffers::String* string) {
  return string == nullptr ? std::string() : string->str();
}

std::string lane_message(const wire::LaneRecord& lane) {
  const std::string phase = text(lane.phase());
  std::string error = text(lane.error());
  std::replace(error.begin(), error.end(), '\n', ' ');
  return phase.empty() || phase == "forward" ? error : fmt::format("in {}: {}", phase, error);
}

std::string side_text(const wire::Side* side) {
  if (side == nullptr || side->missing()) return "nothing";
  if (side->kind() == wire::LeafKind::tensor || side->kind() == wire::LeafKind::law) {
    const auto dtype = static_cast<DType>(side->dtype());
    return fmt::format("{}{}", name(dtype), shape_text(side->shape()));
  }
  return fmt::format("{} {}", wire::EnumNameLeafKind(side->kind()), text(side->text()));
}

std::string bar_text(const wire::Bar& bar, const wire::Measurement& measured) {
  return fmt::format(
      "{} of {} elements differ; at element {}: {} where {} is right "
      "({} by the reference): {}; the reference {}",
      measured.count() - measured.bit_equal(), measured.count(),
      bar.test()->index() == kNoIndex ? bar.reference()->index() : bar.test()->index(),
      number(bar.test_value()), number(bar.true_value()), number(bar.reference_value()),
      side_of_bar(*bar.test()), side_of_bar(*bar.reference()));
}

std::string difference_text(const wire::Measurement& measured, bool same_wanted) {
  const wire::Offender* worst = measured.first() != nullptr ? measured.first() : measured.worst();
  std::string where;
  if (worst != nullptr) {
    where = fmt::format("; first at element {}: {} against {}", worst->index(),
                        number(worst->left()), number(worst->right()));
  }
  return fmt::format("{} of {} elements differ, by up to {} (relative {}){}",
                     same_wanted ? measured.count() - measured.bit_equal() : measured.beyond(),
                     measured.count(), number(measured.max_abs(), 3), number(measured.max_rel(), 3),
                     where);
}

}  // namespace assay
