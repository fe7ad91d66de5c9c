// python/assay/shared.py has the constants that Python and C++ share, generated from C++.
//
//   ASSAY_WRITE=1 slot_test --gtest_filter=SharedConstants.*   writes it anew

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "case/dtype.h"
#include "device/device.h"
#include "fill/fill.h"
#include "lane/message.h"
#include "measure/bar.h"
#include "wire/arena.h"
#include "wire/messages_generated.h"
#include "wire/settings.h"
#include "wire/shared.h"

namespace assay {
namespace {

const std::string kFile = std::string(ASSAY_SOURCE_DIR) + "/python/assay/shared.py";

constexpr std::string_view kHead =
    "\"\"\"Constants that Python and C++ share, generated from C++: do not edit.\n"
    "\n"
    "tests/slot/shared_constants_test.cc writes this file, and fails where it is not up to date.\n"
    "\"\"\"\n";

std::string upper(std::string text) {
  for (char& each : text) each = static_cast<char>(std::toupper(static_cast<unsigned char>(each)));
  return text;
}

template <typename Range, typename Name>
std::string enumerators(const Range& values, const std::string& prefix, const Name& name) {
  std::string lines;
  for (const auto value : values) {
    lines += fmt::format("{}{} = {}\n", prefix, upper(name(value)), static_cast<int>(value));
  }
  return lines;
}

// A tuple of names, one a line.
template <typename Range>
std::string tuple(std::string_view variable, const Range& names) {
  std::string lines = fmt::format("{} = (\n", variable);
  for (const auto& name : names) lines += fmt::format("    \"{}\",\n", name);
  return lines + ")\n";
}

// Enumerators of src/fill/rule.h, which lists no names.
constexpr std::array kFillKinds{
    std::pair{FillKind::uniform, "UNIFORM"},
    std::pair{FillKind::integers, "INTEGERS"},
    std::pair{FillKind::distinct, "DISTINCT"},
    std::pair{FillKind::increasing, "INCREASING"},
    std::pair{FillKind::symmetric, "SYMMETRIC"},
    std::pair{FillKind::positive_definite, "POSITIVE_DEFINITE"},
    std::pair{FillKind::boxes, "BOXES"},
    std::pair{FillKind::constant, "CONSTANT"},
    std::pair{FillKind::magnitudes, "MAGNITUDES"},
    std::pair{FillKind::with_nan, "WITH_NAN"},
    std::pair{FillKind::with_infinity, "WITH_INFINITY"},
    std::pair{FillKind::halves, "HALVES"},
    std::pair{FillKind::ends, "ENDS"},
    std::pair{FillKind::corners, "CORNERS"},
    std::pair{FillKind::rows, "ROWS"},
};
static_assert(kFillKinds.size() == static_cast<std::size_t>(kLastFillKind) + 1);
constexpr std::array kSigns{
    std::pair{Signs::positive, "POSITIVE"},
    std::pair{Signs::both, "BOTH"},
    std::pair{Signs::share, "SHARE"},
};

template <typename Pairs>
std::string numbered(const Pairs& pairs) {
  std::string lines;
  for (const auto& [value, name] : pairs) {
    lines += fmt::format("{} = {}\n", name, static_cast<int>(value));
  }
  return lines;
}

std::string expected() {
  std::vector<std::string> dtypes;
  for (const DTypeInfo& dtype : kDTypes) dtypes.emplace_back(dtype.name);
  std::vector<std::string> stages;
  for (const wire::Stage stage : wire::EnumValuesStage()) {
    stages.emplace_back(wire::EnumNameStage(stage));
  }
  std::string equalities = "EQUALITY_CODES = {\n";
  for (const wire::Equality equality : wire::EnumValuesEquality()) {
    equalities += fmt::format("    \"{}\": {},\n", wire::EnumNameEquality(equality),
                              static_cast<int>(equality));
  }
  equalities += "}\n";
  std::string text(kHead);
  text += "\n# DType of src/case/dtype.h: the position is the code on the wire.\n";
  text += tuple("DTYPES", dtypes);
  text += "\n# Status, LeafKind, Equality and Stage of src/wire/messages.fbs.\n";
  text += enumerators(wire::EnumValuesStatus(), "", wire::EnumNameStatus);
  text += "\n";
  text += enumerators(wire::EnumValuesLeafKind(), "LEAF_", wire::EnumNameLeafKind);
  text += "\n" + equalities;
  text += "\n" + tuple("STAGES", stages);
  text += "\n# Value regimes, the usual one first (src/wire/settings.h).\n";
  text += tuple("REGIMES", split_at(std::string(wire::kAllValues), ','));
  text += "\n# FillKind and Signs of src/fill/rule.h.\n";
  text += numbered(kFillKinds) + "\n" + numbered(kSigns);
  text += "\n# src/wire/shared.h\n";
  text += fmt::format("MOST_ELEMENTS = {}\n", wire::kMostElements);
  text += fmt::format("SPARES = \"{}\"\n", wire::kSparesVariable);
  text += fmt::format("SPARES_AFTER_A_FAULT = \"{}\"\n", wire::kSparesAfterFaultVariable);
  text += fmt::format("OWN_MPS = \"{}\"\n", wire::kOwnMpsVariable);
  text += fmt::format("EXECUTIONS = \"{}\"\n", wire::kExecutionsVariable);
  text += fmt::format("SANITIZER = \"{}\"\n", wire::kSanitizerPhase);
  text += fmt::format("\nFAULT_EXIT = {}  # src/device/device.h\n", kDeviceFaultExit);
  text += fmt::format("UPSTREAM = {:.1f}  # src/fill/fill.h\n", kUpstreamReach);
  text += fmt::format("PROTOCOL = {}  # src/lane/message.h\n", kProtocol);
  text += fmt::format("FEW_TERMS = {}  # src/measure/bar.h\n", static_cast<int>(kFewTerms));
  return text;
}

TEST(SharedConstants, PythonHasThoseOfCpp) {
  if (std::getenv("ASSAY_WRITE") != nullptr) std::ofstream(kFile) << expected();
  std::ostringstream found;
  found << std::ifstream(kFile).rdbuf();
  EXPECT_EQ(found.str(), expected()) << "write it anew: ASSAY_WRITE=1 slot_test "
                                        "--gtest_filter=SharedConstants.*";
}

}  // namespace
}  // namespace assay
