#include "slot/law_leaf.h"

#include <complex>
#include <string>
#include <vector>

#include "measure/law.h"
#include "slot/values.h"

namespace assay {
namespace {

// The numbers of a tensor: both parts of complex ones, one after the other, if `by_parts`.
std::vector<double> numbers_of(const TensorBytes& tensor, bool by_parts) {
  if (!by_parts) return real_values(tensor);
  std::vector<double> parts;
  for (const std::complex<double>& value : complex_values(tensor)) {
    parts.push_back(value.real());
    // A real parameter holds for both parts of a draw.
    parts.push_back(is_complex(tensor.dtype) ? value.imag() : value.real());
  }
  return parts;
}

Result<LawParameter> read_parameter(const wire::Parameter& parameter, const wire::Arena& arena,
                                    bool by_parts) {
  LawParameter read;
  read.number = parameter.number();
  if (!parameter.is_array()) return read;
  if (parameter.dtype() >= kDTypes.size() || !arena.holds(parameter.offset(), parameter.bytes())) {
    return fail("a lane sent a law whose parameter does not lie in its arena");
  }
  const TensorBytes tensor{static_cast<DType>(parameter.dtype()),
                           {arena.data() + parameter.offset(), parameter.bytes()}};
  read.values = numbers_of(tensor, by_parts);
  if (tensor.count() == 1 && !(by_parts && is_complex(tensor.dtype))) {
    read.number = read.values.front();
    read.values.clear();
  }
  return read;
}

}  // namespace

Result<flatbuffers::Offset<wire::LawMeasurement>> measure_law(
    flatbuffers::FlatBufferBuilder& builder, const wire::Leaf& drawn,
    const LaneMemory& drawn_memory, const wire::Leaf& law, const wire::Arena& law_arena) {
  const std::string law_name = law.text() == nullptr ? std::string() : law.text()->str();
  const auto kind = find_law(law_name);
  if (!kind) return fail("a lane sent a law that is not known: " + law_name);
  ASSAY_TRY(Tensor in_lane, Tensor::of(drawn, drawn_memory));
  ASSAY_TRY(const TensorBytes tensor, in_lane.bytes());
  // The parts of a complex draw are two draws; of what is kept or dropped whole the real part
  // tells.
  const bool by_parts = is_complex(tensor.dtype) && has_distribution(*kind);
  const std::vector<double> drawn_values = numbers_of(tensor, by_parts);
  std::vector<LawParameter> parameters;
  const std::size_t given = law.parameters() == nullptr ? 0 : law.parameters()->size();
  for (std::size_t i = 0; i < given; ++i) {
    const wire::Parameter* parameter =
        law.parameters()->Get(static_cast<flatbuffers::uoffset_t>(i));
    ASSAY_TRY(LawParameter read, read_parameter(*parameter, law_arena, by_parts));
    parameters.push_back(std::move(read));
  }
  if (const std::string fault = parameter_fault(*kind, parameters, drawn_values.size());
      !fault.empty()) {
    return fail("a lane sent a law that cannot be: " + law_name + ": " + fault);
  }
  const LawMeasurement measured =
      measure_law(*kind, drawn_values, parameters, resolution_of(tensor.dtype));
  const bool holds = law_holds(measured);
  return wire::CreateLawMeasurement(builder, builder.CreateString(law_name), measured.count, holds,
                                    builder.CreateString(holds ? "" : describe(*kind, measured)));
}

}  // namespace assay
