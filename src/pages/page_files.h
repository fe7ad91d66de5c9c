#pragma once

// The files of the pages, embedded into the program.

#include <span>
#include <string_view>

namespace assay::pages {

struct PageFile {
  std::string_view name;  // "kit.js"
  std::span<const unsigned char> bytes;
};

// All files, under their names in src/pages/files.
std::span<const PageFile> page_files();

}  // namespace assay::pages
