// The plugin's face: the entry symbol, the device table, a kernel for each op that the cpu device
// has, and the table by which tests take hold of the devices (fake_control.h).
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "control.h"
#include "device.h"
#include "heddle/device.hpp"
#include "kernels.h"
#include "shuffler.h"

namespace heddle::fake {

namespace {

const heddle_host* the_host = nullptr;  // from init to deinit

Device& as_device(heddle_device* device) { return *reinterpret_cast<Device*>(device); }
Stream& as_stream(heddle_stream* stream) { return *reinterpret_cast<Stream*>(stream); }

// Runs work on an object of a device; what it throws begins with the device's name.
template <class Work>
heddle_status* guard(const Device& device, Work&& work) {
  return device::guard(device.host(), device.name(), std::forward<Work>(work));
}

// ---- devices ----

std::uint32_t count() {
  std::uint32_t result = 0;
  heddle_status* status =
      device::guard(the_host, "fake devices", [&] { result = environment_count(the_host); });
  if (status != nullptr) {
    the_host->log(the_host, HEDDLE_ERROR, the_host->status_message(status));
    the_host->status_free(status);
  }
  return result;
}

heddle_status* open(const heddle_host* host, std::uint32_t index, const heddle_value* options,
                    heddle_device** out) {
  return device::guard(host, device::cat("fake:", index), [&] {
    *out = reinterpret_cast<heddle_device*>(new Device(host, index, options));
  });
}

void close(heddle_device* device) {
  if (device != nullptr) delete &as_device(device);
}

template <class Text>
void write_text(Text& field, const std::string& text) {
  const std::size_t length = std::min(text.size(), sizeof field - 1);
  std::memcpy(field, text.data(), length);
  field[length] = '\0';
}

heddle_status* info(heddle_device* device, heddle_device_info* out) {
  Device& self = as_device(device);
  return guard(self, [&] {
    self.require_alive();
    const Configuration configuration = self.configuration();
    const std::uint64_t taken =
        self.memory().use().used + index_state(self.index()).foreign_bytes.load();
    *out = {};
    out->size = sizeof *out;
    write_text(out->name, configuration.name);
    write_text(out->location, self.name());
    out->memory_total = self.memory().capacity();
    out->memory_free = out->memory_total - std::min(taken, out->memory_total);
    out->alignment = Memory::kAlignment;
    out->compute = self.cpu().compute();
    out->flops_per_second = configuration.flops;
    out->bytes_per_second = configuration.bandwidth;
  });
}

// ---- memory ----

heddle_status* alloc(heddle_device* device, std::size_t bytes, void** out) {
  Device& self = as_device(device);
  return guard(self, [&] { *out = self.allocate(bytes); });
}

void free_memory(heddle_device* device, void* memory) {
  Device& self = as_device(device);
  heddle_status* status = guard(self, [&] { self.free(memory); });
  if (status == nullptr) return;
  self.host()->log(self.host(), HEDDLE_ERROR, self.host()->status_message(status));
  self.host()->status_free(status);
}

heddle_status* alloc_pinned(heddle_device* device, std::size_t bytes, void** out) {
  Device& self = as_device(device);
  return guard(self, [&] { *out = self.allocate_pinned(bytes); });
}

void free_pinned(heddle_device* device, void* memory) {
  Device& self = as_device(device);
  heddle_status* status = guard(self, [&] { self.free_pinned(memory); });
  if (status == nullptr) return;
  self.host()->log(self.host(), HEDDLE_ERROR, self.host()->status_message(status));
  self.host()->status_free(status);
}

// ---- order ----

struct Event {
  Device& device;
  EventRef state = std::make_shared<EventState>();
};
Event& as_event(heddle_event* event) { return *reinterpret_cast<Event*>(event); }

heddle_status* stream_make(heddle_device* device, heddle_stream** out) {
  Device& self = as_device(device);
  return guard(self,
               [&] { *out = reinterpret_cast<heddle_stream*>(self.make_stream().release()); });
}

void stream_free(heddle_stream* stream) {
  if (stream == nullptr) return;
  Stream& self = as_stream(stream);
  self.device().forget(self);
  delete &self;
}

heddle_status* event_make(heddle_device* device, heddle_event** out) {
  Device& self = as_device(device);
  return guard(self, [&] {
    *out = reinterpret_cast<heddle_event*>(new Event{self});
    self.context().add_handle();
  });
}

void event_free(heddle_event* event) {
  if (event == nullptr) return;
  as_event(event).device.context().remove_handle();
  delete &as_event(event);
}

heddle_status* record(heddle_stream* stream, heddle_event* event) {
  Stream& self = as_stream(stream);
  return guard(self.device(), [&] { self.record(as_event(event).state); });
}

heddle_status* wait_on_stream(heddle_stream* stream, heddle_event* event) {
  Stream& self = as_stream(stream);
  return guard(self.device(), [&] { self.wait_for(as_event(event).state); });
}

heddle_status* wait(heddle_event* event) {
  const Event& self = as_event(event);
  const heddle_host* host = self.device.host();
  const EventState::Record point = self.state->last();
  if (self.device.shuffles())
    Shuffler::instance().run_until([&] { return self.state->reached(point.number); });
  const FailureRef failure = self.state->wait(point.number);
  self.device.clock().thread_waited(point.time);
  if (failure == nullptr) return nullptr;
  self.state->report(failure);
  return host->fail(host, failure->code, failure->message.c_str());
}

std::int32_t done(heddle_event* event) {
  const Event& self = as_event(event);
  const std::uint64_t number = self.state->last().number;
  if (self.state->reached(number)) return 1;
  // Whoever asks again and again shall not ask for ever.
  if (self.device.shuffles()) Shuffler::instance().run_one();
  return 0;
}

heddle_status* elapsed(heddle_event* begin, heddle_event* end, double* seconds) {
  const Event &from = as_event(begin), &to = as_event(end);
  return guard(from.device, [&] {
    for (const Event* event : {&from, &to}) {
      const std::uint64_t number = event->state->last().number;
      if (number == 0 || !event->state->reached(number))
        device::fail(HEDDLE_INVALID_ARGUMENT, "the ", event == &from ? "first" : "second",
                     " event has not been reached. Wait for it first");
    }
    Clock& clock = from.device.clock();
    *seconds = clock.seconds(to.state->last().time) - clock.seconds(from.state->last().time);
  });
}

// ---- copies ----

std::int32_t can_copy(heddle_device* device, heddle_device* peer) {
  if (peer == nullptr) return 1;
  const Device* other = OpenDevices::instance().find(peer);
  return other != nullptr && as_device(device).reaches(*other) ? 1 : 0;
}

heddle_status* copy(heddle_stream* stream, heddle_device* to, void* dst, heddle_device* from,
                    const void* src, std::size_t bytes) {
  Stream& self = as_stream(stream);
  return guard(self.device(), [&] {
    const auto side = [](heddle_device* device) -> Device* {
      if (device == nullptr) return nullptr;
      Device* found = OpenDevices::instance().find(device);
      if (found == nullptr)
        device::fail(HEDDLE_UNSUPPORTED,
                     "a copy from or to a device of another kind. Go through host memory");
      return found;
    };
    self.device().copy(self, side(to), dst, side(from), src, bytes);
  });
}

void set_cancel(heddle_stream* stream, heddle_cancel* flag) {
  as_stream(stream).set_cancel(device::Cancel(flag));
}

heddle_status* link(heddle_device* device, heddle_device* peer, heddle_link* out) {
  const Device& self = as_device(device);
  return guard(self, [&] {
    *out = {};
    out->size = sizeof *out;
    const Device* other = peer == nullptr ? nullptr : OpenDevices::instance().find(peer);
    if (other == &self) {
      out->kind = HEDDLE_LINK_SAME;
    } else if (peer == nullptr || (other != nullptr && self.reaches(*other))) {
      const LinkSpeed speed =
          self.configuration().link(self.index(), peer == nullptr ? kHost : other->index());
      out->kind = other != nullptr && self.reads(*other) ? HEDDLE_LINK_PEER : HEDDLE_LINK_DIRECT;
      out->bytes_per_second = speed.bytes_per_second;
      out->latency_seconds = speed.latency_seconds;
    }
  });
}

// ---- weights ----

heddle_status* weight_layout(heddle_device* device, std::int32_t use,
                             const heddle_tensor_info* info, heddle_weight_layout* out) {
  const Device& self = as_device(device);
  return guard(self, [&] {
    self.cpu().check(self.cpu().desc().weight_layout(self.cpu().raw(), use, info, out));
  });
}

heddle_status* make_weight(heddle_device* device, heddle_stream* stream, std::int32_t use,
                           const heddle_weight_layout* layout, std::uint32_t part_count,
                           const heddle_view* const* parts, void* dst) {
  Device& self = as_device(device);
  return guard(self,
               [&] { self.make_weight(as_stream(stream), use, *layout, part_count, parts, dst); });
}

// ---- who it is, and what it holds ----

heddle_status* identify(const heddle_host* host, std::uint32_t index,
                        heddle_device_identity_info* out) {
  return device::guard(host, device::cat("fake:", index), [&] {
    const Configuration configuration = read_configuration(host, index, nullptr);
    *out = {};
    out->size = sizeof *out;
    write_text(out->uuid, uuid_of(index));
    write_text(out->pci_address, pci_address_of(index));
    out->integrated = configuration.integrated ? 1 : 0;
  });
}

std::int32_t has_context(heddle_device* device) {
  return as_device(device).context().is_made() ? 1 : 0;
}

heddle_status* release_context(heddle_device* device) {
  Device& self = as_device(device);
  return guard(self,
               [&] { self.context().release(self.memory().use().used, self.pinned_bytes()); });
}

// ---- tables ----

constexpr heddle_device_pinned kPinned = {.alloc = alloc_pinned, .free = free_pinned};
constexpr heddle_device_links kLinks = {.link = link};
constexpr heddle_device_timing kTiming = {.elapsed = elapsed};
constexpr heddle_device_cancel kCancel = {.set = set_cancel};
constexpr heddle_device_identity kIdentity = {.identify = identify};
constexpr heddle_device_context kContext = {.is_made = has_context, .release = release_context};

const void* extension(const char* name) {
  const std::string_view asked = name;
  if (asked == HEDDLE_DEVICE_PINNED) return &kPinned;
  if (asked == HEDDLE_DEVICE_CAPTURE) return &capture_extension();
  if (asked == HEDDLE_DEVICE_LINKS) return &kLinks;
  if (asked == HEDDLE_DEVICE_SHARING) return &sharing_extension();
  if (asked == HEDDLE_DEVICE_TIMING) return &kTiming;
  if (asked == HEDDLE_DEVICE_CANCEL) return &kCancel;
  if (asked == HEDDLE_DEVICE_IDENTITY) return &kIdentity;
  if (asked == HEDDLE_DEVICE_CONTEXT) return &kContext;
  return nullptr;
}

constexpr heddle_device_desc kDesc = {
    .size = sizeof(heddle_device_desc),
    .version = 1,
    .kind = "fake",
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
    .weight_layout = weight_layout,
    .make_weight = make_weight,
    .extension = extension,
};

const void* const kDeviceItems[] = {&kDesc};
const heddle_list kDevices = {.count = 1, .items = kDeviceItems};
const void* const kControlItems[] = {&kControl};
const heddle_list kControls = {.count = 1, .items = kControlItems};

const heddle_list* provide(const char* kind) {
  static Kernels kernels;
  const std::string_view asked = kind;
  if (asked == HEDDLE_DEVICES) return &kDevices;
  if (asked == HEDDLE_KERNELS) return kernels.list(the_host);
  if (asked == HEDDLE_FAKE_CONTROL) return &kControls;
  return nullptr;
}

heddle_status* init(const heddle_host* host) {
  the_host = host;
  return nullptr;
}

void deinit() { the_host = nullptr; }

}  // namespace
}  // namespace heddle::fake

const heddle_plugin heddle_entry = {
    .size = sizeof(heddle_plugin),
    .abi_major = HEDDLE_ABI_MAJOR,
    .abi_minor = HEDDLE_ABI_MINOR,
    .id = "org.heddle.tests.fake",
    .version = "0.1.0",
    .provide = heddle::fake::provide,
    .init = heddle::fake::init,
    .deinit = heddle::fake::deinit,
};
