// The plugin's face: the entry symbol and the device table, in which every C function is a few
// lines over a class of this folder. On a machine without a driver or a GPU there are zero devices,
// and the log says why, once and for those who look for it: it is no fault.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "device.h"
#include "device_memory.h"
#include "heddle/device.hpp"
#include "identity.h"
#include "kernels.h"
#include "nvml.h"
#include "pinned.h"
#include "sharing.h"
#include "stream.h"
#include "weight.h"

namespace heddle::cuda {

namespace {

// ---- devices ----

// The devices that are open: a foreign device's handle must not be looked into.
std::mutex open_mutex;
std::vector<const Device*> open_devices;  // open_mutex

bool is_ours(heddle_device* peer) {
  const std::lock_guard lock(open_mutex);
  return std::find(open_devices.begin(), open_devices.end(), &as_device(peer)) !=
         open_devices.end();
}

const heddle_host* log_host = nullptr;  // written once, by init()
std::once_flag cards_reported;

std::uint32_t count() {
  std::call_once(cards_reported, [] {
    if (log_host != nullptr) report_cards(*log_host);
  });
  return static_cast<std::uint32_t>(cards().size());
}

heddle_status* open(const heddle_host* host, std::uint32_t index, const heddle_value* options,
                    heddle_device** out) {
  return device::guard(host, device::cat("cuda:", index), [&] {
    auto made = std::make_unique<Device>(host, index, options);
    const std::lock_guard lock(open_mutex);
    open_devices.push_back(made.get());
    *out = handle(made.release());
  });
}

void close(heddle_device* device) {
  if (device == nullptr) return;
  {
    const std::lock_guard lock(open_mutex);
    std::erase(open_devices, &as_device(device));
  }
  delete &as_device(device);
}

// Runs work on the device; what it throws gets the device's name.
template <class Work>
heddle_status* on(Device& device, Work&& work) {
  return device::guard(device.host(), device.name(), [&] {
    device.use();
    work();
  });
}

heddle_status* info(heddle_device* device, heddle_device_info* out) {
  Device& self = as_device(device);
  return device::guard(self.host(), self.name(), [&] {
    *out = {};
    out->size = sizeof *out;
    self.describe(*out);
  });
}

// ---- memory ----

// Not from CUDA's own pool: the engine pools, and what it gives back other processes shall have at
// once.
heddle_status* alloc(heddle_device* device, std::size_t bytes, void** out) {
  Device& self = as_device(device);
  return on(self, [&] {
    // Beyond any card; sizes near the end of the number range would wrap when they are rounded up.
    if (bytes > std::numeric_limits<std::size_t>::max() / 4)
      device::fail(HEDDLE_OUT_OF_MEMORY, bytes, " bytes were asked for. Lower the budget");
    const cudaError_t error = allocate_device_memory(self.ordinal(), bytes, out);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      std::size_t free = 0, total = 0;
      cudaMemGetInfo(&free, &total);
      device::fail(HEDDLE_OUT_OF_MEMORY, "the driver has no room: ", bytes,
                   " bytes were asked for, ", free, " of ", total, " are free. Lower the budget");
    }
    self.check(error, "memory of the device");
    self.add_thing();
  });
}

void free_memory(heddle_device* device, void* memory) {
  if (memory == nullptr) return;
  cudaSetDevice(as_device(device).ordinal());
  free_device_memory(memory);
  as_device(device).remove_thing();
}

heddle_status* pinned_alloc(heddle_device* device, std::size_t bytes, void** out) {
  Device& self = as_device(device);
  return on(self, [&] {
    self.check(allocate_pinned(bytes, out), "cudaHostAlloc");
    self.add_thing();
  });
}

void pinned_free(heddle_device* device, void* memory) {
  if (memory == nullptr) return;
  cudaSetDevice(as_device(device).ordinal());  // or the first card would get a context
  free_pinned(memory);
  as_device(device).remove_thing();
}

// ---- order ----

heddle_status* stream_make(heddle_device* device, heddle_stream** out) {
  Device& self = as_device(device);
  return on(self, [&] { *out = reinterpret_cast<heddle_stream*>(new Stream(self)); });
}

void stream_free(heddle_stream* stream) {
  if (stream != nullptr) delete &as_stream(stream);
}

void* stream_native(heddle_stream* stream) { return as_stream(stream).raw(); }

heddle_status* event_make(heddle_device* device, heddle_event** out) {
  Device& self = as_device(device);
  return on(self, [&] { *out = reinterpret_cast<heddle_event*>(new Event(self)); });
}

void event_free(heddle_event* event) {
  if (event != nullptr) delete &as_event(event);
}

heddle_status* record(heddle_stream* stream, heddle_event* event) {
  return on(as_stream(stream).device(), [&] { as_stream(stream).record(as_event(event)); });
}

heddle_status* wait_on_stream(heddle_stream* stream, heddle_event* event) {
  return on(as_stream(stream).device(), [&] { as_stream(stream).wait_for(as_event(event)); });
}

heddle_status* wait_for(heddle_event* event) {
  return on(as_event(event).device, [&] { wait(as_event(event)); });
}

// What has failed is done: wait() says how.
std::int32_t done(heddle_event* event) {
  cudaSetDevice(as_event(event).device.ordinal());
  if (cudaEventQuery(as_event(event).raw) != cudaErrorNotReady) return 1;
  cudaGetLastError();  // or the next launch would be told that it had failed
  return 0;
}

heddle_status* elapsed(heddle_event* begin, heddle_event* end, double* seconds) {
  Device& self = as_event(begin).device;
  return on(self, [&] {
    for (const Event* event : {&as_event(begin), &as_event(end)})
      if (!event->recorded || cudaEventQuery(event->raw) == cudaErrorNotReady)
        device::fail(HEDDLE_INVALID_ARGUMENT, "elapsed: the ",
                     event == &as_event(begin) ? "first" : "second",
                     " event has not been reached. Wait for it first");
    float milliseconds = 0;
    self.check(cudaEventElapsedTime(&milliseconds, as_event(begin).raw, as_event(end).raw),
               "cudaEventElapsedTime");
    *seconds = static_cast<double>(milliseconds) * 1e-3;
  });
}

// ---- copies ----

bool is_same(const Device& a, const Device& b) { return a.card().uuid == b.card().uuid; }

std::int32_t can_copy(heddle_device* device, heddle_device* peer) {
  if (peer == nullptr) return 1;
  if (!is_ours(peer)) return 0;
  Device &self = as_device(device), &other = as_device(peer);
  return is_same(self, other) || peer_way(self.card(), other.card()).is_direct ? 1 : 0;
}

heddle_status* link(heddle_device* device, heddle_device* peer, heddle_link* out) {
  Device& self = as_device(device);
  return device::guard(self.host(), self.name(), [&] {
    *out = {.size = sizeof(heddle_link),
            .kind = HEDDLE_LINK_DIRECT,
            .bytes_per_second = 0,
            .latency_seconds = 10e-6};
    if (peer == nullptr) {
      out->bytes_per_second = nvml::pcie_bytes_per_second(self.card().uuid);
      return;
    }
    if (can_copy(device, peer) == 0) {
      out->kind = HEDDLE_LINK_NONE;
      out->latency_seconds = 0;
      return;
    }
    const Device& other = as_device(peer);
    if (is_same(self, other)) {
      out->kind = HEDDLE_LINK_SAME;
      out->latency_seconds = 0;
      return;
    }
    const bool is_nvlink = peer_way(self.card(), other.card()).is_nvlink;
    const double nvlink = is_nvlink ? nvml::nvlink_bytes_per_second(self.card().uuid) : 0;
    out->bytes_per_second = nvlink > 0 ? nvlink : nvml::pcie_bytes_per_second(self.card().uuid);
    // Over PCIe the copy engines are better at it than kernels.
    if (nvlink > 0) out->kind = HEDDLE_LINK_PEER;
  });
}

heddle_status* copy(heddle_stream* stream, heddle_device* to, void* dst, heddle_device* from,
                    const void* src, std::size_t bytes) {
  Device& self = as_stream(stream).device();
  return on(self, [&] {
    if (bytes == 0) return;
    const cudaStream_t raw = as_stream(stream).raw();
    if (to != nullptr && from != nullptr && !is_same(as_device(to), as_device(from)))
      self.check(cudaMemcpyPeerAsync(dst, as_device(to).ordinal(), src, as_device(from).ordinal(),
                                     bytes, raw),
                 "cudaMemcpyPeerAsync");
    else if (to == nullptr && from != nullptr)
      as_stream(stream).copy_to_host(dst, src, bytes);
    else
      self.check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, raw), "cudaMemcpyAsync");
  });
}

