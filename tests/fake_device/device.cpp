#include "device.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>

#include "engine/device/op_catalog.h"
#include "engine/tensor/shape.h"
#include "heddle/device.hpp"
#include "shuffler.h"

namespace heddle::fake {

namespace {

// An op with its operands where they really are, on its way through a stream.
struct EnqueuedCall {
  const heddle_kernel* kernel = nullptr;
  std::string op;
  std::vector<std::optional<heddle_view>> in, out;
  std::vector<std::byte> attrs;
  void* workspace = nullptr;
  std::vector<std::shared_ptr<const Allocation>> holders;

  void run(CpuStream& stream) const {
    std::vector<const heddle_view*> ins, outs;
    for (const auto& view : in) ins.push_back(view ? &*view : nullptr);
    for (const auto& view : out) outs.push_back(view ? &*view : nullptr);
    const heddle_op_call call{.size = sizeof(heddle_op_call),
                              .op = op.c_str(),
                              .in_count = static_cast<std::uint32_t>(ins.size()),
                              .out_count = static_cast<std::uint32_t>(outs.size()),
                              .in = ins.data(),
                              .out = outs.data(),
                              .attrs = attrs.data(),
                              .attrs_size = static_cast<std::uint32_t>(attrs.size())};
    stream.launch(*kernel, call, workspace);
  }
};

std::string place_name(const Device* device) {
  return device == nullptr ? "host memory" : device->name();
}

}  // namespace

Device::Device(const heddle_host* host, std::uint32_t index, const heddle_value* options)
    : host_(host),
      index_(index),
      name_(device::cat("fake:", index)),
      configuration_(read_configuration(host, index, options)),
      shuffles_(configuration_.shuffle.has_value()),
      peer_copies_(configuration_.peer_copies),
      peer_reads_(configuration_.peer_reads),
      death_(std::make_shared<const Failure>(Failure{HEDDLE_IO, name_ + ": the device has died"})),
      counters_(index_state(index)),
      context_(counters_),
      cpu_(host, index, configuration_),
      memory_(name_, configuration_.memory) {
  if (shuffles_) Shuffler::instance().seed(*configuration_.shuffle);
  OpenDevices::instance().add(*this);
}

Device::~Device() { OpenDevices::instance().remove(*this); }

Clock& Device::clock() const { return the_clock(); }

Configuration Device::configuration() const {
  const std::lock_guard lock(mutex_);
  return configuration_;
}

void Device::require_alive() const {
  if (is_dead(life())) device::fail(HEDDLE_IO, "the device has died");
}

void Device::accept() const {
  require_alive();
  if (counters_.refusal.strikes())
    device::fail(HEDDLE_IO, "this call is refused because a test asked for it");
}

void Device::kill() {
  if (!is_dead(life())) ++life_;
}

void Device::revive() {
  const std::lock_guard lock(work_);
  if (!is_dead(life())) return;
  memory_.poison_all();
  ++life_;
}

// ---- memory ----

void* Device::allocate(std::size_t bytes, bool is_shared) {
  require_alive();
  if (counters_.alloc_fault.strikes())
    device::fail(HEDDLE_OUT_OF_MEMORY, "wanted ", bytes, " bytes; used ", memory_.use().used,
                 ", capacity ", memory_.capacity(),
                 ": this allocation fails because a test asked for it");
  context_.make();
  void* address = memory_.allocate(bytes, counters_.foreign_bytes.load(), is_shared);
  ++counters_.allocations;
  counters_.raise_peak(memory_.use().used);
  return address;
}

void Device::free(void* address) {
  if (address == nullptr || memory_.free(address)) return;
  ++counters_.freed_in_use;
  host_->log(
      host_, HEDDLE_WARN,
      device::cat(name_, ": memory was freed while enqueued work still refers to it").c_str());
}

void* Device::allocate_pinned(std::size_t bytes) {
  require_alive();
  if (counters_.pinned_fault.strikes())
    device::fail(HEDDLE_OUT_OF_MEMORY, "wanted ", bytes,
                 " bytes of pinned memory: this allocation fails because a test asked for it");
  context_.make();
  auto made = std::make_unique<Allocation>(bytes);
  void* const address = made->data();
  const std::lock_guard lock(mutex_);
  pinned_[address] = std::move(made);
  pinned_bytes_ += bytes;
  counters_.raise_pinned_peak(pinned_bytes_);
  ++counters_.pinned_allocations;
  return address;
}

void Device::free_pinned(void* address) {
  if (address == nullptr) return;
  std::unique_ptr<Allocation>
      gone;  // whoever reads it from now on reads freed memory: the address sanitizer tells
  const std::lock_guard lock(mutex_);
  const auto found = pinned_.find(address);
  if (found == pinned_.end())
    device::fail(HEDDLE_INVALID_ARGUMENT, "freeing pinned memory at ", address, ", which ", name_,
                 " has not allocated, or has freed already");
  gone = std::move(found->second);
  pinned_.erase(found);
  pinned_bytes_ -= gone->bytes();
}

bool Device::has_pinned(const void* address) const {
  const std::lock_guard lock(mutex_);
  const auto behind = pinned_.upper_bound(address);
  if (behind == pinned_.begin()) return false;
  const Allocation& found = *std::prev(behind)->second;
  return std::less<>()(address, static_cast<const void*>(found.data() + found.bytes()));
}

double Device::copy_seconds(LinkKey link, const void* source, std::uint64_t bytes) const {
  const Configuration speeds = configuration();
  const bool is_pageable = link.first == kHost && speeds.pageable.has_value() &&
                           !OpenDevices::instance().have_pinned(source);
  return (is_pageable ? *speeds.pageable : speeds.link(link.first, link.second)).seconds(bytes);
}

std::uint64_t Device::pinned_bytes() const {
  const std::lock_guard lock(mutex_);
  return pinned_bytes_;
}

// ---- streams ----

std::unique_ptr<Stream> Device::make_stream() {
  require_alive();
  context_.add_handle();
  std::uint32_t ordinal = 0;
  {
    const std::lock_guard lock(mutex_);
    ordinal = next_stream_++;
  }
  auto stream = std::make_unique<Stream>(*this, ordinal);
  const std::lock_guard lock(mutex_);
  streams_.push_back(stream.get());
  return stream;
}

void Device::forget(const Stream& stream) {
  context_.remove_handle();
  const std::lock_guard lock(mutex_);
  std::erase(streams_, &stream);
  const Clock::Point last = const_cast<Stream&>(stream).track().last;
  if (clock().seconds(last) >= clock().seconds(gone_)) gone_ = last;
}

double Device::now() {
  const std::lock_guard lock(mutex_);
  double latest = clock().seconds(gone_);
  for (Stream* stream : streams_) latest = std::max(latest, clock().seconds(stream->track()));
  return latest;
}

// ---- kernels ----

std::size_t Device::workspace(const heddle_op_call& call) const {
  const heddle_kernel* kernel = cpu_.choose(call).kernel;
  return kernel == nullptr || kernel->workspace == nullptr ? 0
                                                           : kernel->workspace(cpu_.raw(), &call);
}

double Device::op_seconds(const heddle_op_call& call) const {
  const std::lock_guard lock(mutex_);
  if (const auto fixed = configuration_.fixed_seconds(call.op)) return *fixed;
  const engine::OpCost cost = engine::op_cost(call);
  return configuration_.launch_seconds +
         std::max(cost.flops / configuration_.flops, cost.bytes / configuration_.bandwidth);
}

const Device& Device::owner_of(const void* address) const {
  if (!peer_reads_ || memory_.has(address)) return *this;
  const Device* owner = OpenDevices::instance().first(
      [&](const Device& device) { return reads(device) && device.memory_.has(address); });
  return owner == nullptr ? *this : *owner;
}

void Device::launch(Stream& stream, const heddle_op_call& call, void* workspace) {
  if (CapturedGraph* captured_graph = stream.captured_graph())
    return captured_graph->add(stream.lane(), call, workspace);
  accept();
  auto enqueued = std::make_shared<EnqueuedCall>();
  enqueued->kernel = cpu_.choose(call).kernel;
  if (enqueued->kernel == nullptr)
    device::fail(HEDDLE_UNSUPPORTED, "no kernel of the cpu device fits these operands");
  enqueued->op = call.op;
  const auto* attrs = static_cast<const std::byte*>(call.attrs);
  if (attrs != nullptr) enqueued->attrs.assign(attrs, attrs + call.attrs_size);

  const auto translate = [&](const char* what, std::uint32_t number,
                             const heddle_view* view) -> std::optional<heddle_view> {
    if (view == nullptr) return std::nullopt;
    engine::Extent extent = view->info.layout == 0 ? engine::extent(view->info) : engine::Extent{};
    const Device& owner = owner_of(view->data);
    const Span span = owner.memory_.at(view->data, device::bytes_of(view->info.dtype, extent.begin),
                                       device::bytes_of(view->info.dtype, extent.end),
                                       device::cat(what, " ", number));
    if (&owner != this) {
      const LinkKey link{owner.index_, index_};
      const std::uint64_t bytes = engine::dense_bytes(view->info);
      clock().copy(stream.track(), configuration().link(link.first, link.second).seconds(bytes),
                   link, bytes);
    }
    enqueued->holders.push_back(span.holder);
    return heddle_view{view->info, span.data};
  };
  for (std::uint32_t i = 0; i < call.in_count; ++i)
    enqueued->in.push_back(translate("input", i, call.in[i]));
  for (std::uint32_t i = 0; i < call.out_count; ++i)
    enqueued->out.push_back(translate("output", i, call.out[i]));
  if (workspace != nullptr) {
    const Span span =
        memory_.at(workspace, 0, static_cast<std::int64_t>(this->workspace(call)), "the workspace");
    enqueued->holders.push_back(span.holder);
    enqueued->workspace = span.data;
  }

  const double seconds = op_seconds(call);
  clock().work(stream.track(), seconds);
  counters_.count_launch(call.op);
  const bool fails = counters_.launch_fault.strikes();
  stream.enqueue(device::cat(call.op, " (", enqueued->kernel->name, ")"),
                 [this, enqueued, fails, &pacer = stream.pacer(),
                  pause = seconds * configuration_.pace](CpuStream& cpu) {
                   if (pause > 0) pacer.pass(pause);
                   if (fails)
                     device::fail(HEDDLE_IO, "this launch fails because a test asked for it");
                   counters_.launch_begins();
                   enqueued->run(cpu);
                   ++counters_.launches_run;
                 });
}

void Device::make_weight(Stream& stream, std::int32_t use, const heddle_weight_layout& layout,
                         std::uint32_t part_count, const heddle_view* const* parts, void* dst) {
  accept();
  const Span to = memory_.at(dst, 0, static_cast<std::int64_t>(layout.bytes), "the weight");
  std::vector<heddle_view> copies;
  for (std::uint32_t i = 0; i < part_count; ++i) {
    if (Memory::is_device_address(parts[i]->data))
      device::fail(HEDDLE_INVALID_ARGUMENT, "part ", i,
                   " of a weight is on a device, has to be in host memory");
    copies.push_back(*parts[i]);
  }
  const LinkKey link{kHost, index_};
  clock().copy(stream.track(),
               copy_seconds(link, part_count == 0 ? nullptr : parts[0]->data, layout.bytes), link,
               layout.bytes);
  ++counters_.weights;
  counters_.weight_is_asked_for();
  const bool fails = counters_.weight_fault.strikes();
  stream.enqueue("make_weight",
                 [to, use, layout, fails, copies = std::move(copies)](CpuStream& cpu) {
                   if (fails)
                     device::fail(HEDDLE_IO, "this weight fails because a test asked for it");
                   cpu.make_weight(use, layout, copies, to.data);
                 });
}

// ---- copies ----

void Device::copy(Stream& stream, Device* to, void* dst, Device* from, const void* src,
                  std::size_t bytes) {
  accept();
  for (Device* side : {to, from}) {
    if (side == nullptr) continue;
    if (is_dead(side->life())) device::fail(HEDDLE_IO, side->name(), ": the device has died");
    if (!reaches(*side))
      device::fail(HEDDLE_UNSUPPORTED, "there is no direct way between ", name_, " and ",
                   side->name());
  }
  if (to != nullptr && from != nullptr && !to->reaches(*from))
    device::fail(HEDDLE_UNSUPPORTED, "there is no direct way between ", from->name(), " and ",
                 to->name());
  const auto place = [&](Device* device, const void* address, const char* what) -> Span {
    if (device != nullptr)
      return device->memory_.at(address, 0, static_cast<std::int64_t>(bytes), what);
    if (Memory::is_device_address(address))
      device::fail(HEDDLE_INVALID_ARGUMENT, what, " is on a device, has to be in host memory");
    return {static_cast<std::byte*>(const_cast<void*>(address)), nullptr};
  };
  const Span target = place(to, dst, "the target of a copy"),
             source = place(from, src, "the source of a copy");

  const LinkKey link{from == nullptr ? kHost : from->index_, to == nullptr ? kHost : to->index_};
  if (link.first == link.second) {
    const Configuration speeds = configuration();
    clock().work(
        stream.track(),
        link.first == kHost ? 0 : speeds.launch_seconds + 2 * double(bytes) / speeds.bandwidth);
  } else {
    clock().copy(stream.track(), copy_seconds(link, src, bytes), link, bytes);
  }
  ++counters_.copies;
  const bool fails = counters_.copy_fault.strikes();
  stream.enqueue(
      device::cat("copy of ", bytes, " bytes from ", place_name(from), " to ", place_name(to)),
      [target, source, bytes, fails](CpuStream&) {
        if (fails) device::fail(HEDDLE_IO, "this copy fails because a test asked for it");
        std::memmove(target.data, source.data, bytes);
      });
}

// ---- changes ----

void Device::set_link(LinkKey link, LinkSpeed speed) {
  const std::lock_guard lock(mutex_);
  configuration_.pairs[link] = speed;
}

void Device::set_op_seconds(const std::string& op, double seconds) {
  const std::lock_guard lock(mutex_);
  if (seconds < 0)
    configuration_.op_seconds.erase(op);
  else
    configuration_.op_seconds[op] = seconds;
}

// ---- all of them ----

OpenDevices& OpenDevices::instance() {
  static OpenDevices devices;
  return devices;
}

void OpenDevices::add(Device& device) {
  const std::lock_guard lock(mutex_);
  devices_.push_back(&device);
}

void OpenDevices::remove(Device& device) {
  const std::lock_guard lock(mutex_);
  std::erase(devices_, &device);
}

bool OpenDevices::have_pinned(const void* address) {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(devices_,
                             [&](const Device* device) { return device->has_pinned(address); });
}

Device* OpenDevices::find(const heddle_device* handle) {
  const std::lock_guard lock(mutex_);
  for (Device* device : devices_)
    if (reinterpret_cast<const heddle_device*>(device) == handle) return device;
  return nullptr;
}

}  // namespace heddle::fake
