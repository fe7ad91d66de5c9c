#pragma once

// How Python is started. Python itself would put the working folder first on its path, and then
// run a random.py or torch.py that lies there.

#include <string>
#include <string_view>
#include <vector>

namespace assay {

// The words that call `main()` of a module of the lane package, without the working folder on the
// path. They work for every Python; -P is known from 3.11 on only.
std::vector<std::string> python_command(const std::string& python, std::string_view module);

// A list such as PYTHONPATH or LD_LIBRARY_PATH without its empty entries: Python and the loader
// take an empty entry for the working folder.
std::string without_empty_entries(std::string_view list);

}  // namespace assay
