#include "verdict/mode.h"

#include <algorithm>
#include <array>

namespace assay {
namespace {

using wire::Role;

constexpr std::array<ModeLane, 2> kAgainstReference{
    {{Role::test, Role::test}, {Role::reference, Role::reference}}};
constexpr std::array<ModeLane, 1> kAlone{{{Role::test, Role::test}}};
constexpr std::array<ModeLane, 2> kTwice{
    {{Role::test, Role::test, "twice"}, {Role::reference, Role::reference, "twice"}}};
constexpr std::array<ModeLane, 2> kCompiled{
    {{Role::test, Role::test, "to_static"}, {Role::reference, Role::test, "eager"}}};
constexpr std::array<ModeLane, 2> kOnTwoGpus{
    {{Role::test, Role::test}, {Role::reference, Role::reference, "eager", kNextDevice}}};
constexpr std::array<ModeLane, 2> kTwiceOnTwoGpus{
    {{Role::test, Role::test, "twice"}, {Role::reference, Role::reference, "twice", kNextDevice}}};
constexpr std::array<ModeLane, 2> kTimed{
    {{Role::test, Role::test, "timed"}, {Role::reference, Role::reference, "timed"}}};
constexpr std::array<ModeLane, 1> kTimedAlone{{{Role::test, Role::test, "timed"}}};
constexpr std::array<ModeLane, 1> kTimedReference{{{Role::test, Role::reference, "timed"}}};
constexpr std::array<ModeLane, 2> kDevices{
    {{Role::test, Role::test, "eager", "custom"}, {Role::reference, Role::test, "eager", "cpu"}}};

// modes() promises that the first one is the default.
constexpr std::array<ModeInfo, 10> kModes{{
    {"accuracy", "Paddle against PyTorch, or the test lane against the reference lane",
     Agreement::within, kAgainstReference},
    {"paddle_only", "Paddle alone: whether the call runs", Agreement::runs, kAlone},
    {"accuracy_stable",
     "Both frameworks twice: equal bits in each framework, equal results across them",
     Agreement::stable, kTwice},
    {"paddle_cinn", "Paddle's compiled graphs against its eager mode", Agreement::within, kCompiled,
     false},
    {"paddle_custom_device", "Paddle on another device against Paddle on the CPU",
     Agreement::within, kDevices},
    {"accuracy_dual_gpu", "as --accuracy, with the reference on the next GPU", Agreement::within,
     kOnTwoGpus},
    {"accuracy_stable_dual_gpu", "as --accuracy_stable, with the reference on the next GPU",
     Agreement::stable, kTwiceOnTwoGpus},
    {"paddle_torch_gpu_performance",
     "which framework is faster, forward and backward, on a GPU or the CPU", Agreement::speed,
     kTimed},
    {"paddle_gpu_performance", "how long Paddle takes, for --against an earlier run",
     Agreement::speed, kTimedAlone},
    {"torch_gpu_performance", "how long PyTorch takes, for --against an earlier run",
     Agreement::speed, kTimedReference},
}};

}  // namespace

std::span<const ModeInfo> modes() { return kModes; }

std::string_view meaning_in(std::string_view mode, Outcome outcome) {
  const ModeInfo* const found = find_mode(mode);
  const bool compares = found == nullptr || (found->agreement != Agreement::runs &&
                                             found->agreement != Agreement::speed);
  return outcome == Outcome::pass && !compares ? "the call ran; no results were compared"
                                               : info(outcome).meaning;
}

const ModeInfo* find_mode(std::string_view name) {
  const auto found = std::find_if(kModes.begin(), kModes.end(),
                                  [name](const ModeInfo& mode) { return mode.name == name; });
  return found == kModes.end() ? nullptr : &*found;
}

}  // namespace assay
