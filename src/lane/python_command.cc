#include "lane/python_command.h"

#include <fmt/format.h>

#include "base/text.h"

namespace assay {

std::vector<std::string> python_command(const std::string& python, std::string_view module) {
  // `sys` is built in: it is the one import that looks at no folder. "" is the working folder.
  return {python, "-c",
          fmt::format("import sys; sys.path[:] = filter(None, sys.path); "
                      "from {} import main; sys.exit(main())",
                      module)};
}

std::string without_empty_entries(std::string_view list) {
  std::string kept;
  for (const std::string& entry : split_at(list, ':')) {
    if (entry.empty()) continue;
    if (!kept.empty()) kept += ':';
    kept += entry;
  }
  return kept;
}

}  // namespace assay
