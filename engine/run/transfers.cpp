#include "engine/run/transfers.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

namespace {

const DeviceMemory* device_memory(const Tensor& tensor) {
  return dynamic_cast<const DeviceMemory*>(tensor->storage.get());
}

bool holds_tensors(const heddle_value& value);

// Most values that pass are numbers and texts.
inline bool has_tensors(const heddle_value& value) {
  const heddle_kind kind = kind_of(value);
  if (kind != HEDDLE_KIND_LIST && kind != HEDDLE_KIND_RECORD) return kind == HEDDLE_KIND_TENSOR;
  return holds_tensors(value);
}

// Of a list or a record.
bool holds_tensors(const heddle_value& value) {
  if (const auto* list = std::get_if<List>(&value.content))
    return std::ranges::any_of(list->items, [](const Value& item) { return has_tensors(*item); });
  return std::ranges::any_of(std::get<Record>(value.content).fields,
                             [](const auto& field) { return has_tensors(*field.second); });
}

}  // namespace

std::uint32_t Transfers::side_of_memory(const Tensor& tensor) const {
  const DeviceMemory* memory = device_memory(tensor);
  for (std::uint32_t d = 0; memory != nullptr && d < devices_.size(); ++d)
    if (&memory->state() == devices_[d].state.get()) return d;
  return kHostSide;
}

// Whether all its tensors are on that device. Those in host memory are never taken for being there:
// whether they are written, the host has to wait for.
bool Transfers::is_at(const Value& value, std::uint32_t to) const {
  if (to == kHostSide) return false;
  const DeviceState& device = *devices_[to].state;
  bool here = true;
  for_each_tensor(*value, [&](const Tensor& tensor) {
    const DeviceMemory* memory = device_memory(tensor);
    here = here && memory != nullptr && &memory->state() == &device;
  });
  return here;
}

void Transfers::count_readers() {
  if (homes_) return;
  homes_.emplace(run_.planned(), plan_);
  for (NodeIndex n = 0; n < run_.planned_count(); ++n)
    if (schedule_.reads(n)) count_links(n);
  for (const NodeIndex n : added_) count_links(n);
}

void Transfers::count_links(NodeIndex reader) {
  for_each_reading(reader, [&](const Reading& reading, bool lazy) {
    readers_[reading].push_back({reader, lazy});
  });
}

std::uint32_t Transfers::home_of(const Source& source) const {
  return source.node < run_.planned_count() ? homes_->of(source)
                                            : run_.added(source.node).homes[source.port];
}

std::shared_ptr<Transfers::Entry> Transfers::entry(const Reading& reading) {
  const std::lock_guard lock(mutex_);
  count_readers();
  any_.store(true, std::memory_order_relaxed);
  std::shared_ptr<Entry>& at = entries_[reading];
  if (at == nullptr) {
    at = std::make_shared<Entry>();
    at->readers = static_cast<std::uint32_t>(readers_[reading].size());
  }
  return at;
}

std::shared_ptr<Transfers::Entry> Transfers::find_sent(const Reading& reading) {
  if (!any_sent_.load(std::memory_order_relaxed)) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(reading);
  return at == entries_.end() || !at->second->sent ? nullptr : at->second;
}

// REQUIRES: the entry's mutex held.
void Transfers::start(Entry& entry, const Value& value, const Reading& reading) {
  if (entry.value) return;
  const auto& [source, destination] = reading;
  const bool host = destination == kHostSide;
  DeviceState* const to = host ? nullptr : devices_[destination].state.get();
  if (!host) used_[destination].store(true, std::memory_order_relaxed);
  WorkWatch watch;
  if (timeline_ != nullptr) {
    const Node& producer = run_.node(source.node);
    watch =
        timeline_->watch("transfer", cat(producer.id, ".", producer.type->output(source.port).name,
                                         " to ", host ? "host" : to->device().name()));
  }
  std::uint64_t bytes = 0;
  std::uint32_t from = destination;
  entry.value = map_tensors(value, [&](const Tensor& tensor) {
    const Transfer& transfer =
        *entry.transfers.emplace_back(std::make_shared<Transfer>(tensor, to, watch));
    bytes += transfer.bytes();
    if (steps_ != nullptr && transfer.bytes() > 0) from = side_of_memory(tensor);
    return transfer.here();
  });
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (steps_ != nullptr) steps_->sent(source, from, destination, bytes, entry.value);
}

