#include "store/fault_text.h"

#include <fmt/format.h>

#include <iterator>

#include "base/values.h"
#include "store/sum_lines.h"

namespace assay {
namespace {

// Flags in the third field.
constexpr std::int64_t kOfGradient = 1;
constexpr std::int64_t kSpecial = 2;
constexpr std::int64_t kByTruth = 4;

Result<Fault> parse_fault(std::string_view line) {
  LineFields fields(line);
  Fault fault;
  const auto outcome = find_outcome(fields.next());
  fault.values = fields.next();
  const std::int64_t bits = fields.number();
  fault.gradient = (bits & kOfGradient) != 0;
  fault.special = (bits & kSpecial) != 0;
  fault.by_truth = (bits & kByTruth) != 0;
  fault.kinds = static_cast<std::uint8_t>(fields.number());
  fault.leaf = fields.next();
  fault.dtype = fields.next();
  read_number(fields.next(), fault.error);
  fault.lane = fields.next();
  fault.phase = fields.next();
  fault.raised = fields.next();
  fault.message = fields.next();
  if (!outcome || !fields.good()) {
    return fail(fmt::format("the stored faults of a case are damaged: “{}”", line.substr(0, 80)));
  }
  fault.outcome = *outcome;
  return fault;
}

}  // namespace

std::string faults_text(std::span<const Fault> faults) {
  std::string text;
  for (const Fault& fault : faults) {
    const std::int64_t bits = (fault.gradient ? kOfGradient : 0) + (fault.special ? kSpecial : 0) +
                              (fault.by_truth ? kByTruth : 0);
    fmt::format_to(std::back_inserter(text), "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n",
                   name(fault.outcome), as_field(fault.values), bits, fault.kinds,
                   as_field(fault.leaf), fault.dtype, fault.error, as_field(fault.lane),
                   as_field(fault.phase), as_field(fault.raised), as_field(fault.message));
  }
  return text;
}

Result<std::vector<Fault>> parse_faults(std::string_view text) {
  std::vector<Fault> faults;
  ASSAY_CHECK(each_line(text, [&](std::string_view line) -> Status {
    ASSAY_TRY(Fault fault, parse_fault(line));
    faults.push_back(std::move(fault));
    return {};
  }));
  return faults;
}

}  // namespace assay
