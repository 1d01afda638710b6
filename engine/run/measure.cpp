#include "engine/run/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <span>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/memory/host_buffer.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/ops.h"

namespace heddle::core {

namespace {

constexpr double kLongEnough =
    0.1;                     // seconds: then what it costs to start is no part of the figure
constexpr int kRepeats = 3;  // the best one counts: others may have been disturbed
// Of products, for so many seconds before their rate is taken: a card that its power limits is
// faster at first than in a run's steps.
constexpr double kSustained = 0.4;
constexpr int kLaunches = 200;
constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20, kMostBytes = std::uint64_t{1} << 28;
constexpr std::int64_t kLeastSize = 128, kMostSize = 8192;

struct Took {
  double device = 0;  // by the device's clock where it has one
  double host = 0;
};

// How long the device takes for what enqueue() puts on its main stream.
template <class F>
Took time(DeviceState& state, F&& enqueue) {
  const Device& device = state.device();
  state.synchronize();
  const Event begin(device), end(device);
  const auto began = std::chrono::steady_clock::now();
  state.record(begin);
  enqueue();
  state.record(end);
  end.wait();
  const double host =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  Took took{host, host};
  if (device.desc().elapsed != nullptr)
    throw_status(device.desc().elapsed(begin.raw(), end.raw(), &took.device), device.name());
  return took;
}

template <class F>
Took best_of(DeviceState& state, F&& enqueue) {
  Took best = time(state, enqueue);  // the first one may build or load something
  best = time(state, enqueue);
  for (int i = 1; i < kRepeats; ++i) {
    const Took again = time(state, enqueue);
    if (again.device < best.device) best = again;
  }
  return best;
}

// By the host's clock too: simulated seconds may be few where the real ones are many.
bool is_long_enough(const Took& took) { return std::max(took.device, took.host) >= kLongEnough; }

Tensor filled(DeviceState& state, std::span<const std::int64_t> shape) {
  const Tensor tensor = state.make(make_info(state.device().compute(), shape));
  const heddle_fill_attrs attrs{0.5};
  heddle_tensor* const out[] = {tensor.get()};
  state.op(op_id(HEDDLE_OP_FILL), {}, out, std::as_bytes(std::span(&attrs, 1)));
  return tensor;
}

std::uint64_t most_bytes(const DeviceState& state) {
  const std::uint64_t free = state.device().info().memory_free;
  return free == 0 ? kMostBytes : std::clamp(free / 16, kLeastBytes, kMostBytes);
}

double launch_seconds(DeviceState& state) {
  const std::int64_t one[] = {1};
  const Tensor from = filled(state, one), to = filled(state, one);
  heddle_tensor* const in[] = {from.get()};
  heddle_tensor* const out[] = {to.get()};
  const Took took = best_of(state, [&] {
    for (int i = 0; i < kLaunches; ++i) state.op(op_id(HEDDLE_OP_COPY), in, out, {});
  });
  return took.device / kLaunches;
}

double memory_bytes_per_second(DeviceState& state, double launch) {
  for (std::uint64_t bytes = kLeastBytes;; bytes *= 2) {
    const std::int64_t shape[] = {
        std::int64_t(bytes / dtype_size(DType(state.device().compute())))};
    const Tensor from = filled(state, shape), to = filled(state, shape);
    heddle_tensor* const in[] = {from.get()};
    heddle_tensor* const out[] = {to.get()};
    const Took took = best_of(state, [&] { state.op(op_id(HEDDLE_OP_COPY), in, out, {}); });
    if (is_long_enough(took) || bytes * 2 > most_bytes(state))
      return 2.0 * double(bytes) / std::max(took.device - launch, 1e-9);
  }
}

// As models' numbers are, of variance 1 over `width`: how much power a product takes, and so how
// fast it is, depends on their bits. The same every time (Numerical Recipes' generator of 32 bits).
std::vector<float> random_values(std::int64_t count, std::int64_t width) {
  std::vector<float> values(static_cast<std::size_t>(count));
  const float scale = std::sqrt(3.0f / float(width)) / 2147483648.0f;
  std::uint32_t bits = 1;
  for (float& value : values) {
    bits = bits * 1664525u + 1013904223u;
    value = float(std::int32_t(bits)) * scale;
  }
  return values;
}

Tensor product_input(DeviceState& state, std::int64_t size) {
  const std::int64_t shape[] = {size, size};
  const Tensor x = state.make(make_info(state.device().compute(), shape));
  const Tensor wide =
      state.upload(make_info(HEDDLE_F32, shape), random_values(size * size, 1).data());
  heddle_tensor* const in[] = {wide.get()};
  heddle_tensor* const out[] = {x.get()};
  state.op(op_id(HEDDLE_OP_COPY), in, out, {});
  return x;
}

// The matrix of a product in the form that the device's kernels read.
Tensor product_weight(DeviceState& state, std::int64_t size) {
  const std::int64_t shape[] = {size, size};
  const heddle_tensor_info info = make_info(HEDDLE_F32, shape);
  std::vector<float> values = random_values(size * size, size);
  const heddle_weight_form form = state.device().weight_form(HEDDLE_USE_LINEAR, info);
  auto memory = state.allocate(form.bytes);
  state.with_stream([&](Stream& stream) {
    state.device().make_weight(stream, HEDDLE_USE_LINEAR, form, {{info, values.data()}},
                               memory->data());
  });
  state.synchronize();  // the values go
  return make_tensor(form.info, std::move(memory));
}

// Seconds of one of many in a row, where one is short.
template <class F>
double sustained(DeviceState& state, const Took& one, F&& enqueue) {
  if (is_long_enough(one)) return one.device;
  const int count = int(kSustained / std::max(one.device, one.host));
  const auto all = [&] {
    for (int i = 0; i < count; ++i) enqueue();
  };
  time(state, all);
  return time(state, all).device / count;
}

double flops_per_second(DeviceState& state, double launch) {
  for (std::int64_t size = kLeastSize;; size *= 2) {
    const std::int64_t shape[] = {size, size};
    const Tensor x = product_input(state, size), weight = product_weight(state, size),
                 y = filled(state, shape);
    heddle_tensor* const in[] = {x.get(), weight.get(), nullptr, nullptr};
    heddle_tensor* const out[] = {y.get()};
    const heddle_activation_attrs attrs{};
    const auto multiply = [&] {
      state.op(op_id(HEDDLE_OP_LINEAR), in, out, std::as_bytes(std::span(&attrs, 1)));
    };
    const Took took = best_of(state, multiply);
    const bool has_room =
        std::uint64_t(2 * size) * std::uint64_t(2 * size) * sizeof(float) * 2 <= most_bytes(state);
    if (is_long_enough(took) || !has_room || size * 2 > kMostSize)
      return 2.0 * double(size) * double(size) * double(size) /
             std::max(sustained(state, took, multiply) - launch, 1e-9);
  }
}

// One end of a link: a device's memory, or the host's, pinned for a device or as it comes.
struct End {
  DeviceState* state = nullptr;
  std::shared_ptr<const Device> pinned_for{};
  std::shared_ptr<DeviceMemory> memory{};
  std::unique_ptr<HostBuffer> pinned{};
  std::vector<std::byte> host{};

