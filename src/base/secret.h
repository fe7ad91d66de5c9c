#pragma once

// Secrets that processes of one user share, never on a command line: `ps` shows those to everybody.

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "base/result.h"

namespace assay {

// A new secret: 128 random bits in hexadecimal digits.
Result<std::string> new_secret();

// Whether only our user can reach the file or folder with these facts (from stat).
bool is_ours_alone(const struct ::stat& facts);

// Writes the text into a new file of mode 0600, in place of a file of that name.
Status write_secret(const std::filesystem::path& file, const std::string& text);

// The file's first line. An error: it is a link, or other users can reach it.
Result<std::string> read_secret(const std::filesystem::path& file);

}  // namespace assay
