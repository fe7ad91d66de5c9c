#include "chain/results/node_record.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/process.h"
#include "nvml/nvml.h"

namespace assay::chain::results {
namespace {

namespace fs = std::filesystem;

std::string batch_of(const plan::Stage& stage) {
  std::string batch;
  for (const std::string& word : stage.argv) {
    if (word.find("batch") != std::string::npos && word.find('=') != std::string::npos) {
      batch = word.substr(word.find('=') + 1);
    }
  }
  return batch;
}

}  // namespace

std::vector<std::string> packages_of(const std::string& interpreter) {
  constexpr std::string_view kEnd = ".dist-info";
  std::vector<std::string> packages;
  const std::optional<std::string> program = find_program(interpreter);
  if (!program) return packages;
  std::error_code error;
  // The link is not resolved: a virtual environment's interpreter is a link, and its packages are
  // beside the link.
  const fs::path library = fs::absolute(*program, error).parent_path().parent_path() / "lib";
  for (fs::directory_iterator entry(library, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with("python3")) continue;
    for (const char* folder : {"site-packages", "dist-packages"}) {
      std::error_code none;
      for (const auto& package : fs::directory_iterator(entry->path() / folder, none)) {
        const std::string name = package.path().filename().string();
        if (name.ends_with(kEnd)) packages.push_back(name.substr(0, name.size() - kEnd.size()));
      }
    }
  }
  std::ranges::sort(packages);
  return packages;
}

std::string framework_of(const std::string& interpreter) {
  for (std::string& package : packages_of(interpreter)) {  // paddlepaddle_gpu-3.3.1
    const std::size_t dash = package.find('-');
    if (!package.starts_with("paddlepaddle") || dash == std::string::npos) continue;
    return package.replace(dash, 1, " ");
  }
  return {};
}

std::string gpu_model_of(const std::vector<std::string>& environment, bool on_cpu) {
  const std::vector<std::string> names = on_cpu ? std::vector<std::string>() : nvml_gpu_names();
  if (names.empty()) return "CPU";
  std::size_t first = 0;
  for (const std::string& entry : environment) {
    constexpr std::string_view kVisible = "CUDA_VISIBLE_DEVICES=";
    if (!entry.starts_with(kVisible)) continue;
    first = 0;  // from_chars leaves it unset if the text is not a number
    std::from_chars(entry.data() + kVisible.size(), entry.data() + entry.size(), first);
  }
  return first < names.size() ? names[first] : names.front();
}

std::string node_line(const NodeRecord& record) {
  const nlohmann::json line{{"v", 1},
                            {"host", record.host},
                            {"gpu_model", record.gpu_model},
                            {"framework", record.framework},
                            {"state", record.state}};
  return std::string(kNodeWord) + dumped(line);
}

std::optional<NodeRecord> read_node_line(std::string_view line) {
  if (!line.starts_with(kNodeWord)) return std::nullopt;
  const nlohmann::json json = parse_json(line.substr(kNodeWord.size()));
  if (!json.is_object()) return std::nullopt;
  NodeRecord record;
  record.host = text_of(json, "host");
  record.gpu_model = text_of(json, "gpu_model");
  record.framework = text_of(json, "framework");
  record.state = text_of(json, "state");
  return record;
}

NodeRecords::NodeRecords(const plan::Stage& stage, const std::string& model) {
  std::vector<std::string> hosts = stage.hosts;
  if (hosts.empty()) hosts.emplace_back("localhost");
  for (const std::string& host : hosts) {
    Node node;
    node.record.host = host;
    node.record.model = model;
    node.record.batch_size = batch_of(stage);
    if (stage.hosts.empty()) {
      node.record.gpu_model = gpu_model_of(stage.environment, stage.on_cpu);
      node.record.framework = framework_of(stage.argv.front());
    }
    nodes_.push_back(std::move(node));
  }
}

NodeRecords::Node* NodeRecords::find(std::string_view host) {
  for (Node& node : nodes_) {
    if (node.record.host == host) return &node;
  }
  return nullptr;
}

NodeRecords::Said NodeRecords::take(std::string_view line) {
  if (nodes_.empty()) return {line, log_.take(line)};
  Node* node = &nodes_.front();
  std::string_view rest = line;
  if (nodes_.size() > 1 && line.starts_with('[')) {
    const std::size_t end = line.find("] ");
    Node* other = end == std::string_view::npos ? nullptr : find(line.substr(1, end - 1));
    if (other != nullptr) {
      node = other;
      rest = line.substr(end + 2);
    }
  }
  if (const auto told = read_node_line(rest)) {
    // The plan's address is kept, whatever the machine calls itself.
    node->record.gpu_model = told->gpu_model;
    node->record.framework = told->framework;
    node->record.state = told->state;
    return {};
  }
  Said said{rest, node->log.take(rest)};
  for (const stage::Reading& reading : said.readings) {
    if (reading.name != "ips" || !std::isfinite(reading.value)) continue;
    node->record.ips += (reading.value - node->record.ips) / static_cast<double>(++node->readings);
  }
  return node == &nodes_.front() ? said : Said();
}

std::vector<NodeRecord> NodeRecords::finish(std::string_view state) const {
  std::vector<NodeRecord> records;
  for (const Node& node : nodes_) {
    records.push_back(node.record);
    // A single machine has the stage's state. Of several, a machine that reported nothing is lost.
    if (nodes_.size() == 1) {
      records.back().state = state;
    } else if (records.back().state.empty()) {
      records.back().state = "unknown";
    }
    if (records.back().gpu_model.empty()) records.back().gpu_model = "unknown";
  }
  return records;
}

}  // namespace assay::chain::results
