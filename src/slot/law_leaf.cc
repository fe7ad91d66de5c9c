#include "slot/law_leaf.h"

namespace assay {

Result<flatbuffers::Offset<wire::LawMeasurement>> measure_law(
    flatbuffers::FlatBufferBuilder& builder, const wire::Leaf&, const wire::Arena&, const wire::Leaf&,
    const wire::Arena&, ResultRole) {
  return wire::CreateLawMeasurement(builder, builder.CreateString("x"), 0, true,
                                    builder.CreateString("temporary"));
}

}  // namespace assay
