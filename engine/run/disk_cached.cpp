#include "engine/run/disk_cached.h"

#include <algorithm>
#include <exception>
#include <set>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/memory/host_tensor.h"
#include "engine/run/instance.h"
#include "engine/run/keys.h"
#include "engine/run/node_call.h"
#include "engine/run/observer.h"

namespace heddle::engine {

namespace {

// Nodes that the roots need, themselves included.
std::vector<bool> needed_by(const Graph& graph, std::vector<NodeIndex> roots) {
  std::vector<bool> needed(graph.nodes.size(), false);
  while (!roots.empty()) {
    const NodeIndex n = roots.back();
    roots.pop_back();
    if (needed[n]) continue;
    needed[n] = true;
    for_each_binding(graph.nodes[n], [&](const Binding& binding) {
      if (const auto* link = std::get_if<Source>(&binding)) roots.push_back(link->node);
    });
  }
  return needed;
}

class Finder {
 public:
  Finder(Graph& graph, const Topology& topology, Environment& environment)
      : graph_(graph), environment_(environment), device_classes_(graph.nodes.size()) {
    std::vector<NodeIndex> worth;
    for (const NodeIndex n : graph.order)
      if (graph.nodes[n].type->has(HEDDLE_NODE_CACHE_ON_DISK)) worth.push_back(n);
    above_ = needed_by(graph, worth);
    for (const NodeIndex n : graph.order)
      if (above_[n]) find_device_classes(n, topology);
    for (const Node& node : graph.nodes)
      assignments_.push_back({0, {0}, node.type->has(HEDDLE_NODE_HOST), "", {}});
    for (const NodeIndex n : worth)
      if (device_classes_[n].size() <= 1) find_key(n);
  }

  DiskCachedNodes keys() && { return std::move(cached_); }
  DiskCachedNodes run(std::span<const Source> wanted) {
    bool any = false;
    const auto make = [this](const heddle_tensor_info& info) {
      return make_host_tensor(info, environment_.host_ledger);
    };
    for (auto& [n, cached] : cached_) {
      auto found = environment_.persistent_cache->values.find(cached.key, make);
      if (!found || found->size() != graph_.nodes[n].type->output_count()) continue;
      cached.values = std::move(*found);
      cut(graph_.nodes[n]);
      any = true;
    }
    if (any) leave_out_unneeded(wanted);
    return std::move(cached_);
  }

 private:
  // What the devices are to a result that a node, and those above it, may run on.
  void find_device_classes(NodeIndex n, const Topology& topology) {
    const Node& node = graph_.nodes[n];
    const auto add = [&](const DeviceFacts& device) {
      if (device.left_out.empty())
        device_classes_[n].insert(
            Hasher().add(device.kind).add(device.model).add(device.compute).finish());
    };
    const auto add_named = [&](const std::string& name) {
      for (const std::uint32_t d : find_devices(name, topology).devices) add(topology.devices[d]);
    };
    if (!node.hints.device.empty())
      add_named(node.hints.device);
    else if (!node.type->has(HEDDLE_NODE_HOST) && !node.type->has(HEDDLE_NODE_DESCRIBES))
      for (const DeviceFacts& device : topology.devices) add(device);
    for (const BlockHint& block : node.hints.blocks) add_named(block.device);
    for_each_binding(node, [&](const Binding& binding) {
      if (const auto* link = std::get_if<Source>(&binding))
        device_classes_[n].insert(device_classes_[link->node].begin(),
                                  device_classes_[link->node].end());
    });
  }

  void find_key(NodeIndex n) {
    const Hash128 device_class =
        device_classes_[n].empty() ? Hash128() : *device_classes_[n].begin();
    const auto [keys, is_new] = keys_.try_emplace(device_class);
    if (is_new)
      keys->second = output_keys(graph_, assignments_, std::span(&device_class, 1),
                                 [&](NodeIndex m) { return above_[m] ? fingerprint_of(m) : 0; });
    const Hash128 key = keys->second[n];
    if (key == Hash128()) return;
    DiskCachedOutputs& cached = cached_[n];
    cached.key = Hasher().add(environment_.persistent_cache->build).add(key).finish();
    const std::vector<bool> below = needed_by(graph_, {n});
    for (const auto& [m, files] : files_)
      if (below[m]) cached.files.insert(cached.files.end(), files.begin(), files.end());
  }

