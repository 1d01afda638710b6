#include "engine/run/transfers.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::core {

namespace {

const DeviceMemory* device_memory(const Tensor& tensor) {
  return dynamic_cast<const DeviceMemory*>(tensor->storage.get());
}

bool has_tensors(const heddle_value& value) {
  const heddle_kind kind = kind_of(value);
  if (kind != HEDDLE_KIND_LIST && kind != HEDDLE_KIND_RECORD) return kind == HEDDLE_KIND_TENSOR;
  if (const auto* list = std::get_if<List>(&value.content))
    return std::ranges::any_of(list->items, [](const Value& item) { return has_tensors(*item); });
  return std::ranges::any_of(std::get<Record>(value.content).fields,
                             [](const auto& field) { return has_tensors(*field.second); });
}

bool is_here(const Value& value, const DeviceState& device) {
  bool here = true;
  for_each_tensor(*value, [&](const Tensor& tensor) {
    const DeviceMemory* memory = device_memory(tensor);
    here = here && memory != nullptr && &memory->state() == &device;
  });
  return here;
}

}  // namespace

std::uint32_t Transfers::destination(NodeIndex reader, std::uint32_t flags) const {
  const Assignment& at = plan_.places[reader];
  const bool host = at.on_host || (flags & HEDDLE_PORT_HOST) != 0;
  return host ? static_cast<std::uint32_t>(devices_.size()) : at.device;
}

// visit(reading, whether it is read only when the node asks for it)
template <class Visit>
void Transfers::for_each_reading(NodeIndex reader, Visit&& visit) const {
  const Node& node = graph_.nodes[reader];
  const auto read = [&](const Binding& binding, std::uint32_t flags) {
    const auto* link = std::get_if<Source>(&binding);
    if (link != nullptr && (flags & HEDDLE_PORT_PASS) == 0)
      visit(Reading{*link, destination(reader, flags)}, (flags & HEDDLE_PORT_LAZY) != 0);
  };
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
    read(node.inputs[i], node.type->input(i).flags);
  for (const auto& [name, binding] : node.extra) read(binding, 0);
}

void Transfers::count_readers() {
  any_.store(true, std::memory_order_relaxed);
  if (!readers_.empty()) return;
  for (NodeIndex n = 0; n < graph_.nodes.size(); ++n)
    for_each_reading(n, [&](const Reading& r, bool lazy) { readers_[r].push_back({n, lazy}); });
}

std::shared_ptr<Transfers::Entry> Transfers::entry(const Reading& reading) {
  const std::lock_guard lock(mutex_);
  count_readers();
  std::shared_ptr<Entry>& at = entries_[reading];
  if (at == nullptr) {
    at = std::make_shared<Entry>();
    at->readers = static_cast<std::uint32_t>(readers_[reading].size());
  }
  return at;
}

// REQUIRES: the entry's mutex held.
void Transfers::start(Entry& entry, const Value& value, const Source& source, std::uint32_t destination) {
  if (entry.value) return;
  const bool host = destination == devices_.size();
  DeviceState* const to = host ? nullptr : devices_[destination].state.get();
  if (!host) used_[destination].store(true, std::memory_order_relaxed);
  WorkWatch watch;
  if (timeline_ != nullptr) {
    const Node& producer = graph_.nodes[source.node];
    watch = timeline_->watch("transfer", cat(producer.id, ".", producer.type->output(source.port).name, " to ", host ? "host" : to->device().name()));
  }
  entry.value = map_tensors(value, [&](const Tensor& tensor) {
    entry.arrivals.push_back(std::make_shared<Arrival>(tensor, to, watch));
    bytes_.fetch_add(entry.arrivals.back()->bytes(), std::memory_order_relaxed);
    return entry.arrivals.back()->here();
  });
}

void Transfers::send(NodeIndex producer, std::span<const Value> outputs) {
  for (std::uint32_t port = 0; port < outputs.size(); ++port) {
    const Value& value = outputs[port];
    if (!value || !has_tensors(*value)) continue;
    std::vector<std::uint32_t> wanted;
    {
      const std::lock_guard lock(mutex_);
      count_readers();
      const Source source{producer, port};
      for (auto r = readers_.lower_bound({source, 0}); r != readers_.end() && r->first.source == source; ++r) {
        const std::uint32_t to = r->first.destination;
        if (to != devices_.size() && is_here(value, *devices_[to].state)) continue;
        const auto reads = [this](const Link& l) { return !l.lazy && expected_[l.reader].load(std::memory_order_relaxed); };
        if (std::ranges::any_of(r->second, reads)) wanted.push_back(to);
      }
    }
    for (const std::uint32_t to : wanted) {
      const std::shared_ptr<Entry> at = entry({{producer, port}, to});
      const std::lock_guard starting(at->mutex);
      start(*at, value, {producer, port}, to);
    }
  }
}

const heddle_value* Transfers::to_reader(const Value& value, const Source& source, NodeIndex reader,
                                         std::uint32_t flags) {
  if (!value || (flags & HEDDLE_PORT_PASS) != 0 || !has_tensors(*value)) return value.get();
  const std::uint32_t to = destination(reader, flags);
  if (to != devices_.size() && is_here(value, *devices_[to].state)) return value.get();
  const std::shared_ptr<Entry> at = entry({source, to});  // stays: this reader has not finished
  const std::lock_guard bringing(at->mutex);
  start(*at, value, source, to);
  for (const auto& arrival : at->arrivals) arrival->await();
  return at->value.get();
}

// A link from a node that is never computed does not count down: its entry goes with the producer.
void Transfers::finished(NodeIndex reader) {
  if (!any_.load(std::memory_order_relaxed)) return;
  std::vector<std::shared_ptr<Entry>> dropped;  // after the lock: memory may take time to go
  const std::lock_guard lock(mutex_);
  for_each_reading(reader, [&](const Reading& reading, bool) {
    const auto at = entries_.find(reading);
    if (at == entries_.end() || --at->second->readers > 0) return;
    dropped.push_back(std::move(at->second));
    entries_.erase(at);
  });
}

void Transfers::unread(NodeIndex producer) {
  if (!any_.load(std::memory_order_relaxed)) return;
  std::vector<std::shared_ptr<Entry>> dropped;
  const std::lock_guard lock(mutex_);
  const auto first = entries_.lower_bound(Reading{{producer, 0}, 0});
  const auto last = entries_.lower_bound(Reading{{producer + 1, 0}, 0});
  for (auto at = first; at != last; ++at) dropped.push_back(std::move(at->second));
  entries_.erase(first, last);
}

}  // namespace heddle::core
