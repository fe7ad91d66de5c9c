#include "report/shrunk.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/json.h"
#include "case/canonical.h"
#include "report/run_report.h"
#include "store/fault_text.h"
#include "wire/messages_generated.h"

namespace assay {
namespace {

using nlohmann::json;

// The bytes of a hexadecimal text; empty if the text is invalid.
wire::Bytes bytes_of_hex(const std::string& text) {
  wire::Bytes bytes(text.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char* const end = text.data() + 2 * i + 2;
    if (std::from_chars(end - 2, end, bytes[i], 16).ptr != end) return {};
  }
  return text.size() % 2 == 0 ? bytes : wire::Bytes();
}

json json_of(const ShrunkCase& shrunk) {
  return {{"id", format_case_id(shrunk.id)},
          {"case", shrunk.text},
          {"outcome", name(shrunk.verdict.outcome)},
          {"mismatch", shrunk.verdict.mismatch},
          {"lane", shrunk.verdict.lane},
          {"message", shrunk.verdict.message},
          {"faults", faults_text(shrunk.verdict.faults)},
          {"tried", shrunk.tried},
          {"whole", shrunk.whole},
          {"record", fmt::format("{:02x}", fmt::join(shrunk.record, ""))}};
}

// The case of an entry that json_of() wrote; nullopt for other entries.
std::optional<ShrunkCase> shrunk_of(const json& entry) {
  ShrunkCase shrunk;
  const auto outcome = find_outcome(entry.value("outcome", ""));
  shrunk.text = entry.value("case", "");
  shrunk.id = case_id(shrunk.text);
  shrunk.verdict.mismatch = entry.value("mismatch", std::uint8_t{0});
  shrunk.verdict.lane = entry.value("lane", "");
  shrunk.verdict.message = entry.value("message", "");
  shrunk.tried = entry.value("tried", std::uint64_t{0});
  shrunk.whole = entry.value("whole", false);
  shrunk.record = bytes_of_hex(entry.value("record", ""));
  if (!outcome || entry.value("id", "") != format_case_id(shrunk.id)) return std::nullopt;
  if (!shrunk.record.empty() && !wire::open<wire::Record>(shrunk.record)) return std::nullopt;
  shrunk.verdict.outcome = *outcome;
  auto faults = parse_faults(entry.value("faults", ""));
  if (!faults) return std::nullopt;
  shrunk.verdict.faults = std::move(*faults);
  complete_faults(shrunk.verdict);
  return shrunk;
}

Result<ShrunkCases> parse_shrunk(const json& object, const std::string& file) {
  const auto damaged = [&](std::string_view what) {
    return usage_error(fmt::format("{}: {}; remove it and run assay shrink again", file, what));
  };
  if (!object.is_object()) return damaged("the file is no JSON object");
  if (object.value("version", 0) != kShrunkVersion) return damaged("another assay wrote the file");
  ShrunkCases cases;
  const json entries = object.value("cases", json::object());
  for (const auto& [id, entry] : entries.items()) {
    const auto original = parse_case_id(id);
    auto shrunk = entry.is_object() ? shrunk_of(entry) : std::nullopt;
    if (!original || !shrunk) return damaged(fmt::format("its case {} is damaged", id));
    cases[*original] = std::move(*shrunk);
  }
  return cases;
}

}  // namespace

Result<ShrunkCases> read_shrunk(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kShrunkFile;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return ShrunkCases();
  ASSAY_TRY(const std::string text, read_file(file));
  try {
    return parse_shrunk(parse_json(text), file.string());
  } catch (const json::exception& wrong) {
    return usage_error(
        fmt::format("{}: {}; remove it and run assay shrink again", file.string(), wrong.what()));
  }
}

Status add_shrunk(const std::filesystem::path& folder, const ShrunkCases& shrunk) {
  ASSAY_TRY(ShrunkCases all, read_shrunk(folder));
  for (const auto& [id, each] : shrunk) all[id] = each;
  json cases = json::object();
  for (const auto& [id, each] : all) cases[format_case_id(id)] = json_of(each);
  return write_file(folder / kShrunkFile,
                    json_text({{"version", kShrunkVersion}, {"cases", cases}}));
}

}  // namespace assay
