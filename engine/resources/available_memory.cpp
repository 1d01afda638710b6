#include "engine/resources/available_memory.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/memory/host_tensor.h"
#include "engine/resources/kept_models.h"
#include "engine/tensor/shape.h"

namespace heddle::engine {

namespace {

const DeviceMemory* memory_on(const DeviceState& device, const Tensor& tensor) {
  const auto* memory = dynamic_cast<const DeviceMemory*>(tensor->storage.get());
  return memory != nullptr && &memory->state() == &device ? memory : nullptr;
}

bool may_have_tensors(const Value& value) {
  const heddle_kind kind = value ? kind_of(*value) : HEDDLE_KIND_NONE;
  return kind == HEDDLE_KIND_TENSOR || kind == HEDDLE_KIND_LIST || kind == HEDDLE_KIND_RECORD;
}

// What comes free when all shares of a cached value go, of the memory that `is_there` means: of
// tensors that nobody else holds.
template <class IsThere>
std::uint64_t bytes_alone(const Value& value, std::uint32_t shares, IsThere&& is_there) {
  std::uint64_t bytes = 0;
  if (!may_have_tensors(value) || value->refs.load(std::memory_order_acquire) > shares) return 0;
  for_each_tensor(*value, [&](const Tensor& tensor) {
    const bool is_alone =
        tensor->refs.load(std::memory_order_acquire) == 1 && tensor->storage.use_count() == 1;
    if (is_alone && is_there(tensor)) bytes += tensor->storage->bytes();
  });
  return bytes;
}

std::uint64_t bytes_alone_on(const DeviceState& device, const Value& value, std::uint32_t shares) {
  return bytes_alone(value, shares,
                     [&](const Tensor& tensor) { return memory_on(device, tensor) != nullptr; });
}

// In host memory of no device.
std::uint64_t bytes_alone_in_host(const Value& value, std::uint32_t shares) {
  return bytes_alone(value, shares, [](const Tensor& tensor) {
    return dynamic_cast<const HostTensorMemory*>(tensor->storage.get()) != nullptr;
  });
}

bool is_on(const DeviceState& device, const Value& value) {
  bool found = false;
  if (may_have_tensors(value))
    for_each_tensor(*value, [&](const Tensor& tensor) {
      found = found || memory_on(device, tensor) != nullptr;
    });
  return found;
}

// A copy of what lies on the device, if there is room for it. Waits for the device.
Value in_host_memory(DeviceState& device, const std::shared_ptr<Ledger>& host, const Value& value) {
  const auto copy = [&](const Tensor& tensor) -> Tensor {
    if (memory_on(device, tensor) == nullptr) return tensor;
    const heddle_tensor_info& old = tensor->info;
    // Whoever is short of memory here shall not need more of it.
    if (!is_contiguous(old)) throw Error(Code::unsupported, "a cached value with gaps");
    const heddle_tensor_info info =
        checked_info(make_info(old.dtype, std::span(old.shape, old.rank)), "a cached value");
    const Tensor made = try_make_host_tensor(info, host);
    if (!made) throw Error(Code::out_of_memory, "the host has no room for cached values");
    device.read(tensor, made->data(), dense_bytes(info));
    return made;
  };
  try {
    return map_tensors(value, copy);
  } catch (const Error&) {
    return {};  // no room, or packed for a device: it is made again when it is wanted
  }
}

void evict_weights(Environment& environment, std::size_t d, std::uint64_t missing,
                   WeightStore::Reach reach) {
  const RunDevice& device = environment.devices[d];
  if (device.weights->evict(missing, environment.forecast.next_uses(), reach) > 0)
    device.state->trim_quietly();
}

void evict_values(Environment& environment, std::size_t d, std::uint64_t missing) {
  DeviceState& device = *environment.devices[d].state;
  const bool is_host = device.device().host_visible();
  const auto there = [&](const Value& value, std::uint32_t shares) {
    return bytes_alone_on(device, value, shares);
  };
  const auto instead = [&](const Value& value) {
    return is_host ? Value() : in_host_memory(device, environment.host_ledger, value);
  };
  if (environment.cache.make_room(missing, there, instead) > 0) device.trim_quietly();
}

// What records share comes free with the last of them, so it goes on as long as any is evicted.
void evict_host_values(Environment& environment, std::uint64_t missing) {
  const auto taken = [&] { return environment.host_ledger->report().taken; };
  const auto nothing = [](const Value&) { return Value(); };
  while (missing > 0) {
    const std::uint64_t before = taken();
    if (environment.cache.make_room(missing, bytes_alone_in_host, nothing) == 0) return;
    missing -= std::min(missing, before - std::min(before, taken()));
  }
}

}  // namespace

void install_eviction(Environment& environment) {
  if (environment.host_ledger != nullptr)
    environment.host_ledger->on_shortage(
        EvictionOrder::cached_values, &environment.cache,
        [&environment](std::uint64_t missing) { evict_host_values(environment, missing); });
  for (std::size_t d = 0; d < environment.devices.size(); ++d) {
    const DeviceState* const who = environment.devices[d].state.get();
    // A parent is short of memory for another device: what this one holds of it helps, too.
    for (Ledger* ledger = &who->ledger(); ledger != nullptr; ledger = ledger->parent()) {
      ledger->on_shortage(EvictionOrder::weights_without_use, who,
                          [&environment, d](std::uint64_t missing) {
                            evict_weights(environment, d, missing, WeightStore::Reach::without_use);
                          });
      ledger->on_shortage(
          EvictionOrder::cached_values, who,
          [&environment, d](std::uint64_t missing) { evict_values(environment, d, missing); });
      ledger->on_shortage(EvictionOrder::weights_in_use, who,
                          [&environment, d](std::uint64_t missing) {
                            evict_weights(environment, d, missing, WeightStore::Reach::all);
                          });
    }
  }
}

std::uint64_t cached_bytes(Environment& environment, std::size_t d) {
  std::uint64_t bytes = 0;
  const auto count = [&](const Value& value, std::uint32_t shares) -> std::uint64_t {
    bytes += bytes_alone_on(*environment.devices[d].state, value, shares);
    return 0;
  };
  environment.cache.make_room(0, count, [](const Value&) { return Value(); });
  return bytes;
}

std::uint64_t cached_host_bytes(Environment& environment) {
  std::uint64_t bytes = 0;
  const auto count = [&](const Value& value, std::uint32_t shares) -> std::uint64_t {
    bytes += bytes_alone_in_host(value, shares);
    return 0;
  };
  environment.cache.make_room(0, count, [](const Value&) { return Value(); });
  return bytes;
}

std::uint64_t unload(Environment& environment, std::size_t d) {
  const RunDevice& device = environment.devices[d];
  const std::uint64_t before = device.state->memory_use().reserved;
  device.weights->unload();
  environment.cache.drop_if([&](const Hash128&, std::span<const Value> outputs) {
    return std::ranges::any_of(outputs, [&](const Value& v) { return is_on(*device.state, v); });
  });
  device.state->trim();
  const std::uint64_t after = device.state->memory_use().reserved;
  return before - std::min(before, after);
}

bool give_back(Environment& environment, std::size_t d) {
  const RunDevice& device = environment.devices[d];
  try {
    evict_values(environment, d, ~std::uint64_t{0});
    release_models(std::uint32_t(d), environment);
    unload(environment, d);
    const bool is_unpinned = environment.host_weights == nullptr ||
                             environment.host_weights->release_pinned(device.state->device());
    return is_unpinned && device.state->close();
  } catch (const std::exception& error) {
    log(Level::warning, cat("device ", device.state->device().name(),
                            " does not give back all that it holds: ", error.what()));
    return false;
  }
}

void expire(Environment& environment, double now, double seconds) {
  for (const RunDevice& device : environment.devices)
    if (device.weights->expire(now, seconds) > 0) device.state->trim();
}

void update_available(Topology& topology, const std::vector<RunDevice>& devices) {
  const std::size_t count = std::min(topology.devices.size(), devices.size());
  // Host memory may have less than all CPU devices' budgets together: then each has its share of
  // that.
  const auto in_host = [&](std::size_t d) {
    return devices[d].state->ledger().parent() != nullptr;
  };
  double shares = 0;
  for (std::size_t d = 0; d < count; ++d)
    if (in_host(d)) shares += double(devices[d].state->ledger().budget());
  for (std::size_t d = 0; d < count; ++d) {
    Ledger& ledger = devices[d].state->ledger();
    std::uint64_t most = ledger.most();
    if (in_host(d) && shares > 0) {
      const double share = double(ledger.budget()) / shares;
      most = std::min(most, std::uint64_t(double(ledger.parent()->most()) * share));
    }
    topology.devices[d].memory_free = std::min(most, topology.devices[d].memory_total);
  }
}

Value brought_to_host(Environment& environment, Value value) {
  for (const RunDevice& device : environment.devices) {
    if (device.state->device().host_visible() || !is_on(*device.state, value)) continue;
    if (Value copied = in_host_memory(*device.state, environment.host_ledger, value))
      value = std::move(copied);
  }
  return value;
}

}  // namespace heddle::engine
