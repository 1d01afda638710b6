#include "engine/run/saved_run.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/tensor/dtype.h"

namespace heddle::engine {

bool may_be_kept(const heddle_value& value) {
  switch (kind_of(value)) {
    case HEDDLE_KIND_NONE:
    case HEDDLE_KIND_BOOL:
    case HEDDLE_KIND_INT:
    case HEDDLE_KIND_UINT:
    case HEDDLE_KIND_FLOAT:
    case HEDDLE_KIND_STR:
      return true;
    case HEDDLE_KIND_TENSOR:
      return get_tensor(value)->info.layout == HEDDLE_LAYOUT_STRIDED;
    case HEDDLE_KIND_LIST:
      // No file says that a list is one of calls.
      return !is_spread(value) &&
             std::ranges::all_of(std::get<List>(value.content).items,
                                 [](const Value& item) { return item && may_be_kept(*item); });
    case HEDDLE_KIND_RECORD:
      return std::ranges::all_of(std::get<Record>(value.content).fields, [](const auto& field) {
        return field.second && may_be_kept(*field.second);
      });
    default:
      return false;
  }
}

void SavedRun::set(SavedContent content) {
  const auto now = content_.lock();
  is_empty_ = content.is_empty();
  *now = std::move(content);
}

void SavedRun::keep(CallId call, SavedContent::State state) {
  const auto now = content_.lock();
  is_empty_ = false;
  now->states.insert_or_assign(std::move(call), std::move(state));
}

SavedContent::State SavedRun::state_of(const CallId& call) const {
  if (is_empty_) return {};
  const auto now = content_.lock();
  const auto found = now->states.find(call);
  return found == now->states.end() ? SavedContent::State() : found->second;
}

void SavedRun::settle(std::map<std::string, SavedContent::Outputs> outputs, const Ended& ended) {
  const auto now = content_.lock();
  now->outputs.swap(outputs);
  now->ended.insert(ended.sinks.begin(), ended.sinks.end());
  std::erase_if(now->states,
                [&](const auto& entry) { return ended.stated.contains(entry.first.node); });
  is_empty_ = now->is_empty();
}

std::vector<Value> SavedRun::outputs_of(const std::string& node) const {
  if (is_empty_) return {};
  const auto now = content_.lock();
  const auto found = now->outputs.find(node);
  return found == now->outputs.end() ? std::vector<Value>() : found->second.values;
}

namespace {

// Cuts a graph where nodes are known by what they have made.
class Cutter {
 public:
  Cutter(const SavedContent& saved, std::span<const Source> wanted, Graph& graph)
      : wanted_(wanted), graph_(graph) {
    const auto has_ended = [&](NodeIndex n) { return saved.ended.contains(graph.nodes[n].id); };
    std::erase_if(graph.sinks, has_ended);
    for (const NodeIndex n : graph.order) {
      const auto found = saved.outputs.find(graph.nodes[n].id);
      if (found != saved.outputs.end() &&
          found->second.values.size() == graph.nodes[n].type->output_count())
        made_.emplace(n, &found->second);
    }
    // What nobody wanted any more is made again where it is wanted after all.
    while (leave_out_lacking()) {
    }
  }

  void cut(std::span<const Hash128> made_of, DiskCachedNodes& cached) {
    for (const auto& [n, outputs] : made_) {
      if (!needed_[n]) continue;
      Node& node = graph_.nodes[n];
      const auto is_link = [](const Binding& b) { return std::holds_alternative<Source>(b); };
      for (Binding& binding : node.inputs)
        if (is_link(binding)) binding = {};
      std::erase_if(node.extra, [&](const auto& extra) { return is_link(extra.second); });
      DiskCachedOutputs known{outputs->key, outputs->values, {}, true};
      // Of another process: the key of what they are made of, where there is one.
      if (outputs->key == Hash128() && n < made_of.size() && made_of[n] != Hash128())
        known = {made_of[n], outputs->values, {}, false};
      for (Value& value : known.values)
        if (!value) value = make_value(None{});
      cached.insert_or_assign(n, std::move(known));
    }
    std::erase_if(graph_.order, [&](NodeIndex n) { return !needed_[n]; });
    std::erase_if(cached, [&](const auto& entry) { return !needed_[entry.first]; });
  }

