#include "pages/page.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "base/markup.h"
#include "base/text.h"
#include "pages/packing.h"
#include "pages/page_files.h"

namespace assay::pages {
namespace {

constexpr std::string_view kPolicy =
    R"(<meta http-equiv="Content-Security-Policy" content="default-src 'none'; )"
    R"(script-src 'unsafe-inline'; style-src 'unsafe-inline'">)";

std::string_view file_text(std::string_view name) {
  for (const PageFile& file : page_files()) {
    if (file.name != name) continue;
    return {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()};
  }
  return {};
}

// The modules of a page as one script: without imports, and without the word "export".
std::string script_of(Kind kind) {
  std::vector<std::string_view> names{"words.js", "kit.js", "table.js", "charts.js"};
  if (kind == Kind::run) names.emplace_back("run.js");
  if (kind == Kind::chain) names.emplace_back("chain.js");
  if (kind == Kind::timeline) names.insert(names.end(), {"drawing.js", "timeline.js"});
  constexpr std::string_view kExport = "export ";
  std::string script = "'use strict';\n";
  for (const std::string_view name : names) {
    bool importing = false;
    for (const std::string& whole : split_at(file_text(name), '\n')) {
      std::string_view line = whole;
      importing = importing || line.starts_with("import ");
      if (importing) {
        importing = !line.ends_with(';');
        continue;
      }
      if (line.starts_with(kExport)) line.remove_prefix(kExport.size());
      script += line;
      script += '\n';
    }
  }
  return script;
}

std::string page_of(std::string_view head, std::string_view title, std::string_view foot) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n{}\n"
      "<title>{}</title>\n<body>\n<a class=\"skip\" href=\"#main\" id=\"skip\">Skip to "
      "content</a>\n"
      "<header id=\"head\"></header>\n<nav id=\"views\" aria-label=\"Views\"></nav>\n"
      "<main id=\"main\" tabindex=\"-1\"></main>\n<div id=\"toast\" role=\"status\"></div>\n"
      "<noscript>This page needs JavaScript.</noscript>\n{}</body>\n</html>\n",
      head, escape_markup(title), foot);
}

// JSON that is safe within a <script>.
std::string in_script(std::string_view document) {
  std::string text;
  text.reserve(document.size());
  for (const char c : document) {
    if (c == '<' || c == '>' || c == '&') {
      text += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      text += c;
    }
  }
  return text;
}

std::string open_element(std::string_view id, std::string_view document) {
  return fmt::format("<script type=\"application/json\" id=\"{}\">{}</script>\n", id,
                     in_script(document));
}

std::string packed_element(std::string_view attributes, std::string_view packed) {
  return fmt::format("<script type=\"text/plain\" {}>{}</script>\n", attributes, base64(packed));
}

}  // namespace

Result<std::string> whole_page(const Content& content) {
  std::string foot;
  if (content.packed) {
    ASSAY_TRY(const std::string packed, gzipped(content.data));
    foot = packed_element("id=\"data\"", packed);
  } else {
    foot = open_element("data", content.data);
  }
  for (const Part& part : content.parts) foot += packed_element("class=\"cases\"", *part);
  constexpr std::size_t kMostOpen = 4'000'000;  // bytes; more are packed, so that a page opens fast
  if (content.open.size() > kMostOpen) {
    ASSAY_TRY(const std::string packed, gzipped(content.open));
    foot += packed_element("id=\"analysis\"", packed);
  } else if (!content.open.empty()) {
    foot += open_element("analysis", content.open);
  }
  foot += "<script>\n" + script_of(content.kind) + "</script>\n";
  return page_of(fmt::format("{}\n<style>\n{}</style>", kPolicy, file_text("kit.css")),
                 content.title, foot);
}

std::span<const ServedFile> served_files() {
  static const std::array<ServedFile, 3> files{
      {{"/", "text/html; charset=utf-8",
        page_of("<link rel=\"stylesheet\" href=\"page.css\">", "assay",
                "<script src=\"page.js\"></script>\n")},
       {"/page.css", "text/css; charset=utf-8", std::string(file_text("kit.css"))},
       {"/page.js", "text/javascript; charset=utf-8", script_of(Kind::run)}}};
  return files;
}

}  // namespace assay::pages
