#include "engine/resources/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <thread>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/memory/host_buffer.h"
#include "engine/resources/random_values.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/ops.h"

namespace heddle::engine {

namespace {

constexpr double kLongEnough =
    0.1;                     // seconds: then what it costs to start is no part of the figure
constexpr int kRepeats = 3;  // the best one counts: others may have been disturbed
// Of GEMMs, for so many seconds before their rate is taken: a card that its power limits is
// faster at first than in a run's steps.
constexpr double kSustained = 0.4;
// Rounds of so many seconds, each with as long a rest after it, as of a model in layers; the later
// half of them counts.
constexpr double kRound = 0.06;
constexpr int kRounds = 12;
constexpr double kStandsOut = 1.02;  // measured again, rates differ by less
constexpr int kLaunches = 200;
constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20, kMostBytes = std::uint64_t{1} << 28;
// Two GEMMs, to 4 times the width and back, of 3/2 as many rows as they are wide, and attention
// over so many tokens in 24 heads of 128: at most as in a model of 12 billion parameters. Large
// squares reach a rate that no model's layers do.
constexpr std::int64_t kLeastWidth = 96, kMostWidth = 3072;
constexpr std::int64_t kLeastTokens = 144, kMostTokens = 4608, kHeads = 24, kHead = 128;

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
  if (const heddle_device_timing* timing = device.extensions().timing)
    throw_status(timing->elapsed(begin.raw(), end.raw(), &took.device), device.name());
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

// In the compute type.
Tensor random_input(DeviceState& state, std::span<const std::int64_t> shape) {
  const Tensor x = state.make(make_info(state.device().compute(), shape));
  const heddle_tensor_info info = make_info(HEDDLE_F32, shape);
  const Tensor wide = state.upload(info, random_values(element_count(info), 1).data());
  heddle_tensor* const in[] = {wide.get()};
  heddle_tensor* const out[] = {x.get()};
  state.op(op_id(HEDDLE_OP_COPY), in, out, {});
  return x;
}

enum class GemmOf : std::uint8_t { compute, fp8, int8 };

// The matrix of a GEMM in the layout that the device's kernels read.
Tensor gemm_weight(DeviceState& state, GemmOf of, std::int64_t rows, std::int64_t columns) {
  const std::int64_t shape[] = {rows, columns};
  const std::vector<float> values = random_values(rows * columns, columns);
  const bool is_whole = of == GemmOf::int8;
  const std::int32_t use = of == GemmOf::fp8 ? HEDDLE_USE_LINEAR_FP8 : HEDDLE_USE_LINEAR;
  const heddle_tensor_info info = make_info(is_whole ? HEDDLE_I8_SCALED : HEDDLE_F32, shape);
  const std::vector<std::byte> blocks =
      is_whole ? whole_blocks(values, columns) : std::vector<std::byte>();
  const void* const data = is_whole ? static_cast<const void*>(blocks.data()) : values.data();
  const heddle_weight_layout layout = state.device().weight_layout(
      use, of == GemmOf::fp8 ? make_info(HEDDLE_F8_E4M3, shape) : info);
  auto memory = state.allocate(layout.bytes);
  state.with_stream([&](Stream& stream) {
    state.device().make_weight(stream, use, layout, {{info, const_cast<void*>(data)}},
                               memory->data());
  });
  state.synchronize();  // the values go
  return make_tensor(layout.info, std::move(memory));
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

// The same in rounds with rests between them.
template <class F>
double at_half_time(DeviceState& state, const Took& one, F&& enqueue) {
  const int count = std::max(1, int(kRound / std::max(one.device, one.host)));
  double seconds = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Took took = time(state, [&] {
      for (int i = 0; i < count; ++i) enqueue();
    });
    std::this_thread::sleep_for(std::chrono::duration<double>(took.host));
    if (round >= kRounds / 2) seconds += took.device;
  }
  return seconds / (kRounds - kRounds / 2) / count;
}

struct GemmRates {  // flop/s
  double sustained = 0;
  double half_time = 0;  // 0: no more than that
};

GemmRates gemm_rates(DeviceState& state, GemmOf of, double launch) {
  for (std::int64_t width = of == GemmOf::int8 ? kWholeBlock : kLeastWidth;; width *= 2) {
    const std::int64_t inner = 4 * width, tokens = width * 3 / 2;
    const std::int64_t narrow[] = {tokens, width}, wide[] = {tokens, inner};
    const Tensor x = random_input(state, narrow), up = gemm_weight(state, of, inner, width),
                 down = gemm_weight(state, of, width, inner), inside = filled(state, wide),
                 y = filled(state, narrow);
    const heddle_activation_attrs attrs{};
    const auto multiply = [&](const Tensor& from, const Tensor& weight, const Tensor& to) {
      heddle_tensor* const in[] = {from.get(), weight.get(), nullptr, nullptr};
      heddle_tensor* const out[] = {to.get()};
      state.op(op_id(HEDDLE_OP_LINEAR), in, out, std::as_bytes(std::span(&attrs, 1)));
    };
    const auto both = [&] {
      multiply(x, up, inside);
      multiply(inside, down, y);
    };
    const Took took = best_of(state, both);
    const bool has_room =
        std::uint64_t(17 * inner * width) * sizeof(float) <= 2 * most_bytes(state);  // of the next
    if (is_long_enough(took) || !has_room || width * 2 > kMostWidth) {
      const auto rate = [&](double seconds) {
        return 4.0 * double(tokens) * double(width) * double(inner) /
               std::max(seconds - 2 * launch, 1e-9);
      };
      GemmRates rates{rate(sustained(state, took, both))};
      // What works in host memory shares its power with the host, which does not rest.
      // Where GEMMs are as short as launches, two rates say little of each other.
      if (is_long_enough(took) || took.device < 20 * launch || state.device().host_visible() ||
          of != GemmOf::compute)
        return rates;
      if (const double rested = rate(at_half_time(state, took, both));
          rested > kStandsOut * rates.sustained)
        rates.half_time = rested;
      return rates;
    }
  }
}

// Whether it multiplies numbers of 8 bits: it then keeps their matrices in a layout of their own.
bool has_fp8_gemm(const Device& device) {
  const std::int64_t shape[] = {kLeastWidth, kLeastWidth};
  const heddle_tensor_info info = make_info(HEDDLE_F8_E4M3, shape);
  return device.weight_layout(HEDDLE_USE_LINEAR_FP8, info).info.layout !=
         device.weight_layout(HEDDLE_USE_LINEAR, info).info.layout;
}

// The same of whole numbers, which it does where it is asked to. Others keep them as they keep what
// else is in blocks.
bool has_int8_gemm(const Device& device) {
  const std::int64_t shape[] = {kWholeBlock, kWholeBlock};
  const auto layout_of = [&](heddle_dtype dtype) {
    return device.weight_layout(HEDDLE_USE_LINEAR, make_info(dtype, shape)).info.layout;
  };
  try {
    return layout_of(HEDDLE_I8_SCALED) != layout_of(HEDDLE_Q8_0);
  } catch (const Error& error) {  // a device may have no blocks at all
    if (error.code() != Code::unsupported) throw;
    return false;
  }
}

// 0 where there is no room for the smallest.
double attention_flops_per_second(DeviceState& state, double launch) {
  const auto has_room = [&](std::int64_t tokens) {
    return std::uint64_t(4 * tokens * kHeads * kHead) * sizeof(float) <= most_bytes(state);
  };
  for (std::int64_t tokens = kLeastTokens; has_room(tokens); tokens *= 2) {
    const std::int64_t shape[] = {1, tokens, kHeads, kHead};
    const Tensor q = random_input(state, shape), k = random_input(state, shape),
                 v = random_input(state, shape), out = filled(state, shape);
    heddle_tensor* const in[] = {q.get(), k.get(), v.get(), nullptr};
    heddle_tensor* const to[] = {out.get()};
    const heddle_attention_attrs attrs{1 / std::sqrt(double(kHead)), 0, 0};
    const auto attend = [&] {
      state.op(op_id(HEDDLE_OP_ATTENTION), in, to, std::as_bytes(std::span(&attrs, 1)));
    };
    const Took took = best_of(state, attend);
    if (is_long_enough(took) || !has_room(2 * tokens) || tokens * 2 > kMostTokens)
      return 4.0 * double(tokens) * double(tokens) * double(kHeads * kHead) /
             std::max(sustained(state, took, attend) - launch, 1e-9);
  }
  return 0;
}

// One end of a link: a device's memory, or the host's, pinned for a device or as it comes.
struct End {
  DeviceState* state = nullptr;
  std::shared_ptr<const Device> pinned_for{};
  std::shared_ptr<DeviceMemory> memory{};
  std::shared_ptr<HostBudget> room = std::make_shared<HostBudget>();  // as much as the system has
  std::unique_ptr<HostBuffer> pinned{};
  std::vector<std::byte> host{};