  std::uint64_t fingerprint_of(NodeIndex n) {
    const auto [at, is_new] = fingerprints_.try_emplace(n, 0);
    if (is_new)
      at->second =
          fingerprint({environment_,
                       quiet_,
                       control_,
                       {},
                       nullptr,
                       nullptr,
                       &environment_.persistent_cache->hashes},
                      graph_.nodes[n], environment_.devices.front(), assignments_[n], files_[n]);
    return at->second;
  }

  static void cut(Node& node) {
    const auto is_link = [](const Binding& b) { return std::holds_alternative<Source>(b); };
    for (Binding& binding : node.inputs)
      if (is_link(binding)) binding = {};
    std::erase_if(node.extra, [&](const auto& extra) { return is_link(extra.second); });
  }

  void leave_out_unneeded(std::span<const Source> wanted) {
    std::vector<NodeIndex> roots = graph_.sinks;
    for (const Source& source : wanted) roots.push_back(source.node);
    const std::vector<bool> needed = needed_by(graph_, std::move(roots));
    std::erase_if(graph_.order, [&](NodeIndex n) { return !needed[n]; });
    std::erase_if(cached_, [&](const auto& cached) { return !needed[cached.first]; });
  }

  Graph& graph_;
  Environment& environment_;
  std::vector<bool> above_;  // by node: those worth keeping, and what they need
  std::vector<std::set<Hash128>> device_classes_;  // by node
  std::vector<Assignment>
      assignments_;  // by node; all on one device: the class stands for any of them
  std::map<Hash128, std::vector<Hash128>> keys_;  // by class, then by node
  std::map<NodeIndex, std::uint64_t> fingerprints_;
  std::map<NodeIndex, UsedFiles> files_;  // of the fingerprints
  NullObserver quiet_;
  RunControl control_;
  DiskCachedNodes cached_;
};

// Itself where the host can read it.
Tensor in_host(const Tensor& tensor, const std::shared_ptr<Ledger>& ledger) {
  auto* const memory = dynamic_cast<DeviceMemory*>(tensor->storage.get());
  if (memory == nullptr || memory->state().device().host_visible()) {
    tensor->storage->wait();
    return tensor;
  }
  const heddle_tensor_info& info = tensor->info;
  const Tensor copy =
      make_host_tensor(make_info(info.dtype, std::span(info.shape, info.rank)), ledger);
  const std::uint64_t bytes = dense_bytes(info);
  if (bytes > 0) memory->state().read(tensor, copy->data(), bytes);
  return copy;
}

}  // namespace

DiskCachedNodes take_disk_cached(Graph& graph, std::span<const Source> wanted,
                                 const Topology& topology, Environment& environment, bool anew) {
  const auto may_be_cached = [&](NodeIndex n) {
    return graph.nodes[n].type->has(HEDDLE_NODE_CACHE_ON_DISK);
  };
  if (environment.persistent_cache == nullptr || std::ranges::none_of(graph.order, may_be_cached))
    return {};
  try {
    Finder finder(graph, topology, environment);
    return anew ? std::move(finder).keys() : finder.run(wanted);
  } catch (const Error& error) {
    log(Level::debug, cat("nothing is taken from earlier runs: ", error.full()));
    return {};
  }
}

void add_facts(const DiskCachedNodes& cached, Facts& facts) {
  for (const auto& [node, outputs] : cached)
    for (std::uint32_t o = 0; o < outputs.values.size(); ++o)
      facts.insert_or_assign({node, o}, outputs.values[o]);
}

void write_disk_cached(const DiskCachedOutputs& cached, std::span<const Value> outputs,
                       const Environment& environment) {
  try {
    std::vector<Value> copies;
    for (const Value& output : outputs)
      copies.push_back(map_tensors(
          output, [&](const Tensor& t) { return in_host(t, environment.host_ledger); }));
    if (find_changed(cached.files) == nullptr)
      environment.persistent_cache->values.add(cached.key, copies);
  } catch (const std::exception& error) {
    log(Level::warning, cat("a result cannot be kept for later runs: ", error.what()));
  }
}

}  // namespace heddle::engine