 private:
  bool leave_out_lacking() {
    needed_.assign(graph_.nodes.size(), false);
    std::vector<Source> links(wanted_.begin(), wanted_.end());
    for (const NodeIndex sink : graph_.sinks) links.push_back({sink, kNoPort});
    while (!links.empty()) {
      const Source link = links.back();
      links.pop_back();
      const auto made = made_.find(link.node);
      if (made != made_.end() && (link.port == kNoPort || !made->second->values[link.port])) {
        made_.erase(made);
        return true;
      }
      if (needed_[link.node]) continue;
      needed_[link.node] = true;
      if (made != made_.end()) continue;
      for_each_binding(graph_.nodes[link.node], [&](const Binding& binding) {
        if (const auto* from = std::get_if<Source>(&binding)) links.push_back(*from);
      });
    }
    return false;
  }

  static constexpr std::uint32_t kNoPort = UINT32_MAX;
  const std::span<const Source> wanted_;
  Graph& graph_;
  std::map<NodeIndex, const SavedContent::Outputs*> made_;
  std::vector<bool> needed_;
};

}  // namespace

namespace {

std::string class_of(const DeviceFacts& device) {
  return cat(device.kind, ", ", device.model, ", ", dtype_name(DType(device.compute)));
}

SavedContent::Place place_of(const Assignment& assignment, const Topology& topology) {
  SavedContent::Place place{class_of(topology.devices[assignment.device]), "", ""};
  for (const PlacedCall& call : assignment.calls) {
    const ParallelMode mode = call.placement.parallel;
    if (mode != ParallelMode::sequence && mode != ParallelMode::tensor) continue;
    place.parallel = parallel_name(mode);
    std::vector<std::string> names;
    for (const std::uint32_t d : call.placement.devices) names.push_back(topology.devices[d].name);
    place.devices = join(names, ",");
  }
  return place;
}

std::string place_text(const SavedContent::Place& place) {
  if (place.parallel.empty()) return place.device_class;
  return cat(place.device_class, " (", place.parallel, " over ", place.devices, ")");
}

}  // namespace

std::map<std::string, SavedContent::Place> places_of(const Graph& graph, const Plan& plan,
                                                     const Topology& topology) {
  std::map<std::string, SavedContent::Place> places;
  for (const NodeIndex n : graph.order)
    if (!plan.assignments[n].on_host && !graph.nodes[n].type->has(HEDDLE_NODE_DESCRIBES))
      places[graph.nodes[n].id] = place_of(plan.assignments[n], topology);
  return places;
}

void keep_places(const SavedContent& saved, const Topology& topology, Graph& graph) {
  const std::string first = class_of(topology.devices.front());
  const bool are_alike = std::ranges::all_of(
      topology.devices, [&](const DeviceFacts& device) { return class_of(device) == first; });
  for (const NodeIndex n : graph.order) {
    Node& node = graph.nodes[n];
    const auto found = saved.places.find(node.id);
    // What a loader says of devices is a part of what it makes.
    if (found == saved.places.end() || !node.hints.device.empty() ||
        node.type->has(HEDDLE_NODE_DESCRIBES))
      continue;
    const SavedContent::Place& place = found->second;
    if (!place.parallel.empty()) {
      node.hints.device = place.devices;
      node.hints.parallel = place.parallel;
    } else if (!are_alike) {
      std::vector<std::string> names;
      for (const DeviceFacts& device : topology.devices)
        if (device.left_out.empty() && class_of(device) == place.device_class)
          names.push_back(device.name);
      node.hints.device = join(names, ",");
    }
  }
}

void check_places(const SavedContent& saved, const Graph& graph, const Plan& plan,
                  const Topology& topology) {
  for (const NodeIndex n : graph.order) {
    const auto found = saved.places.find(graph.nodes[n].id);
    if (found == saved.places.end() || plan.assignments[n].on_host) continue;
    const SavedContent::Place now = place_of(plan.assignments[n], topology);
    if (now == found->second) continue;
    throw Error(Code::unsupported,
                cat(graph.name_of(n), " of the run that goes on was on ", place_text(found->second),
                    " and would be on ", place_text(now),
                    " now, which gives other bytes. Give it the devices that it was begun on, or "
                    "run the workflow from its beginning"));
  }
}

void take_saved(const SavedContent& saved, std::span<const Source> wanted,
                std::span<const Hash128> made_of, Graph& graph, DiskCachedNodes& cached) {
  Cutter(saved, wanted, graph).cut(made_of, cached);
}

}  // namespace heddle::engine