void Transfers::send_tensors(NodeIndex producer, std::span<const Value> outputs,
                             std::vector<Sent>& sent) {
  struct Wanted {
    std::uint32_t to, copied_links;  // 0 links: memory is shared, so that it is no copy
  };
  for (std::uint32_t port = 0; port < outputs.size(); ++port) {
    const Value& value = outputs[port];
    if (!value || !has_tensors(*value)) continue;
    std::vector<Wanted> wanted;
    const Source source{producer, port};
    {
      const std::lock_guard lock(mutex_);
      count_readers();
      for (auto r = readers_.lower_bound({source, 0});
           r != readers_.end() && r->first.source == source; ++r) {
        const std::uint32_t to = r->first.to, home = home_of(source);
        if (is_at(value, to)) continue;
        const auto reads = [this](const Link& l) {
          return !l.lazy && expected_[l.reader].load(std::memory_order_relaxed);
        };
        if (std::ranges::none_of(r->second, reads)) continue;
        const bool is_copied = topology_.link(home, to).kind != LinkFacts::Kind::same;
        wanted.push_back({to, is_copied ? static_cast<std::uint32_t>(r->second.size()) : 0});
      }
    }
    for (const auto& [to, copied_links] : wanted) {
      const std::shared_ptr<Entry> at = entry({source, to});
      const std::lock_guard starting(at->mutex);
      start(*at, value, {source, to});
      if (copied_links == 0) continue;
      sent.push_back({port, copied_links});
      at->sent = true;  // before its readers become ready
      any_sent_.store(true, std::memory_order_relaxed);
    }
  }
}

const heddle_value* Transfers::bring(const Value& value, const Source& source, NodeIndex reader,
                                     std::uint32_t flags) {
  const auto where_made = [&] {
    if (steps_ != nullptr) steps_->read(reader, source, StepObserver::kWhereMade);
    return value.get();
  };
  if ((flags & HEDDLE_PORT_PASS) != 0) return where_made();
  if (!any_sent_.load(std::memory_order_relaxed) && (!value || !has_tensors(*value)))
    return where_made();
  const Reading read = reading(source, reader, flags);
  std::shared_ptr<Entry> at = find_sent(read);  // stays: this reader has not finished
  if (at == nullptr) {
    if (!value || !has_tensors(*value) || is_at(value, read.to)) return where_made();
    at = entry(read);
  }
  const std::lock_guard bringing(at->mutex);
  start(*at, value, read);
  for (const auto& transfer : at->transfers) transfer->await();
  if (steps_ != nullptr) steps_->read(reader, source, read.to);
  return at->value.get();
}

Value Transfers::sent_copy(const Source& source, NodeIndex reader, std::uint32_t flags) {
  if ((flags & HEDDLE_PORT_PASS) != 0) return {};
  const std::shared_ptr<Entry> at = find_sent(reading(source, reader, flags));
  if (at == nullptr) return {};
  const std::lock_guard bringing(at->mutex);
  for (const auto& transfer : at->transfers) transfer->await();
  return at->value;
}

// A link from a node that may be asked for, and is not, keeps its copy till the run's end.
void Transfers::finish_copies(NodeIndex reader, std::vector<Reading>& copies) {
  std::vector<std::shared_ptr<Entry>> dropped;  // after the lock: memory may take time to go
  const std::lock_guard lock(mutex_);
  for_each_reading(reader, [&](const Reading& reading, bool) {
    const auto at = entries_.find(reading);
    if (at == entries_.end()) return;
    if (at->second->sent) copies.push_back(reading);
    if (--at->second->readers > 0) return;
    if (steps_ != nullptr) steps_->release_copy(reading.source, reading.to, at->second->value);
    dropped.push_back(std::move(at->second));
    entries_.erase(at);
  });
}

}  // namespace heddle::engine
