#include "slot/law_leaf.h"

#include <string>

#include "measure/law.h"
#include "slot/values.h"

namespace assay {
namespace {

Result<LawParameter> read_parameter(const wire::Parameter& parameter, const wire::Arena& arena,
                                    std::size_t count) {
  LawParameter read;
  read.number = parameter.number();
  if (!parameter.is_array()) return read;
  if (parameter.dtype() >= kDTypes.size() || !arena.holds(parameter.offset(), parameter.bytes())) {
    return fail("a lane sent a law whose parameter does not lie in its arena");
  }
  const TensorBytes tensor{static_cast<DType>(parameter.dtype()),
                           {arena.data() + parameter.offset(), parameter.bytes()}};
  read.values = real_values(tensor);
  if (read.values.size() == 1) {
    read.number = read.values.front();
    read.values.clear();
  } else if (read.values.size() != count) {
    return fail("a lane sent a law with a parameter of another size than its result");
  }
  return read;
}

}  // namespace

Result<flatbuffers::Offset<wire::LawMeasurement>> measure_law(
    flatbuffers::FlatBufferBuilder& builder, const wire::Leaf& drawn,
    const wire::Arena& drawn_arena, const wire::Leaf& law, const wire::Arena& law_arena,
    ResultRole role) {
  const std::string law_name = law.text() == nullptr ? std::string() : law.text()->str();
  const auto kind = find_law(law_name);
  const std::size_t given = law.parameters() == nullptr ? 0 : law.parameters()->size();
  if (!kind || parameter_count(*kind) != given) {
    return fail("a lane sent a law that is not known, or lacks parameters: " + law_name);
  }
  ASSAY_TRY(const TensorBytes tensor, tensor_bytes(drawn, drawn_arena));
  std::vector<LawParameter> parameters;
  for (std::size_t i = 0; i < given; ++i) {
    const wire::Parameter* parameter =
        law.parameters()->Get(static_cast<flatbuffers::uoffset_t>(i));
    ASSAY_TRY(LawParameter read, read_parameter(*parameter, law_arena, tensor.count()));
    parameters.push_back(std::move(read));
  }
  const LawMeasurement measured =
      measure_law(*kind, real_values(tensor), parameters, resolution_of(tensor.dtype));
  const bool all_kept = role == ResultRole::gradient && measured.all_kept && measured.outside == 0;
  const bool holds = law_holds(measured) || all_kept;
  return wire::CreateLawMeasurement(builder, builder.CreateString(law_name), measured.count, holds,
                                    builder.CreateString(holds ? "" : describe(*kind, measured)));
}

}  // namespace assay
