#include "engine/run/transfers.h"

#include <algorithm>

#include "engine/base/error.h"

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

Tensor to_host(const Tensor& tensor, DeviceState& device) {
  const DeviceMemory* memory = device_memory(tensor);
  if (memory == nullptr || memory->state().device().host_visible()) {
    tensor->storage->wait();
    return tensor;
  }
  heddle_tensor_info info = tensor->info;
  std::fill(std::begin(info.stride), std::end(info.stride), 0);
  const Tensor host = make_host_tensor(checked_info(info, "transfer"));
  device.read(tensor, host->data(), dense_bytes(host->info));
  return host;
}

// The one place where a value is moved: to `device`, or to host memory by way of it.
Value move_value(const Value& value, DeviceState& device, bool host) {
  return map_tensors(value, [&](const Tensor& tensor) {
    return host ? to_host(tensor, device) : device.bring(tensor);
  });
}

}  // namespace

std::uint32_t Transfers::destination(NodeIndex reader, std::uint32_t flags) const {
  const Assignment& at = plan_.places[reader];
  const bool host = at.on_host || (flags & HEDDLE_PORT_HOST) != 0;
  return host ? static_cast<std::uint32_t>(devices_.size()) : at.device;
}

template <class Visit>
void Transfers::for_each_reading(NodeIndex reader, Visit&& visit) const {
  const Node& node = graph_.nodes[reader];
  const auto read = [&](const Binding& binding, std::uint32_t flags) {
    const auto* link = std::get_if<Source>(&binding);
    if (link != nullptr && (flags & HEDDLE_PORT_PASS) == 0)
      visit(Reading{*link, destination(reader, flags)});
  };
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
    read(node.inputs[i], node.type->input(i).flags);
  for (const auto& [name, binding] : node.extra) read(binding, 0);
}

const heddle_value* Transfers::to_reader(const Value& value, const Source& source, NodeIndex reader,
                                         std::uint32_t flags) {
  if (!value || (flags & HEDDLE_PORT_PASS) != 0 || !has_tensors(*value)) return value.get();
  const std::uint32_t to = destination(reader, flags);
  const bool host = to == devices_.size();
  const std::uint32_t device = plan_.places[reader].device;
  if (!host && is_here(value, *devices_[to].state)) return value.get();
  used_[device].store(true, std::memory_order_relaxed);

  std::unique_lock lock(mutex_);
  any_.store(true, std::memory_order_relaxed);
  if (readers_.empty())
    for (NodeIndex n = 0; n < graph_.nodes.size(); ++n)
      for_each_reading(n, [this](const Reading& reading) { ++readers_[reading]; });
  const Reading reading{source, to};
  const auto [at, is_new] = entries_.try_emplace(reading);
  Entry& entry = at->second;  // stays: this reader has not finished
  if (is_new) entry.readers = readers_[reading];
  lock.unlock();

  const std::lock_guard bringing(entry.mutex);
  if (!entry.value) entry.value = move_value(value, *devices_[device].state, host);
  return entry.value.get();
}

// A link from a node that is never computed does not count down: its entry goes with the producer.
void Transfers::finished(NodeIndex reader) {
  if (!any_.load(std::memory_order_relaxed)) return;
  std::vector<Value> dropped;  // after the lock: memory may take time to go
  const std::lock_guard lock(mutex_);
  for_each_reading(reader, [&](const Reading& reading) {
    const auto at = entries_.find(reading);
    if (at == entries_.end() || --at->second.readers > 0) return;
    dropped.push_back(std::move(at->second.value));
    entries_.erase(at);
  });
}

void Transfers::unread(NodeIndex producer) {
  if (!any_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  const auto first = entries_.lower_bound(Reading{{producer, 0}, 0});
  const auto last = entries_.lower_bound(Reading{{producer + 1, 0}, 0});
  entries_.erase(first, last);
}

}  // namespace heddle::core
