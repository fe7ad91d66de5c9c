#include "verdict/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "case/dtype.h"
#include "measure/measure.h"

namespace assay {
namespace {

constexpr double kIntegersEnd = 18446744073709551616.0;  // 2^64

// A size of an error, which needs no more digits. The sign of a NaN says nothing.
std::string number(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{:.3g}", value);
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
  if (side.specials() > 0) {
    return fmt::format("NaN or infinity is wrong or missing in {}",
                       count_of(side.specials(), "element"));
  }
  if (side.ulps() == 0 && side.errors() == 0) return "exact";
  return fmt::format("{} ulps off, {} times what rounding can do", number(side.ulps()),
                     number(side.errors()));
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
  if (side->kind() == wire::LeafKind::tensor || side->kind() == wire::LeafKind::distribution) {
    const auto dtype = static_cast<DType>(side->dtype());
    return fmt::format("{}{}", name(dtype), shape_text(side->shape()));
  }
  return fmt::format("{} {}", wire::EnumNameLeafKind(side->kind()), text(side->text()));
}

std::string element_text(DType dtype, double value, double second) {
  const auto real = [&](double part) {
    if (std::isnan(part)) return std::string("nan");  // its sign says nothing
    return size_of(dtype) < (info(dtype).kind == DTypeClass::complex ? 16U : 8U)
               ? fmt::format("{}", static_cast<float>(part))
               : fmt::format("{}", part);
  };
  switch (info(dtype).kind) {
    case DTypeClass::boolean:
      return value != 0 ? "True" : "False";
    case DTypeClass::integer:
      if (!(std::abs(value) < kIntegersEnd && std::abs(second) < kIntegersEnd)) return real(value);
      return fmt::format("{}", static_cast<__int128>(value) + static_cast<__int128>(second));
    case DTypeClass::floating:
      return real(value);
    case DTypeClass::complex:
      return fmt::format("{}{}{}j", real(value),
                         std::signbit(second) && !std::isnan(second) ? "" : "+", real(second));
  }
  return real(value);
}

std::string bar_text(const wire::Comparison& comparison) {
  const wire::Bar& bar = *comparison.bar();
  const wire::Measurement& measured = *comparison.measurement();
  const auto dtype = static_cast<DType>(comparison.left()->dtype());
  const bool exact =
      info(dtype).kind == DTypeClass::integer || info(dtype).kind == DTypeClass::boolean;
  const bool whole = exact && std::trunc(bar.true_value()) == bar.true_value();
  std::string text = fmt::format(
      "{} of {} elements differ; at element {}: {} where {} is right ({} by the reference)",
      measured.count() - measured.bit_equal(), measured.count(),
      bar.test()->index() == kNoIndex ? bar.reference()->index() : bar.test()->index(),
      element_text(dtype, bar.test_value()),
      element_text(whole ? dtype : DType::float64, bar.true_value()),
      element_text(dtype, bar.reference_value()));
  if (exact) return text;  // no distance is allowed
  return fmt::format("{}: {}; the reference: {}", text, side_of_bar(*bar.test()),
                     side_of_bar(*bar.reference()));
}

std::string difference_text(const wire::Comparison& comparison, bool same_wanted) {
  const wire::Measurement& measured = *comparison.measurement();
  const wire::Offender* worst = measured.first() != nullptr ? measured.first() : measured.worst();
  std::string where;
  if (worst != nullptr) {
    const auto text_of = [](const wire::Side& side, double value, double second) {
      return element_text(static_cast<DType>(side.dtype()), value, second);
    };
    where = fmt::format("; first at element {}: {} against {}", worst->index(),
                        text_of(*comparison.left(), worst->left(), worst->left_imaginary()),
                        text_of(*comparison.right(), worst->right(), worst->right_imaginary()));
  }
  const std::uint64_t differ =
      same_wanted ? measured.count() - measured.bit_equal() : measured.beyond();
  if (worst == nullptr && measured.max_abs() == 0) {
    return fmt::format("{} of {} elements are zeros of the other sign", differ, measured.count());
  }
  return fmt::format("{} of {} elements differ, by up to {} (relative {}){}", differ,
                     measured.count(), number(measured.max_abs()), number(measured.max_rel()),
                     where);
}

}  // namespace assay
