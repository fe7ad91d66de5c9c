#include "slot/config.h"

#include <nlohmann/json.hpp>

namespace assay {
namespace {

using nlohmann::json;

json lane_json(const LaneSetup& lane) {
  // The address may hold any byte; JSON text may not.
  json address = json::array();
  for (const char byte : lane.address) address.push_back(static_cast<unsigned char>(byte));
  return {{"framework", lane.framework},
          {"address", std::move(address)},
          {"device", lane.device},
          {"reference", lane.reference}};
}

LaneSetup lane_from(const json& object) {
  LaneSetup lane;
  lane.framework = object.at("framework").get<std::string>();
  for (const json& byte : object.at("address")) {
    lane.address.push_back(static_cast<char>(byte.get<unsigned char>()));
  }
  lane.device = object.at("device").get<std::string>();
  lane.reference = object.at("reference").get<bool>();
  return lane;
}

}  // namespace

std::string SlotConfig::to_json() const {
  json object = {{"v", 1},       {"index", index},       {"test", lane_json(test)},
                 {"seed", seed}, {"backward", backward}, {"known_only", known_only},
                 {"atol", atol}, {"rtol", rtol},         {"log_dir", log_dir}};
  if (reference) object["reference"] = lane_json(*reference);
  return object.dump();
}

Result<SlotConfig> SlotConfig::from_json(std::string_view text) {
  try {
    const json object = json::parse(text);
    if (object.at("v") != 1) return fail("slot: another version of assay started me");
    SlotConfig config;
    config.index = object.at("index").get<std::uint32_t>();
    config.test = lane_from(object.at("test"));
    if (object.contains("reference")) config.reference = lane_from(object.at("reference"));
    config.seed = object.at("seed").get<std::uint64_t>();
    config.backward = object.at("backward").get<bool>();
    config.known_only = object.at("known_only").get<bool>();
    config.atol = object.at("atol").get<double>();
    config.rtol = object.at("rtol").get<double>();
    config.log_dir = object.at("log_dir").get<std::string>();
    return config;
  } catch (const json::exception& error) {
    return fail(std::string("slot: bad configuration: ") + error.what());
  }
}

}  // namespace assay
