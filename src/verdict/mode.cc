#include "verdict/mode.h"

#include <algorithm>
#include <array>

namespace assay {
namespace {

using wire::Role;

constexpr std::array<ModeLane, 2> kAgainstReference{
    {{Role::test, Role::test, false, "eager"}, {Role::reference, Role::reference, true, "eager"}}};
constexpr std::array<ModeLane, 2> kAgainstItself{
    {{Role::test, Role::test, false, "eager"}, {Role::reference, Role::test, false, "eager"}}};
constexpr std::array<ModeLane, 1> kAlone{{{Role::test, Role::test, false, "eager"}}};

constexpr std::array<ModeInfo, 3> kModes{{
    {"accuracy", "the test framework against the reference", Agreement::within, kAgainstReference},
    {"paddle_only", "the test framework alone: does it run", Agreement::runs, kAlone},
    {"accuracy_stable", "the test framework against itself: the same bits twice", Agreement::bits,
     kAgainstItself},
}};

}  // namespace

std::span<const ModeInfo> modes() { return kModes; }

const ModeInfo* find_mode(std::string_view name) {
  const auto found = std::find_if(kModes.begin(), kModes.end(),
                                  [name](const ModeInfo& mode) { return mode.name == name; });
  return found == kModes.end() ? nullptr : &*found;
}

}  // namespace assay
