#pragma once

// The files of the page, embedded into the program.

#include <span>
#include <string_view>

namespace assay {

struct PageFile {
  std::string_view name;  // "page.js"
  std::span<const unsigned char> bytes;
};

// All files, under their names in src/serve/page.
std::span<const PageFile> page_files();

}  // namespace assay
