#pragma once

// The pages of runs, chains and timelines. They share one kit of styles and scripts.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::pages {

// Each has a script of its own, files/KIND.js, beside the kit.
enum class Kind : std::uint8_t { run, chain, timeline };

using Part = std::shared_ptr<const std::string>;  // gzipped JSON

struct Content {
  Kind kind = Kind::run;
  std::string_view title;
  std::string_view data;             // JSON, for the page's script
  bool packed = true;                // false: other programs read the data, too
  std::span<const Part> parts = {};  // read after the data
  std::string_view open = {};        // JSON that other programs read, too: the script "analysis"
};

// The page as one file that needs nothing beside it. Its policy forbids all requests.
Result<std::string> whole_page(const Content& content);

// The same page without data, as files of a server. Its script asks for "data.json".
struct ServedFile {
  std::string_view path;  // "/page.js"
  std::string_view type;  // a media type
  std::string text;
};
std::span<const ServedFile> served_files();

}  // namespace assay::pages
