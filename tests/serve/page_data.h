#pragma once

// Reads the data of a report.html with an independent program.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "../report/stored_run.h"

namespace assay::testing {

// {"data": what the page shows, "cases": its list of cases, part after part}.
inline nlohmann::json page_data(const std::filesystem::path& page) {
  const Folder folder;
  const Ran ran = run_program(folder, {"python3", "-c", R"(
import base64, gzip, json, re, sys
page = open(sys.argv[1], encoding="utf-8").read()
inside = re.findall(r'<script type="text/plain" ((?:id|class)="\w+")>([^<]*)</script>', page)
unpacked = [(name, json.loads(gzip.decompress(base64.b64decode(text)))) for name, text in inside]
print(json.dumps({"data": dict(unpacked)['id="data"'], "cases": [u for n, u in unpacked if n == 'class="cases"']}))
)",
                                       page.string()});
  if (!ran.status.ok()) throw std::runtime_error(ran.output);
  return nlohmann::json::parse(ran.output);
}

}  // namespace assay::testing