  void make(std::uint64_t bytes) {
    if (state != nullptr) {
      memory = state->allocate(bytes);
    } else if (pinned_for != nullptr) {
      pinned = nullptr;  // before there is another
      pinned = std::make_unique<HostBuffer>(pinned_for, bytes);
      std::fill_n(pinned->data(), bytes, std::byte{});
    } else {
      host.resize(bytes);
    }
  }
  std::byte* data() {
    return state != nullptr ? memory->data() : pinned != nullptr ? pinned->data() : host.data();
  }
  const Device* device() const { return state == nullptr ? nullptr : &state->device(); }
  std::string model() const {
    return state != nullptr        ? state->device().model()
           : pinned_for != nullptr ? kPinnedHost
                                   : "host";
  }
};

// With at most so many bytes at a time.
LinkCosts link_costs(End from, End to, std::uint64_t most) {
  DeviceState& worker =
      to.state == nullptr ? *from.state : *to.state;  // who copies when a run does
  const auto took = [&](std::uint64_t bytes) {
    return best_of(worker, [&] {
      worker.with_stream([&](Stream& stream) {
        worker.device().copy(stream, to.device(), to.data(), from.device(), from.data(), bytes);
      });
    });
  };
  for (std::uint64_t bytes = kLeastBytes;; bytes *= 2) {
    from.make(bytes);
    to.make(bytes);
    const double latency = took(1).device;
    const Took all = took(bytes);
    if (is_long_enough(all) || bytes * 2 > std::min(most, most_bytes(worker)))
      return {double(bytes) / std::max(all.device - latency, 1e-9), latency};
  }
}

// Whether weights can be streamed to it from pinned memory, at least as much as is measured.
bool is_pinned_for(const Device& device, std::uint64_t pinned_bytes) {
  return device.has_pinned() && !device.host_visible() && pinned_bytes >= kLeastBytes;
}

// The ways on which a device copies by itself; what goes through the host is two of them.
bool is_measured(const Device* from, const Device* to) {
  const auto is_host = [](const Device* d) { return d == nullptr || d->host_visible(); };
  if (is_host(from) && is_host(to)) return false;
  if (from == nullptr || to == nullptr) return true;
  if (is_host(from) || is_host(to)) return false;
  return from->kind() == to->kind() && to->desc().can_copy != nullptr &&
         to->desc().can_copy(to->raw(), from->raw()) != 0;
}

}  // namespace

Costs measure(const std::vector<RunDevice>& devices, Costs known, std::uint64_t pinned_bytes,
              const std::function<void(const std::string&)>& tell) {
  std::set<std::string> models;
  for (const RunDevice& each : devices) {
    DeviceState& state = *each.state;
    if (!models.insert(state.device().model()).second) continue;
    tell(cat("measuring ", state.device().name(), " (", state.device().model(), ")"));
    const double launch = launch_seconds(state);
    known.devices[state.device().model()] = {flops_per_second(state, launch),
                                             memory_bytes_per_second(state, launch), launch};
  }
  std::vector<DeviceState*> ends{nullptr};
  for (const RunDevice& each : devices) ends.push_back(each.state.get());
  std::set<std::pair<std::string, std::string>> pairs;
  for (DeviceState* from : ends)
    for (DeviceState* to : ends) {
      End source{from}, target{to};
      if (from == to || !is_measured(source.device(), target.device())) continue;
      if (!pairs.emplace(source.model(), target.model()).second) continue;
      tell(cat("measuring the link from ", from == nullptr ? "host" : from->device().name(), " to ",
               to == nullptr ? "host" : to->device().name()));
      known.links[{source.model(), target.model()}] =
          link_costs(std::move(source), std::move(target), kMostBytes);
    }
  for (const RunDevice& each : devices) {
    DeviceState& state = *each.state;
    const std::string model = state.device().model();
    if (!is_pinned_for(state.device(), pinned_bytes) || !pairs.emplace(kPinnedHost, model).second)
      continue;
    tell(cat("measuring the link from ", kPinnedHost, " to ", state.device().name()));
    try {
      known.links[{kPinnedHost, model}] =
          link_costs({nullptr, state.share_device()}, {&state}, pinned_bytes);
    } catch (const Error& error) {
      if (error.code() != Code::out_of_memory) throw;
      tell(cat("not measured: ", error.what()));  // nor will weights find such memory
    }
  }
  return known;
}

}  // namespace heddle::core
