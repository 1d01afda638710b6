// my_plugin, a kind of device: a part of the CPU that runs its work at once, on the thread that
// enqueues it. It offers two ops in f32. A real device fills the same tables with calls that return
// before the work is done (heddle/abi/device.h).
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <heddle/device.hpp>

namespace {

namespace device = heddle::device;

struct Device {
  const heddle_host* host;
};
struct Stream {
  Device* device;
};
Device& as_device(heddle_device* raw) { return *reinterpret_cast<Device*>(raw); }
Stream& as_stream(heddle_stream* raw) { return *reinterpret_cast<Stream*>(raw); }

// What `work` throws becomes a status that begins with the name of the device.
template <class Work>
heddle_status* guard(const Device& self, Work&& work) {
  return device::guard(self.host, "my_plugin:0", work);
}

// ---- the device ----

std::uint32_t count() { return 1; }

heddle_status* open(const heddle_host* host, heddle_device_index index, const heddle_value* options,
                    heddle_device** out) {
  return device::guard(host, "my_plugin", [&] {
    if (index != 0) device::fail(HEDDLE_NOT_FOUND, "there is one device, not number ", index);
    // The engine tells every kind of device how many threads it may use.
    device::Options(host, options).only({"threads", "share_index", "share_count"});
    *out = reinterpret_cast<heddle_device*>(new Device{host});
  });
}

void close(heddle_device* raw) { delete &as_device(raw); }

heddle_status* info(heddle_device*, heddle_device_info* out) {
  const auto page = std::uint64_t(sysconf(_SC_PAGESIZE));
  *out = {};
  out->size = sizeof *out;
  device::cat("my_plugin on the CPU").copy(out->name, sizeof out->name - 1);
  device::cat("host").copy(out->location, sizeof out->location - 1);
  out->memory_total = std::uint64_t(sysconf(_SC_PHYS_PAGES)) * page;
  out->memory_free = std::uint64_t(sysconf(_SC_AVPHYS_PAGES)) * page;
  out->alignment = 64;
  out->host_visible = 1;
  out->compute = HEDDLE_F32;
  return nullptr;
}

heddle_status* alloc(heddle_device* raw, std::size_t bytes, void** out) {
  return guard(as_device(raw), [&] {
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + 63) / 64 * 64;
    *out = rounded < bytes ? nullptr : std::aligned_alloc(64, rounded);
    if (*out == nullptr) device::fail(HEDDLE_OUT_OF_MEMORY, "there are no ", bytes, " bytes left");
  });
}
void free_memory(heddle_device*, void* memory) { std::free(memory); }

// ---- order: whatever was enqueued is done ----

heddle_status* stream_make(heddle_device* raw, heddle_stream** out) {
  return guard(as_device(raw),
               [&] { *out = reinterpret_cast<heddle_stream*>(new Stream{&as_device(raw)}); });
}
void stream_free(heddle_stream* raw) { delete &as_stream(raw); }
heddle_status* event_make(heddle_device* raw, heddle_event** out) {
  return guard(as_device(raw), [&] { *out = reinterpret_cast<heddle_event*>(new char); });
}
void event_free(heddle_event* raw) { delete reinterpret_cast<char*>(raw); }
heddle_status* record(heddle_stream*, heddle_event*) { return nullptr; }
heddle_status* wait_on_stream(heddle_stream*, heddle_event*) { return nullptr; }
heddle_status* wait(heddle_event*) { return nullptr; }
std::int32_t done(heddle_event*) { return 1; }

// ---- copies and weights ----

std::int32_t can_copy(heddle_device* self, heddle_device* peer) {
  return peer == nullptr || peer == self ? 1 : 0;
}
heddle_status* copy(heddle_stream*, heddle_device*, void* dst, heddle_device*, const void* src,
                    std::size_t bytes) {
  if (bytes > 0) std::memmove(dst, src, bytes);
  return nullptr;
}

// HEDDLE_UNSUPPORTED: it runs nodes, and no models yet.
heddle_status* weight_layout(heddle_device* raw, heddle_use, const heddle_tensor_info*,
                             heddle_weight_layout*) {
  return guard(as_device(raw), [] { device::fail(HEDDLE_UNSUPPORTED, "it holds no weights"); });
}
heddle_status* make_weight(heddle_device* raw, heddle_stream*, heddle_use,
                           const heddle_weight_layout*, std::uint32_t, const heddle_view* const*,
                           void*) {
  return guard(as_device(raw), [] { device::fail(HEDDLE_UNSUPPORTED, "it holds no weights"); });
}