// ---- weights ----

heddle_status* weight_layout_of(heddle_device* device, std::int32_t use,
                                const heddle_tensor_info* info, heddle_weight_layout* out) {
  const Device& self = as_device(device);
  return device::guard(self.host(), self.name(), [&] { *out = weight_layout(self, use, *info); });
}

heddle_status* make_weight_of(heddle_device* device, heddle_stream* stream, std::int32_t,
                              const heddle_weight_layout* layout, std::uint32_t part_count,
                              const heddle_view* const* parts, void* dst) {
  return on(as_device(device),
            [&] { make_weight(as_stream(stream), *layout, part_count, parts, dst); });
}

// ---- captured graphs ----

constexpr std::uint64_t kLeastGraph = 4 << 20, kMostNodeBytes = 64 << 10;

struct CapturedGraph {
  Device& device;
  cudaGraphExec_t graph = nullptr;
  std::uint64_t bytes = 0;
};

CapturedGraph& as_captured_graph(heddle_captured_graph* captured_graph) {
  return *reinterpret_cast<CapturedGraph*>(captured_graph);
}

heddle_status* capture_begin(heddle_stream* stream) {
  return on(as_stream(stream).device(), [&] { as_stream(stream).begin_capture(); });
}

heddle_status* capture_end(heddle_stream* stream, heddle_captured_graph** out) {
  Device& self = as_stream(stream).device();
  return on(self, [&] {
    const cudaGraph_t graph = as_stream(stream).end_capture();
    auto made = std::make_unique<CapturedGraph>(CapturedGraph{self});
    std::size_t nodes = 0, before = 0, after = 0, total = 0;
    cudaGraphGetNodes(graph, nullptr, &nodes);
    cudaMemGetInfo(&before, &total);
    cudaError_t error = cudaGraphInstantiate(&made->graph, graph, 0);
    cudaGraphDestroy(graph);
    self.check(error, "cudaGraphInstantiate");
    error = cudaGraphUpload(made->graph, as_stream(stream).raw());
    if (error != cudaSuccess) cudaGraphExecDestroy(made->graph);
    self.check(error, "cudaGraphUpload");
    // The driver does not say what a graph takes. What others take and free meanwhile is in the
    // difference, too, so it counts no further than a graph of so many nodes can be large.
    if (cudaMemGetInfo(&after, &total) == cudaSuccess && after < before)
      made->bytes = std::min<std::uint64_t>(before - after, kLeastGraph + nodes * kMostNodeBytes);
    self.add_thing();
    *out = reinterpret_cast<heddle_captured_graph*>(made.release());
  });
}

