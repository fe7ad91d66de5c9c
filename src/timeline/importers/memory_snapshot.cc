// Imports memory snapshots of PyTorch (torch.cuda.memory._dump_snapshot): the allocator's segments
// and the history of its allocations. docs: pytorch.org/docs/stable/torch_cuda_memory.html

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "timeline/importers/builder.h"
#include "timeline/importers/importer.h"
#include "timeline/input/byte_source.h"
#include "timeline/input/pickle.h"
#include "timeline/names.h"

namespace assay::timeline {
namespace {

using NodeId = PickleTree::NodeId;

// Who allocated, by the Python stack.
struct Origin {
  StringId where = kNoIndex;
  MemoryPhase phase = MemoryPhase::unknown;
};

MemoryPhase phase_of_frame(std::string_view file, std::string_view function) {
  if (has(file, "torch/optim/") && function != "zero_grad") return MemoryPhase::optimiser;
  if (function == "backward" || function == "_engine_run_backward") return MemoryPhase::backward;
  if (!has(file, "torch/nn/modules/")) return MemoryPhase::unknown;
  if (function == "_apply" || function == "__init__" || has(function, "load_state_dict")) {
    return MemoryPhase::setup;
  }
  return MemoryPhase::unknown;
}

class SnapshotReader {
 public:
  explicit SnapshotReader(const PickleTree& tree) : tree_(tree) {}

  Trace read(const std::filesystem::path& path) {
    FileReport& report = builder_.report();
    builder_.describe(path, "memory snapshot");
    builder_.trace().sources.push_back({.path = path.string(), .host = {}, .groups = {}});
    read_segments();
    const auto traces = tree_.items(tree_.find(tree_.root(), "device_traces"));
    for (const NodeId history : traces) {
      has_stacks_ |= std::ranges::any_of(tree_.items(history), [&](NodeId entry) {
        return !tree_.items(tree_.find(entry, "frames")).empty();
      });
    }
    for (std::size_t i = 0; i < traces.size(); ++i) {
      read_history(static_cast<std::int32_t>(i), tree_.items(traces[i]));
    }
    if (!has_history_) {
      report.notes.emplace_back(
          "no history of allocations: call torch.cuda.memory._record_memory_history() first");
    } else if (!has_stacks_) {
      report.notes.emplace_back("no Python stacks, so the use of memory is not known");
    }
    return builder_.finish();
  }

 private:
  struct Block {
    std::int64_t bytes = 0;
    NodeId frames = PickleTree::kMissing;
  };
  struct Device {
    std::int64_t allocated = 0;
    std::int64_t reserved = 0;
    std::map<std::uint64_t, Block> alive;  // at the end, by address
    MemorySegments segments;
  };

  std::int64_t number(NodeId node, std::string_view key, std::int64_t fallback = 0) const {
    const std::int64_t value = tree_.whole(tree_.find(node, key), fallback);
    return std::clamp(value, -kMost, kMost);
  }
  std::string_view text(NodeId node, std::string_view key) const {
    return tree_.text(tree_.find(node, key));
  }

  void read_segments() {
    constexpr std::int64_t kMostDevices = 1024;
    for (const NodeId segment : tree_.items(tree_.find(tree_.root(), "segments"))) {
      const std::int64_t device = number(segment, "device");
      if (device < 0 || device >= kMostDevices) continue;
      read_segment(segment, devices_[static_cast<std::int32_t>(device)]);
    }
  }

  void read_segment(NodeId segment, Device& device) {
    auto at = static_cast<std::uint64_t>(number(segment, "address"));
    std::int64_t idle = 0;
    bool lives = false;
    for (const NodeId block : tree_.items(tree_.find(segment, "blocks"))) {
      const std::int64_t size = std::max<std::int64_t>(number(block, "size"), 0);
      if (text(block, "state") == "inactive") {
        idle += size;
        device.segments.largest_idle = std::max(device.segments.largest_idle, size);
      } else {
        lives = true;
        device.allocated = std::min(device.allocated + size, kMost);
        // Blocks have an address since PyTorch 2.1.
        const std::int64_t address = number(block, "address", static_cast<std::int64_t>(at));
        device.alive[static_cast<std::uint64_t>(address)] = {size, tree_.find(block, "frames")};
      }
      at += static_cast<std::uint64_t>(size);
    }
    device.reserved = std::min(device.reserved + number(segment, "total_size"), kMost);
    device.segments.idle = std::min(device.segments.idle + idle, kMost);
    if (lives) device.segments.fragmented = std::min(device.segments.fragmented + idle, kMost);
  }

  // Allocated and reserved memory is known at the end, so what it was before the history follows.
  void read_history(std::int32_t number_of_device, std::span<const NodeId> history) {
    Device& device = devices_[number_of_device];
    device.segments.device = number_of_device;
    std::vector<MemoryPoint> points;
    std::unordered_map<std::uint64_t, std::int64_t> open;
    for (const NodeId entry : history) {
      ++builder_.report().records;
      read_entry(entry, points, open);
    }
    has_history_ |= !history.empty();
    for (const auto& [address, bytes] : open) device.alive.erase(address);
    if (points.empty() && device.reserved == 0) return;
    add_points(number_of_device, device, points);
    builder_.trace().memory_segments.push_back(device.segments);
  }