  void make(std::uint64_t bytes) {
    if (state != nullptr) {
      memory = state->allocate(bytes);
    } else if (pinned_for != nullptr) {
      pinned = nullptr;  // before there is another
      pinned = std::make_unique<HostBuffer>(*room->reserve(bytes), pinned_for);
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
              const std::function<void(const std::string&)>& progress) {
  std::set<std::string> models;
  for (const RunDevice& each : devices) {
    DeviceState& state = *each.state;
    if (!models.insert(state.device().model()).second) continue;
    progress(cat("measuring ", state.device().name(), " (", state.device().model(), ")"));
    const double launch = launch_seconds(state);
    DeviceCosts& costs = known.devices[state.device().model()];
    const GemmRates rates = gemm_rates(state, GemmOf::compute, launch);
    costs = {.flops_per_second = rates.sustained,
             .bytes_per_second = memory_bytes_per_second(state, launch),
             .launch_seconds = launch,
             .attention_flops_per_second = attention_flops_per_second(state, launch),
             .half_time_flops_per_second = rates.half_time};
    if (has_fp8_gemm(state.device()))
      costs.fp8_flops_per_second = gemm_rates(state, GemmOf::fp8, launch).sustained;
    if (has_int8_gemm(state.device()))
      costs.int8_flops_per_second = gemm_rates(state, GemmOf::int8, launch).sustained;
  }
  std::vector<DeviceState*> ends{nullptr};
  for (const RunDevice& each : devices) ends.push_back(each.state.get());
  std::set<std::pair<std::string, std::string>> pairs;
  for (DeviceState* from : ends)
    for (DeviceState* to : ends) {
      End source{from}, target{to};
      if (from == to || !is_measured(source.device(), target.device())) continue;
      if (!pairs.emplace(source.model(), target.model()).second) continue;
      progress(cat("measuring the link from ", from == nullptr ? "host" : from->device().name(),
                   " to ", to == nullptr ? "host" : to->device().name()));
      known.links[{source.model(), target.model()}] =
          link_costs(std::move(source), std::move(target), kMostBytes);
    }
  for (const RunDevice& each : devices) {
    DeviceState& state = *each.state;
    const std::string model = state.device().model();
    if (!is_pinned_for(state.device(), pinned_bytes) || !pairs.emplace(kPinnedHost, model).second)
      continue;
    progress(cat("measuring the link from ", kPinnedHost, " to ", state.device().name()));
    try {
      known.links[{kPinnedHost, model}] =
          link_costs({nullptr, state.share_device()}, {&state}, pinned_bytes);
    } catch (const Error& error) {
      if (error.code() != Code::out_of_memory) throw;
      progress(cat("not measured: ", error.what()));  // nor will weights find such memory
    }
  }
  return known;
}

}  // namespace heddle::engine