heddle_status* replay(heddle_stream* stream, heddle_captured_graph* captured_graph) {
  Device& self = as_stream(stream).device();
  return on(self, [&] {
    self.check(cudaGraphLaunch(as_captured_graph(captured_graph).graph, as_stream(stream).raw()),
               "cudaGraphLaunch");
  });
}

void captured_graph_free(heddle_captured_graph* captured_graph) {
  if (captured_graph == nullptr) return;
  cudaSetDevice(as_captured_graph(captured_graph).device.ordinal());
  cudaGraphExecDestroy(as_captured_graph(captured_graph).graph);
  as_captured_graph(captured_graph).device.remove_thing();
  delete &as_captured_graph(captured_graph);
}

std::uint64_t captured_graph_bytes(heddle_captured_graph* captured_graph) {
  return as_captured_graph(captured_graph).bytes;
}

// ---- tables ----

constexpr heddle_device_pinned kPinned = {.alloc = pinned_alloc, .free = pinned_free};
constexpr heddle_device_native kNative = {.stream = stream_native};
constexpr heddle_device_capture kCapture = {.begin = capture_begin,
                                            .end = capture_end,
                                            .replay = replay,
                                            .free = captured_graph_free,
                                            .bytes = captured_graph_bytes,
                                            .keeps_other_streams = 1,
                                            .reserved = 0};
constexpr heddle_device_links kLinks = {.link = link};
constexpr heddle_device_timing kTiming = {.elapsed = elapsed};
constexpr heddle_device_uses kUses = {.last = HEDDLE_USE_BIAS, .reserved = 0};

const void* extension(const char* name) {
  const std::string_view asked = name;
  if (asked == HEDDLE_DEVICE_PINNED) return &kPinned;
  if (asked == HEDDLE_DEVICE_NATIVE) return &kNative;
  if (asked == HEDDLE_DEVICE_CAPTURE) return &kCapture;
  if (asked == HEDDLE_DEVICE_LINKS) return &kLinks;
  if (asked == HEDDLE_DEVICE_TIMING) return &kTiming;
  if (asked == HEDDLE_DEVICE_USES) return &kUses;
  if (asked == HEDDLE_DEVICE_SHARING) return sharing_table();
  return identity_extension(asked);
}

constexpr heddle_device_desc kDesc = {
    .size = sizeof(heddle_device_desc),
    .version = 1,
    .kind = "cuda",
    .count = count,
    .open = open,
    .close = close,
    .info = info,
    .alloc = alloc,
    .free = free_memory,
    .stream_make = stream_make,
    .stream_free = stream_free,
    .event_make = event_make,
    .event_free = event_free,
    .record = record,
    .wait_on_stream = wait_on_stream,
    .wait = wait_for,
    .done = done,
    .can_copy = can_copy,
    .copy = copy,
    .weight_layout = weight_layout_of,
    .make_weight = make_weight_of,
    .kernels = kKernels,
    .extension = extension,
};

const void* const kItems[] = {&kDesc};
const heddle_list kDevices = {.count = 1, .items = kItems};

heddle_status* init(const heddle_host* host) {
  log_host = host;
  return nullptr;
}

const heddle_list* provide(const char* kind) {
  return std::strcmp(kind, HEDDLE_DEVICES) == 0 ? &kDevices : nullptr;
}

}  // namespace
}  // namespace heddle::cuda

const heddle_plugin heddle_entry = {
    .size = sizeof(heddle_plugin),
    .abi_major = HEDDLE_ABI_MAJOR,
    .abi_minor = HEDDLE_ABI_MINOR,
    .id = "org.heddle.cuda",
    .version = "0.1.0",
    .provide = heddle::cuda::provide,
    .init = heddle::cuda::init,
};
