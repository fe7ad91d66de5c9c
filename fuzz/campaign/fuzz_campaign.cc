// Reads any bytes as the tree of a campaign, in TOML and in YAML.

#include "../expand.h"
#include "yaml/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = assay::expanded(data, size);
  (void)assay::toml_tree(text, "fuzz.toml");
  (void)assay::yaml_tree(text, "fuzz.yaml");
  return 0;
}