// ---- kernels ----

// Calls work(offset in a, offset in b), in elements, for each element of tensors of one shape.
template <class Work>
void for_each_element(const heddle_tensor_info& a, const heddle_tensor_info& b, Work&& work) {
  for (std::int64_t i = 0, all = device::element_count(a); i < all; ++i) {
    std::int64_t rest = i, at_a = 0, at_b = 0;
    for (std::uint32_t axis = a.rank; axis-- > 0; rest /= a.shape[axis]) {
      at_a += rest % a.shape[axis] * a.stride[axis];
      at_b += rest % a.shape[axis] * b.stride[axis];
    }
    work(at_a, at_b);
  }
}

bool is_plain(const heddle_view* view) {
  return view != nullptr && view->info.dtype == HEDDLE_F32 && view->info.layout == 0;
}
float* elements(const heddle_view& view) { return static_cast<float*>(view.data); }

// What a kernel fits, it runs; a plan asks before there is any memory.
std::int32_t fits_fill(heddle_device*, const heddle_op_call* call) {
  return call->out_count == 1 && is_plain(call->out[0]) ? 1 : 0;
}
heddle_status* fill(heddle_device* raw, heddle_stream*, const heddle_op_call* call, void*) {
  return guard(as_device(raw), [&] {
    const heddle_view& out = *call->out[0];
    const auto value = static_cast<float>(device::attributes<heddle_fill_attrs>(*call).value);
    for_each_element(out.info, out.info,
                     [&](std::int64_t at, std::int64_t) { elements(out)[at] = value; });
  });
}

std::int32_t fits_scale_clamp(heddle_device*, const heddle_op_call* call) {
  const heddle_view* const x = device::operand(*call, 0);
  if (call->out_count != 1 || !is_plain(x) || !is_plain(call->out[0])) return 0;
  const heddle_tensor_info &from = x->info, &to = call->out[0]->info;
  return from.rank == to.rank && std::equal(from.shape, from.shape + from.rank, to.shape) ? 1 : 0;
}
heddle_status* scale_clamp(heddle_device* raw, heddle_stream*, const heddle_op_call* call, void*) {
  return guard(as_device(raw), [&] {
    const heddle_view &x = *call->in[0], &out = *call->out[0];
    const auto& attrs = device::attributes<heddle_scale_clamp_attrs>(*call);
    for_each_element(out.info, x.info, [&](std::int64_t to, std::int64_t from) {
      const double value = elements(x)[from] * attrs.scale + attrs.shift;
      elements(out)[to] = static_cast<float>(std::min(std::max(value, attrs.low), attrs.high));
    });
  });
}

constexpr heddle_kernel kFill{
    sizeof(heddle_kernel), HEDDLE_OP_FILL, "my_plugin", "plain", &fits_fill, &fill, nullptr};
constexpr heddle_kernel kScaleClamp{
    sizeof(heddle_kernel), HEDDLE_OP_SCALE_CLAMP, "my_plugin", "plain",
    &fits_scale_clamp,     &scale_clamp,          nullptr};
const heddle_kernel* const kKernels[] = {&kFill, &kScaleClamp, nullptr};

// ---- what the plugin provides ----

const heddle_device_desc kDevice{sizeof(heddle_device_desc),
                                 1,
                                 "my_plugin",
                                 &count,
                                 &open,
                                 &close,
                                 &info,
                                 &alloc,
                                 &free_memory,
                                 &stream_make,
                                 &stream_free,
                                 &event_make,
                                 &event_free,
                                 &record,
                                 &wait_on_stream,
                                 &wait,
                                 &done,
                                 &can_copy,
                                 &copy,
                                 &weight_layout,
                                 &make_weight,
                                 kKernels,
                                 nullptr};

const heddle_list* provide(const char* kind) {
  static const void* const devices[] = {&kDevice};
  static const heddle_list list{1, devices};
  return std::string_view(kind) == HEDDLE_DEVICES ? &list : nullptr;
}
heddle_status* init(const heddle_host*) { return nullptr; }
void deinit() {}

}  // namespace

extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry;
const heddle_plugin heddle_entry = {sizeof(heddle_plugin),
                                    HEDDLE_ABI_MAJOR,
                                    HEDDLE_ABI_MINOR,
                                    "org.example.my_plugin",
                                    "1.0.0",
                                    &provide,
                                    &init,
                                    &deinit};
