#include "engine/session/kernels_ahead.h"

#include <algorithm>
#include <exception>
#include <set>

#include "engine/base/hash.h"
#include "engine/program/session_spec.h"
#include "engine/session/call_needs.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

namespace {

// What takes long is compiling, each op by itself.
constexpr unsigned kMostThreads = 16;

heddle_op_call call_of(const OpToAsk& op, std::vector<const heddle_view*>& pointers) {
  pointers.resize(op.views.size());
  for (std::size_t i = 0; i < pointers.size(); ++i)
    pointers[i] = op.is_given[i] ? &op.views[i] : nullptr;
  return {sizeof(heddle_op_call),
          op_name(op.op),
          std::uint32_t(op.in_count),
          std::uint32_t(op.views.size() - op.in_count),
          pointers.data(),
          pointers.data() + op.in_count,
          op.attrs.data(),
          std::uint32_t(op.attrs.size())};
}

OpToAsk copy_of(std::uint32_t device, const heddle_op_call& call) {
  OpToAsk op{device, op_id(call.op), {}, {}, call.in_count, {}};
  const auto add = [&](std::uint32_t count, const heddle_view* const* views) {
    for (std::uint32_t i = 0; i < count; ++i) {
      op.views.push_back(views[i] == nullptr ? heddle_view{}
                                             : heddle_view{views[i]->info, nullptr});
      op.is_given.push_back(views[i] != nullptr);
    }
  };
  add(call.in_count, call.in);
  add(call.out_count, call.out);
  const auto* attrs = static_cast<const std::byte*>(call.attrs);
  op.attrs.assign(attrs, attrs + call.attrs_size);
  return op;
}

Hash128 key_of(const OpToAsk& op) {
  Hasher key;
  key.add(op.device).add(op.op).add(op.in_count).add(op.views.size());
  for (std::size_t i = 0; i < op.views.size(); ++i) {
    const heddle_tensor_info& info = op.views[i].info;
    key.add(bool(op.is_given[i])).add(info.dtype).add(info.layout).add(info.rank);
    for (std::uint32_t axis = 0; axis < info.rank; ++axis)
      key.add(info.shape[axis]).add(info.stride[axis]);
  }
  return key.add(std::span<const std::byte>(op.attrs)).finish();
}

}  // namespace

std::vector<OpToAsk> ops_ahead(const Graph& graph, const Plan& plan, const Inferred& inferred,
                               const Topology& topology, const Environment& environment) {
  static constexpr heddle_kernel kNobody{};
  std::vector<OpToAsk> ops;
  std::set<Hash128> known;
  const auto add_call = [&](const CallSpec& call, const PlacedCall& placed, std::uint32_t home) {
    const std::vector<std::uint32_t> devices = session_devices(placed.placement, home);
    plan_with_room(call, placed.placement, home, topology, environment,
                   [&](std::uint32_t device_slot, const heddle_op_call& op) {
                     const std::uint32_t device = devices[device_slot];
                     if (!environment.devices[device].state->device().host_visible()) {
                       OpToAsk copy = copy_of(device, op);
                       if (known.insert(key_of(copy)).second) ops.push_back(std::move(copy));
                     }
                     return ChosenKernel{&kNobody, 0};
                   });
  };
  for (const NodeIndex n : plan.order.empty() ? graph.order : plan.order) {
    const Assignment& assignment = plan.assignments[n];
    const std::vector<CallSpec>& calls = inferred.nodes[n].calls;
    for (std::size_t c = 0; c < std::min(calls.size(), assignment.calls.size()); ++c) {
      if (assignment.on_host || !assignment.calls[c].known) continue;
      try {
        add_call(calls[c], assignment.calls[c], home_of(assignment, c));
      } catch (const std::exception&) {
        // The run says what is wrong with it.
      }
    }
  }
  return ops;
}

KernelsAhead::KernelsAhead(const Graph& graph, const Plan& plan, const Inferred& inferred,
                           const Topology& topology, const Environment& environment)
    : graph_(graph),
      plan_(plan),
      inferred_(inferred),
      topology_(topology),
      environment_(environment) {
  const bool has_devices = std::ranges::any_of(environment.devices, [](const RunDevice& device) {
    return !device.state->device().host_visible();
  });
  try {
    if (has_devices) thread_ = std::thread([this] { ask_all(); });
  } catch (const std::system_error&) {
    // No thread is to be had: sessions ask themselves.
  }
}

KernelsAhead::~KernelsAhead() {
  stops_ = true;
  wait();
}

void KernelsAhead::wait() {
  if (thread_.joinable()) thread_.join();
}

void KernelsAhead::ask_all() {
  std::vector<std::thread> others;
  try {
    ops_ = ops_ahead(graph_, plan_, inferred_, topology_, environment_);
    open_devices();
    const std::size_t most = std::min<std::size_t>(
        {ops_.size(), kMostThreads, std::max(2u, std::thread::hardware_concurrency())});
    for (std::size_t t = 1; t < most; ++t) others.emplace_back([this] { ask_next(); });
  } catch (const std::exception&) {
    // With as many as there are.
  }
  ask_next();
  for (std::thread& other : others) other.join();
}

// A device that has not worked yet has nothing to ask its libraries with. An event is the least
// that there is to be made on one.
void KernelsAhead::open_devices() const {
  std::set<std::uint32_t> devices;
  for (const OpToAsk& op : ops_) devices.insert(op.device);
  for (const std::uint32_t device : devices)
    const Event opened(environment_.devices[device].state->device());
}

void KernelsAhead::ask_next() {
  std::vector<const heddle_view*> pointers;
  for (std::size_t i = next_++; i < ops_.size() && !stops_; i = next_++) {
    const DeviceState& state = *environment_.devices[ops_[i].device].state;
    try {
      const heddle_op_call call = call_of(ops_[i], pointers);
      const heddle_kernel& kernel = state.kernels().choose(state.device(), call);
      if (kernel.workspace != nullptr) kernel.workspace(state.device().raw(), &call);
    } catch (const std::exception&) {
      // The run says what is wrong with it.
    }
  }
}

}  // namespace heddle::engine
