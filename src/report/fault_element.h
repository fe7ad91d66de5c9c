#pragma once

// The element that shows a fault: where it is, both results there, and the inputs. All numbers have
// full precision.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/store.h"
#include "verdict/fault.h"
#include "wire/messages_generated.h"

namespace assay {

// The element that shows a fault, as Python literals.
struct Witness {
  const wire::Comparison* comparison = nullptr;  // nullptr: no comparison shows the fault
  std::size_t place = 0;                         // index among the outputs, or the gradients
  bool element = false;                          // whether the numbers below are known
  std::uint64_t index = 0;
  std::string got;
  std::string right;
  std::string by_reference;
  double apart = 0;  // |got - right|; not finite where one is not
};

// The witness of a fault in this trial.
Witness witness_of(const wire::Trial& trial, const Fault& fault);

// An input tensor, with its values as Python literals.
struct InputValues {
  std::string name;      // "x0", as in the scripts of `assay finding` and `assay repro`
  std::string type;      // "float32[2, 3]"
  std::string position;  // "[1, 2]": its element at the index of the result; empty: it has none
  std::string value;     // of that element
  std::string whole;     // "[1.0, 2.0]", in row-major order; empty: the tensor has many elements
};

struct FaultElement {
  std::string where;     // "result[0]", "gradient of x", "the test lane"
  std::string position;  // "[1, 2]"; empty: no single element shows the fault
  std::uint64_t index = 0;
  std::string got;  // values, shapes or dtypes; empty: unknown
  std::string expected;
  std::string reference;  // what the reference lane gave, if float64 decided what is expected
  std::vector<InputValues> inputs;

  // One line: "x0[1, 2] = 0.5, x1 = [2.0]". Tensors with neither position nor few elements are left
  // out.
  std::string inputs_line() const;
  // Position, results and inputs, a line each. Empty if nothing is known.
  std::string lines() const;
  nlohmann::json json() const;
};

// The element of one fault of a case. `record` is the case's, and has lanes (has_lanes()).
Result<FaultElement> element_of(std::string_view case_text, std::uint64_t id, std::uint64_t seed,
                                const wire::Record& record, const Fault& fault);

// The record of a case, which is valid as long as the case is; nullptr if it has none with lanes.
const wire::Record* record_with_lanes(const FinishedCase& finished);
// Visits the finished cases with these ids whose record has lanes.
Status each_with_lanes(RunReader& run, std::span<const std::uint64_t> ids,
                       const std::function<void(const FinishedCase&, const wire::Record&)>& visit);

}  // namespace assay
