#include "serve/report_page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "report/performance.h"
#include "report/tolerances.h"
#include "serve/live_run.h"
#include "serve/packing.h"
#include "serve/page_files.h"
#include "serve/past_runs.h"
#include "serve/source.h"
#include "verdict/judge.h"
#include "wire/settings.h"

namespace assay {
namespace {

// Forbids a saved page all requests, whatever its data contain.
constexpr std::string_view kPolicy =
    R"(<meta http-equiv="Content-Security-Policy" content="default-src 'none'; )"
    R"(script-src 'unsafe-inline'; style-src 'unsafe-inline'">)";
// Lines of index.html: the policy is inserted after the first one, and the files that the others
// name replace them.
constexpr std::string_view kHead = "<meta charset=\"utf-8\">\n";
constexpr std::string_view kStyle = "<link rel=\"stylesheet\" href=\"page.css\">";
constexpr std::string_view kD3 = "<script src=\"d3.min.js\"></script>";
constexpr std::string_view kScript = "<script src=\"page.js\"></script>";

std::string text_of(std::string_view name) {
  for (const PageFile& file : page_files()) {
    if (file.name == name) return {file.bytes.begin(), file.bytes.end()};
  }
  return {};
}

// `page` with the first `what` in it replaced.
Status replace(std::string& page, std::string_view what, const std::string& with) {
  const std::size_t at = page.find(what);
  if (at == std::string::npos) return fail(fmt::format("the page has no line {}", what));
  page.replace(at, what.size(), with);
  return {};
}

std::string packed_element(std::string_view attributes, std::string_view packed) {
  return fmt::format("<script type=\"text/plain\" {}>{}</script>\n", attributes, base64(packed));
}

Result<nlohmann::json> data_of(RunReader& run, const LiveRun& grown) {
  ASSAY_TRY(const std::uint64_t unfinished, run.unfinished());
  nlohmann::json data = grown.json();
  data["version"] = kPageVersion;
  data["begun"] = 0;
  data["planned"] = grown.cases() + unfinished;
  data["unfinished"] = unfinished;
  if (grown.properties().contains(std::string(kRerunFlag) + "test_tol")) {
    ASSAY_TRY(data["tolerances"], tolerances_json(run));
  }
  ASSAY_TRY(wire::CaseSettingsT settings, wire::settings_of(grown.properties()));
  ASSAY_TRY(const Rules rules, Rules::of(std::move(settings)));
  if (rules.agreement == Agreement::speed) {
    ASSAY_TRY(data["times"], performance_json(run));
  }
  return data;
}

}  // namespace

Status write_report_page(RunReader& run, const std::filesystem::path& file,
                         const RunComparison* against, std::uint64_t most) {
  ASSAY_TRY(LiveRun grown, live_run_of(run, most, against));
  ASSAY_TRY(nlohmann::json data, data_of(run, grown));
  if (against != nullptr) {
    data["against"] = comparison_json(*against);
    data["against"]["table"] = comparison_table(*against);
    data["against"]["rows"] = against->speed.rows();
  }
  ASSAY_TRY(const std::string name, run.run_name());
  ASSAY_TRY(const std::vector<RunTotals> others, run.other_runs());
  data["runs"] = runs_json(others, grown.totals(name));
  ASSAY_TRY(const std::string packed,
            gzipped(data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  std::string inside = packed_element("id=\"data\"", packed);
  ASSAY_TRY(const std::vector<CaseList::Part> parts, grown.listed().parts());
  for (const CaseList::Part& part : parts) inside += packed_element("class=\"cases\"", *part);
  std::string page = text_of("index.html");
  // From the last line to the first: then no search can match in inserted text.
  ASSAY_CHECK(replace(page, kScript, "<script>\n" + text_of("page.js") + "</script>"));
  ASSAY_CHECK(replace(page, kD3, inside + "<script>\n" + text_of("d3.min.js") + "</script>"));
  ASSAY_CHECK(replace(page, kStyle, "<style>\n" + text_of("page.css") + "</style>"));
  ASSAY_CHECK(replace(page, kHead, std::string(kHead) + std::string(kPolicy) + "\n"));
  return write_file(file, page);
}

}  // namespace assay
