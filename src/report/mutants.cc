#include "report/mutants.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/atomic_file.h"
#include "base/json.h"
#include "report/run_report.h"
#include "wire/frame.h"
#include "wire/settings.h"

namespace assay {
namespace {

// In the order of Fate.
constexpr std::array<std::string_view, 5> kFates{"killed", "survived", "equivalent", "inapplicable",
                                                 "unjudged"};

using Json = nlohmann::ordered_json;

constexpr int kMutantsVersion = 1;

std::string line_of(std::string_view text, const Mutant& mutant) {
  Json line;
  line["case"] = text;
  line["fault"] = mutant.fault;
  line["values"] = mutant.values;
  line["fate"] = kFates[static_cast<std::size_t>(mutant.fate)];
  if (mutant.weak) line["weak"] = true;
  if (!mutant.planted.empty()) line["planted"] = mutant.planted;
  if (!mutant.message.empty()) line["message"] = mutant.message;
  return dumped(line) + "\n";
}

}  // namespace

Status write_mutants(Store& store, const Policies& policies, const std::filesystem::path& file) {
  ASSAY_TRY(const auto properties, store.properties());
  ASSAY_TRY(wire::CaseSettingsT settings, wire::settings_of(properties));
  ASSAY_TRY(const Rules rules, Rules::of(std::move(settings)));
  ASSAY_TRY(AtomicFile out, AtomicFile::create(file));
  ASSAY_CHECK(
      out.write(dumped(Json{{"version", kMutantsVersion}, {"properties", properties}}) + "\n"));
  const Status written = store.each_finished([&](const FinishedCase& finished) -> Status {
    const auto record = wire::open<wire::Record>(finished.record);
    if (!record) return {};
    for (const Mutant& mutant : judge_mutants(**record, policies.of_case(finished.text), rules)) {
      ASSAY_CHECK(out.write(line_of(finished.text, mutant)));
    }
    return {};
  });
  return written ? out.commit() : written;
}

}  // namespace assay
