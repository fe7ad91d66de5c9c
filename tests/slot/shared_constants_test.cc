// python/assay/shared.py has the constants that Python and C++ share, generated from C++.
//
//   ASSAY_WRITE=1 slot_test --gtest_filter=SharedConstants.*   writes it anew

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "base/text.h"
#include "case/dtype.h"
#include "device/device.h"
#include "fill/rule.h"
#include "lane/message.h"
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
  text += "\n# src/wire/shared.h\n";
  text += fmt::format("MOST_ELEMENTS = {}\n", wire::kMostElements);
  text += fmt::format("SPARES = \"{}\"\n", wire::kSparesVariable);
  text += fmt::format("SPARES_AFTER_A_FAULT = \"{}\"\n", wire::kSparesAfterFaultVariable);
  text += fmt::format("OWN_MPS = \"{}\"\n", wire::kOwnMpsVariable);
  text += fmt::format("\nFAULT_EXIT = {}  # src/device/device.h\n", kDeviceFaultExit);
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
