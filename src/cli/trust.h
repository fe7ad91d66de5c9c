#pragma once

// What may name or be code that runs with our rights: only what no other user can have written.
// What the user names on the command line is trusted.

#include <filesystem>
#include <string>

#include "base/result.h"

namespace assay {

struct TrustedFile {
  std::filesystem::path path;  // absolute; of the file itself, where the name is a link
  std::string text;
};

// The file of this name in the working folder; an empty path if there is none. An error if another
// user may have written the file or the link that leads to it, unless ASSAY_SAFE_FOLDER names the
// folder.
Result<TrustedFile> read_trusted(const char* name);

// An error if another user may put code into a folder that a trusted file names, or may have made
// it. ASSAY_SAFE_FOLDER allows it. A folder that does not exist is none of our business.
Status check_code_folder(const std::filesystem::path& folder, const std::string& named_by);

}  // namespace assay
