#include "engine/device/device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/base/verify.h"
#include "engine/device/status.h"

namespace heddle::engine {

namespace {

// What a plugin says begins with its device's name where it may be reported beside another
// device's. Where ours says it already, once is enough.
Error located(const Error& error, std::string_view where) {
  if (where.empty()) return error;
  std::string_view what = error.what();
  const std::string_view name = what.substr(0, what.find(": "));
  const bool is_said =
      where == name || where.starts_with(cat(name, ": ")) || where.ends_with(cat(" ", name));
  if (is_said && name.size() < what.size()) what.remove_prefix(name.size() + 2);
  return Error(error.code(), cat(where, ": ", what));
}

}  // namespace

void throw_status(heddle_status* status, const std::string& where) {
  if (status != nullptr) throw located(take_status(status), where);
}

Event::Event(const Device& device) : device_(&device) {
  device.check(device.desc().event_make(device.raw(), &raw_), device.name());
}
Event::~Event() {
  if (raw_ != nullptr) device_->desc().event_free(raw_);
}
void Event::wait() const { device_->check_wait(device_->desc().wait(raw_), device_->name()); }
bool Event::done() const { return device_->desc().done(raw_) != 0; }

std::uint64_t CapturedGraph::bytes() const { return device_.extensions().capture->bytes(raw_); }
CapturedGraph::~CapturedGraph() { device_.extensions().capture->free(raw_); }

Stream::Stream(const Device& device)
    : device_(device), cancel_(device.extensions().cancel), idle_(device) {
  device.check(device.desc().stream_make(device.raw(), &raw_), device.name());
}
Stream::~Stream() { device_.desc().stream_free(raw_); }
void Stream::record(const Event& event) {
  device_.check(device_.desc().record(raw_, event.raw()), device_.name());
}
void Stream::wait_for(const Event& event) {
  // An event is a thing of its plugin: another plugin's stream cannot look into it.
  if (event.device().kind() != device_.kind()) return event.wait();
  device_.check(device_.desc().wait_on_stream(raw_, event.raw()), device_.name());
}
void Stream::begin_capture() {
  device_.check(device_.extensions().capture->begin(raw_), device_.name());
}
std::unique_ptr<CapturedGraph> Stream::end_capture() {
  heddle_captured_graph* made = nullptr;
  device_.check(device_.extensions().capture->end(raw_, &made), device_.name());
  return std::make_unique<CapturedGraph>(device_, made);
}
void Stream::drop_capture() noexcept {
  heddle_captured_graph* made = nullptr;
  if (heddle_status* status = device_.extensions().capture->end(raw_, &made); status != nullptr)
    take_status(status);
  if (made != nullptr) device_.extensions().capture->free(made);
}
void Stream::replay(const CapturedGraph& captured_graph) {
  device_.check(device_.extensions().capture->replay(raw_, captured_graph.raw()), device_.name());
}
void Stream::synchronize() {
  record(idle_);
  idle_.wait();
}
void* Stream::native() const {
  const heddle_device_native* native = device_.extensions().native;
  return native == nullptr ? nullptr : native->stream(raw_);
}

Device::Device(DeviceIdentity identity, const heddle_device_desc& desc, heddle_device* raw,
               std::shared_ptr<const void> owner, DeviceSource source)
    : identity_(std::move(identity)),
      desc_(whole_desc(desc)),
      extensions_(extensions_of(desc_)),
      raw_(raw),
      owner_(std::move(owner)),
      source_(std::move(source)) {
  info_ = info();
  info_.name[sizeof info_.name - 1] = 0;
  model_ = info_.name;
}

Device::~Device() { desc_.close(raw_); }

namespace {

bool is_fault_of_the_device(const Error& error) {
  return error.code() == Code::io || error.code() == Code::internal;
}

}  // namespace

void Device::check(heddle_status* status, const std::string& where) const {
  if (status == nullptr) return;
  const Error error = take_status(status);
  if (is_fault_of_the_device(error)) {
    const auto faults = faults_.lock();
    if (!faults->first) faults->first = error;
  }
  throw located(error, where);
}

void Device::check_wait(heddle_status* status, const std::string& where) const {
  if (status == nullptr) return;
  const Error error = take_status(status);
  {
    const auto faults = faults_.lock();
    if (!faults->first && is_fault_of_the_device(error)) faults->first = error;
    faults->last_of_waits = error.full();
  }
  failed_waits_.fetch_add(1, std::memory_order_release);
  throw located(error, where);
}

std::optional<Error> Device::take_fault() const {
  return std::exchange(faults_.lock()->first, std::nullopt);
}
std::string Device::last_failure() const { return faults_.lock()->last_of_waits; }

heddle_device_info Device::info() const {
  heddle_device_info info{};
  info.size = sizeof info;
  throw_status(desc_.info(raw_, &info), name());
  return info;
}

void* Device::allocate(std::size_t bytes) const {
  void* memory = nullptr;
  check(desc_.alloc(raw_, bytes, &memory), cat(name(), ": ", format_bytes(bytes), " of memory"));
  return memory;
}

void Device::free(void* memory) const { desc_.free(raw_, memory); }

void* Device::allocate_pinned(std::size_t bytes) const {
  void* memory = nullptr;
  check(extensions_.pinned->alloc(raw_, bytes, &memory),
        cat(name(), ": ", format_bytes(bytes), " of pinned host memory"));
  return memory;
}

void Device::free_pinned(void* memory) const { extensions_.pinned->free(raw_, memory); }

namespace {

// Work on a stream of another device would run, most often, and be in nobody's order: in debug
// builds it ends the process.
void require_own(const Device& device, const Stream& stream, const char* call) {
  if (!kVerify || &stream.device() == &device) return;
  std::fprintf(stderr, "%s of %s was given a stream of %s\n", call, device.name().c_str(),
               stream.device().name().c_str());
  std::abort();
}

}  // namespace

void Device::copy(Stream& stream, const Device* to, void* dst, const Device* from, const void* src,
                  std::size_t bytes) const {
  require_own(*this, stream, "copy()");
  if (bytes == 0) return;
  check(desc_.copy(stream.raw(), to == nullptr ? nullptr : to->raw(), dst,
                   from == nullptr ? nullptr : from->raw(), src, bytes),
        name());
  count_transfer(from, to, bytes);
}

void Device::count_transfer(const Device* from, const Device* to, std::uint64_t bytes) const {
  const auto in_host = [](const Device* side) { return side == nullptr || side->host_visible(); };
  if (in_host(from) && in_host(to)) return;
  const auto kind_of = [](const Device* side) -> std::string_view {
    return side == nullptr ? "host" : std::string_view(side->kind());
  };
  const auto counts = transfers_.lock();
  auto count = std::ranges::find_if(*counts, [&](const TransferCount& each) {
    return each.from == kind_of(from) && each.to == kind_of(to);
  });
  if (count == counts->end())
    count = counts->insert(
        count, {std::string(kind_of(from)), std::string(kind_of(to)), std::uint64_t{0}, 0});
  ++count->copies;
  count->bytes += bytes;
}

heddle_link Device::link(const Device* peer) const {
  heddle_link link{};
  link.size = sizeof link;
  // Plugins do not know each other's devices; but where one of the two is host memory, the other
  // one knows the way.
  if (peer != nullptr && peer->kind() != kind()) {
    if (peer->host_visible()) return this->link(nullptr);
    return host_visible() ? peer->link(nullptr) : link;
  }
  if (extensions_.links != nullptr) {
    throw_status(extensions_.links->link(raw_, peer == nullptr ? nullptr : peer->raw_, &link),
                 name());
    return link;
  }
  const bool one_space = host_visible() && (peer == nullptr || peer->host_visible());
  const bool direct = desc_.can_copy(raw_, peer == nullptr ? nullptr : peer->raw_) != 0;
  link.kind = peer == this || one_space ? HEDDLE_LINK_SAME
              : direct                  ? HEDDLE_LINK_DIRECT
                                        : HEDDLE_LINK_NONE;
  return link;
}

std::optional<bool> Device::has_context() const {
  if (extensions_.context == nullptr) return {};
  return extensions_.context->is_made(raw_) != 0;
}

void Device::release_context() const {
  if (extensions_.context != nullptr)
    throw_status(extensions_.context->release(raw_), cat(name(), ": giving back its context"));
}

heddle_weight_layout Device::weight_layout(std::int32_t use, const heddle_tensor_info& info) const {
  heddle_weight_layout layout{};
  layout.size = sizeof layout;
  throw_status(desc_.weight_layout(raw_, told_use(extensions_, use), &info, &layout), name());
  return layout;
}

void Device::make_weight(Stream& stream, std::int32_t use, const heddle_weight_layout& layout,
                         const std::vector<heddle_view>& parts, void* dst) const {
  require_own(*this, stream, "make_weight()");
  std::vector<const heddle_view*> pointers;
  for (const heddle_view& part : parts) pointers.push_back(&part);
  check(desc_.make_weight(raw_, stream.raw(), told_use(extensions_, use), &layout,
                          std::uint32_t(pointers.size()), pointers.data(), dst),
        name());
  count_transfer(nullptr, this, layout.bytes);
}

}  // namespace heddle::engine