  void read_entry(NodeId entry, std::vector<MemoryPoint>& points,
                  std::unordered_map<std::uint64_t, std::int64_t>& open) {
    constexpr std::int64_t kMicro = 1000;
    constexpr std::int64_t kLeastBlock = 512;  // the allocator rounds to a multiple
    const std::string_view action = text(entry, "action");
    const std::int64_t asked = std::max<std::int64_t>(number(entry, "size"), 0);
    const std::int64_t size = (asked + kLeastBlock - 1) / kLeastBlock * kLeastBlock;
    MemoryPoint point;
    // Without times, entries are in order.
    point.time = number(entry, "time_us", static_cast<std::int64_t>(points.size())) * kMicro;
    point.address = static_cast<std::uint64_t>(number(entry, "addr"));
    if (action == "alloc") {
      const Origin origin = origin_of(tree_.find(entry, "frames"));
      point.bytes = size;
      point.where = origin.where;
      point.phase = origin.phase;
      open[point.address] = point.bytes;
    } else if (action == "free_completed") {
      const auto known = open.find(point.address);
      point.bytes = -(known == open.end() ? size : known->second);
      if (known != open.end()) open.erase(known);
    } else if (action == "segment_alloc" || action == "segment_map") {
      point.reserved = size;
    } else if (action == "segment_free" || action == "segment_unmap") {
      point.reserved = -size;
    } else {
      if (action == "oom") note_oom(entry, size);
      ++builder_.report().ignored;
      return;
    }
    if (points.size() >= kMaxImportedSlices) return;
    ++builder_.report().kept;
    points.push_back(point);
  }

  void add_points(std::int32_t number_of_device, const Device& device,
                  std::vector<MemoryPoint>& points);
  void note_oom(NodeId entry, std::int64_t size);
  Origin origin_of(NodeId frames);
  Origin read_frames(std::span<const NodeId> frames);

  static constexpr std::int64_t kMost = std::int64_t{1} << 52U;  // bytes, microseconds, addresses

  const PickleTree& tree_;
  TraceBuilder builder_;
  std::map<std::int32_t, Device> devices_;
  std::unordered_map<NodeId, Origin> origins_;  // by the list of frames
  bool has_stacks_ = false;
  bool has_history_ = false;
};

// Blocks that are older than the history come first.
void SnapshotReader::add_points(std::int32_t number_of_device, const Device& device,
                                std::vector<MemoryPoint>& points) {
  std::int64_t allocated = device.allocated;
  std::int64_t reserved = device.reserved;
  for (const MemoryPoint& point : points) {
    allocated -= point.bytes;
    reserved -= point.reserved;
  }
  for (const auto& [address, block] : device.alive) allocated -= block.bytes;
  auto& memory = builder_.trace().memory;
  const Nanos begin = points.empty() ? 0 : points.front().time;
  const auto add = [&](MemoryPoint point, std::int64_t more_reserved) {
    allocated += point.bytes;
    reserved += more_reserved;
    point.allocated = allocated;
    point.reserved = reserved;
    point.device = number_of_device;
    memory.push_back(point);
  };
  for (const auto& [address, block] : device.alive) {
    const Origin origin = origin_of(block.frames);
    add({.time = begin,
         .bytes = block.bytes,
         .address = address,
         .where = origin.where,
         .phase = origin.phase},
        0);
  }
  for (const MemoryPoint& point : points) add(point, point.reserved);
}

void SnapshotReader::note_oom(NodeId entry, std::int64_t size) {
  constexpr std::size_t kMostNotes = 16;
  auto& notes = builder_.report().notes;
  constexpr double kMega = 1e6;
  if (notes.size() >= kMostNotes) return;
  notes.push_back(fmt::format("out of memory: {:.1f} MB asked, {:.1f} MB of the device were free",
                              static_cast<double>(size) / kMega,
                              static_cast<double>(number(entry, "device_free")) / kMega));
}

Origin SnapshotReader::origin_of(NodeId frames) {
  const auto [known, is_new] = origins_.try_emplace(frames);
  if (is_new && has_stacks_) known->second = read_frames(tree_.items(frames));
  return known->second;
}

// The innermost frame outside of PyTorch's own code, else the innermost one. Threads of autograd
// have no Python frame.
Origin SnapshotReader::read_frames(std::span<const NodeId> frames) {
  Strings& strings = builder_.trace().strings;
  if (frames.empty()) {
    return {strings.intern("backward (autograd's thread)"), MemoryPhase::backward};
  }
  constexpr std::size_t kMostFrames = 512;
  Origin origin{kNoIndex, MemoryPhase::forward};
  NodeId shown = frames.front();
  bool users = false;
  for (const NodeId frame : frames.first(std::min(frames.size(), kMostFrames))) {
    const std::string_view file = text(frame, "filename");
    if (!users && !file.empty() && file[0] != '<' && !has(file, "/torch/") && !has(file, "??")) {
      users = true;
      shown = frame;
    }
    const MemoryPhase phase = phase_of_frame(file, text(frame, "name"));
    if (phase != MemoryPhase::unknown) origin.phase = phase;
  }
  const std::string_view path = text(shown, "filename");
  origin.where = strings.intern(fmt::format("{}:{} ({})", path.substr(path.rfind('/') + 1),
                                            number(shown, "line"), text(shown, "name")));
  return origin;
}

bool recognises(const Sniff& sniff) {
  return sniff.head.starts_with('\x80') &&
         (has(sniff.head, "device_traces") ||
          (has(sniff.head, "segments") && has(sniff.head, "total_size")));
}

Result<Trace> import(const std::filesystem::path& path, const ImportOptions&) {
  constexpr std::size_t kMaxSnapshot = std::size_t{2} << 30U;
  ASSAY_TRY(const std::string bytes, read_head(path, kMaxSnapshot));
  auto tree = PickleTree::read(bytes);
  if (!tree) return usage_error(fmt::format("{}: {}", path.string(), tree.error().message));
  return SnapshotReader(*tree).read(path);
}

}  // namespace

const Importer kMemorySnapshot{"memory snapshot", "a pickle of torch.cuda.memory._dump_snapshot()",
                               recognises, import};

}  // namespace assay::timeline
