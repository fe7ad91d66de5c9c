#include "verdict/fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "verdict/verdict.h"

namespace assay {
namespace {

using FlagName = std::pair<OutcomeFlag, std::string_view>;
constexpr std::array<FlagName, 6> kFlagNames{{{kContaminated, "contaminated"},
                                              {kFlaky, "flaky"},
                                              {kLeaked, "leaked"},
                                              {kLeftRunning, "left processes"},
                                              {kChangedState, "changed state"},
                                              {kWeak, "weak"}}};

constexpr std::size_t kMostOfError = 100;
constexpr std::size_t kLeastOfError = 16;  // a shorter start of a message is not specific enough

std::string without_numbers(std::string_view text) {
  std::string plain;
  bool in_number = false;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) plain += c;
    if (digit && !in_number) plain += "·";
    in_number = digit;
  }
  return plain;
}

}  // namespace

std::string error_kind(std::string_view message) {
  std::string plain = without_numbers(message.substr(0, message.find_first_of("[('\"")));
  if (plain.size() < kLeastOfError) plain = without_numbers(message);
  if (plain.size() > kMostOfError) {
    plain.resize(kMostOfError);
    // The cut may be inside a UTF-8 character.
    while (!plain.empty() && (static_cast<unsigned char>(plain.back()) & 0x80U) != 0) {
      plain.pop_back();
    }
  }
  while (!plain.empty() && plain.back() == ' ') plain.pop_back();
  return plain;
}

std::string location_of(const Fault& fault) {
  if (fault.kinds == 0) return fault.lane.empty() ? "" : fmt::format("the {} lane", fault.lane);
  if (fault.kinds == kInput) return "the input " + fault.leaf;
  const std::string leaf = without_numbers(fault.leaf);
  return fault.gradient ? "gradient of " + leaf : "result" + leaf;
}

std::string manifestation_of(const Fault& fault) {
  if (fault.kinds == 0) return fault.raised;
  if (fault.kinds == kInput) return "changed";
  if ((fault.kinds & kValue) != 0 && fault.special) return "NaN or infinity wrong";
  return describe_mismatch(fault.kinds);
}

const Fault& Verdict::fault() const {
  static const Fault kNone;
  return faults.empty() ? kNone : faults.front();
}

void complete_faults(Verdict& verdict) {
  if (!verdict.faults.empty()) return;
  const bool flaky = (verdict.flags & kFlaky) != 0;
  if (!info(verdict.outcome).failed && !flaky) return;
  Fault& fault = verdict.faults.emplace_back();
  fault.outcome = verdict.outcome;
  fault.lane = verdict.lane;
  fault.message = verdict.message;
  fault.raised = info(verdict.outcome).failed ? error_kind(verdict.message) : "flaky";
}

std::string describe_mismatch(std::uint8_t kinds) {
  std::string joined;
  const auto add = [&](MismatchKind kind, std::string_view word) {
    if ((kinds & kind) != 0) joined += fmt::format("{}{}", joined.empty() ? "" : ", ", word);
  };
  add(kStructure, "structure");
  add(kShape, "shape");
  add(kDtype, "dtype");
  add(kValue, "value");
  add(kGradient, "gradient");
  add(kInput, "input");
  return joined;
}

std::string describe_flags(std::uint8_t flags) {
  std::string joined;
  for (const auto& [flag, word] : kFlagNames) {
    if ((flags & flag) != 0) joined += fmt::format("{}{}", joined.empty() ? "" : ", ", word);
  }
  return joined;
}

std::optional<OutcomeFlag> find_flag(std::string_view name) {
  const auto* const found = std::ranges::find(kFlagNames, name, &FlagName::second);
  return found == kFlagNames.end() ? std::nullopt : std::optional(found->first);
}

}  // namespace assay
