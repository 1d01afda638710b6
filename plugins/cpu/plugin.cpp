// The plugin's face: the entry symbol and the device table, in which every C function is a few
// lines over a class of this folder.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "device.h"
#include "heddle/control_groups.hpp"
#include "heddle/device.hpp"
#include "kernels.h"
#include "machine.h"
#include "plugins/blocks/attention_fp8.h"
#include "plugins/blocks/linear_int8.h"
#include "stream.h"
#include "weight.h"

namespace heddle::cpu {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

// ---- devices ----

// The devices that are open: a foreign device's handle must not be looked into.
std::mutex open_mutex;
std::vector<const Device*> open_devices;  // open_mutex

std::uint32_t count() { return 1; }

heddle_status* open(const heddle_host* host, std::uint32_t index, const heddle_value* options,
                    heddle_device** out) {
  return device::guard(host, device::cat("cpu:", index), [&] {
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

template <class Text>
void write_text(Text& field, const std::string& text) {
  const std::size_t length = std::min(text.size(), sizeof field - 1);
  std::memcpy(field, text.data(), length);
  field[length] = '\0';
}

heddle_status* info(heddle_device* device, heddle_device_info* out) {
  const Device& self = as_device(device);
  return device::guard(self.host(), self.name(), [&] {
    const machine::Memory room = machine::memory();
    *out = {};
    out->size = sizeof *out;
    // Kernels that are capped, and attention and products in 8 bits, give other bytes: such a
    // processor counts as another model.
    const char* const cap = std::getenv("ONEDNN_MAX_CPU_ISA");
    write_text(out->name, processor_name() + (cap == nullptr ? "" : std::string(", ") + cap) +
                              (self.settings().attention_fp8 ? blocks::kFp8AttentionModel : "") +
                              (self.settings().linear_int8 ? blocks::kInt8ProductsModel : ""));
    write_text(out->location, "host");
    out->memory_total = room.total;
    out->memory_free = room.free;
    out->alignment = kAlignment;
    out->host_visible = 1;
    out->compute = self.settings().compute;
    out->threads = self.settings().threads;
  });
}

// ---- memory ----

heddle_status* alloc(heddle_device* device, std::size_t bytes, void** out) {
  const Device& self = as_device(device);
  return device::guard(self.host(), self.name(), [&] {
    // The system promises more memory than it has and ends the process when it is used: refuse
    // here.
    if (bytes > self.memory_total())
      device::fail(HEDDLE_OUT_OF_MEMORY, bytes, " bytes were asked for, this process may use ",
                   self.memory_total(), ". Lower the budget");
    const bool large = bytes >= 2 * kHugePage;
    const std::size_t alignment = large ? kHugePage : kAlignment;
    const std::size_t rounded =
        std::max(alignment, (bytes + alignment - 1) / alignment * alignment);
    void* memory = std::aligned_alloc(alignment, rounded);
    if (memory == nullptr)
      device::fail(HEDDLE_OUT_OF_MEMORY, "the system has no ", bytes,
                   " bytes of memory left. Lower the budget");
    if (large)
      // A hint: fewer misses in the page tables, or nothing. Not for the last page, most of which
      // may never be used.
      madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
    *out = memory;
  });
}

void free_memory(heddle_device*, void* memory) { std::free(memory); }

// ---- order ----

// What an event's handle points to.
struct Event {
  const heddle_host* host;
  std::shared_ptr<EventState> state;
};
// A stream's handle points to a Stream; this one also knows whom to tell about failures.
struct OwnedStream : Stream {
  OwnedStream(Device& device) : Stream(device.pool(), device.name()), host(device.host()) {}
  const heddle_host* host;
};

Event& as_event(heddle_event* event) { return *reinterpret_cast<Event*>(event); }
OwnedStream& as_owned(heddle_stream* stream) {
  return static_cast<OwnedStream&>(as_stream(stream));
}

heddle_status* stream_make(heddle_device* device, heddle_stream** out) {
  Device& self = as_device(device);
  return device::guard(self.host(), self.name(), [&] {
    Stream* made = new OwnedStream(self);
    *out = reinterpret_cast<heddle_stream*>(made);
  });
}

void stream_free(heddle_stream* stream) {
  if (stream != nullptr) delete &as_owned(stream);
}

heddle_status* event_make(heddle_device* device, heddle_event** out) {
  const Device& self = as_device(device);
  return device::guard(self.host(), self.name(), [&] {
    *out = reinterpret_cast<heddle_event*>(new Event{self.host(), std::make_shared<EventState>()});
  });
}

void event_free(heddle_event* event) {
  if (event != nullptr) delete &as_event(event);
}

heddle_status* record(heddle_stream* stream, heddle_event* event) {
  return device::guard(as_owned(stream).host, "record",
                       [&] { as_stream(stream).record(as_event(event).state); });
}

heddle_status* wait_on_stream(heddle_stream* stream, heddle_event* event) {
  return device::guard(as_owned(stream).host, "wait_on_stream",
                       [&] { as_stream(stream).wait_for(as_event(event).state); });
}

heddle_status* wait(heddle_event* event) {
  const Event& self = as_event(event);
  const auto failure = self.state->wait(self.state->expected());
  if (failure == nullptr) return nullptr;
  self.state->report(failure);
  return self.host->fail(self.host, failure->code, failure->message.c_str());
}

std::int32_t done(heddle_event* event) { return as_event(event).state->reached() ? 1 : 0; }

heddle_status* elapsed(heddle_event* begin, heddle_event* end, double* seconds) {
  return device::guard(as_event(begin).host, "elapsed", [&] {
    const auto from = as_event(begin).state->time(), to = as_event(end).state->time();
    if (!from || !to)
      device::fail(HEDDLE_INVALID_ARGUMENT, "the ", from ? "second" : "first",
                   " event has not been reached. Wait for it first");
    *seconds = std::chrono::duration<double>(*to - *from).count();
  });
}

void set_cancel(heddle_stream* stream, heddle_cancel* flag) {
  as_stream(stream).set_cancel(device::Cancel(flag));
}

// ---- copies ----

// Host memory, or an open device of this plugin: all of one address space.
bool is_ours(heddle_device* peer) {
  if (peer == nullptr) return true;
  const std::lock_guard lock(open_mutex);
  return std::find(open_devices.begin(), open_devices.end(), &as_device(peer)) !=
         open_devices.end();
}

std::int32_t can_copy(heddle_device*, heddle_device* peer) { return is_ours(peer) ? 1 : 0; }

heddle_status* link(heddle_device*, heddle_device* peer, heddle_link* out) {
  *out = {.size = sizeof(heddle_link),
          .kind = is_ours(peer) ? HEDDLE_LINK_SAME : HEDDLE_LINK_NONE,
          .bytes_per_second = 0,
          .latency_seconds = 0};
  return nullptr;
}

heddle_status* copy(heddle_stream* stream, heddle_device*, void* dst, heddle_device*,
                    const void* src, std::size_t bytes) {
  return device::guard(as_owned(stream).host, "copy", [&] {
    as_stream(stream).enqueue(
        {"copy", nullptr}, Work([dst, src, bytes](Stream& self) {
          constexpr std::size_t kTile = std::size_t{1} << 20;
          self.parallel_for(static_cast<std::int64_t>((bytes + kTile - 1) / kTile),
                            [&](std::int64_t tile, Scratch&) {
                              const std::size_t begin = static_cast<std::size_t>(tile) * kTile;
                              std::memcpy(static_cast<std::byte*>(dst) + begin,
                                          static_cast<const std::byte*>(src) + begin,
                                          std::min(kTile, bytes - begin));
                            });
        }));
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
  const Device& self = as_device(device);
  return device::guard(self.host(), self.name(),
                       [&] { make_weight(as_stream(stream), *layout, part_count, parts, dst); });
}

// ---- tables ----

constexpr heddle_device_links kLinks = {.link = link};
constexpr heddle_device_timing kTiming = {.elapsed = elapsed};
constexpr heddle_device_uses kUses = {.last = HEDDLE_USE_BIAS, .reserved = 0};
constexpr heddle_device_cancel kCancel = {.set = set_cancel};

const void* extension(const char* name) {
  const std::string_view asked = name;
  if (asked == HEDDLE_DEVICE_LINKS) return &kLinks;
  if (asked == HEDDLE_DEVICE_TIMING) return &kTiming;
  if (asked == HEDDLE_DEVICE_USES) return &kUses;
  if (asked == HEDDLE_DEVICE_CANCEL) return &kCancel;
  return nullptr;
}

constexpr heddle_device_desc kDesc = {
    .size = sizeof(heddle_device_desc),
    .version = 1,
    .kind = "cpu",
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
    .wait = wait,
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

const heddle_list* provide(const char* kind) {
  return std::strcmp(kind, HEDDLE_DEVICES) == 0 ? &kDevices : nullptr;
}

}  // namespace

}  // namespace heddle::cpu

const heddle_plugin heddle_entry = {
    .size = sizeof(heddle_plugin),
    .abi_major = HEDDLE_ABI_MAJOR,
    .abi_minor = HEDDLE_ABI_MINOR,
    .id = "org.heddle.cpu",
    .version = "0.1.0",
    .provide = heddle::cpu::provide,
};
