// Reads any bytes as settings, as assay.toml and a baseline are read.

#include "../expand.h"
#include "base/toml.h"

namespace {

assay::Status look_into(const std::string&, assay::TomlTable& table) {
  std::string text;
  std::vector<std::string> texts;
  (void)table.read("python", text);
  (void)table.read("environment", texts);
  return table.each_table(look_into);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = "version = 1\n" + assay::expanded(data, size);
  if (auto table = assay::TomlTable::parse(text, "fuzz.toml", 1)) (void)look_into("", *table);
  return 0;
}
