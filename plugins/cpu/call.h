// Call: an op as the kernels of this plugin see it: a copy of the views and attributes, so that it
// can wait in a stream. kernel_table<K>() makes the C record of a kernel from a struct K with
//   static constexpr const char *op, *name;
//   static std::int32_t fits(const Device&, const heddle_op_call&);  // as in abi/device.h
//   static void check(const heddle_op_call&);  // throws; on the calling thread
//   static void run(const Call&);              // on the stream's thread
// A Call belongs to the work that holds it. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "device.h"
#include "heddle/device.hpp"
#include "stream.h"

namespace heddle::cpu {

class Call {
 public:
  static constexpr std::uint32_t kMaxOperands = 8;  // inputs and outputs
  static constexpr std::uint32_t kMaxAttributes = 64;

  Call(Device& device, const heddle_op_call& call, void* workspace)
      : device_(&device),
        workspace_(workspace),
        in_count_(call.in_count),
        out_count_(call.out_count) {
    // Compared one by one: the sum of two foreign counts may wrap.
    if (call.in_count > kMaxOperands || call.out_count > kMaxOperands - call.in_count)
      device::fail(HEDDLE_UNSUPPORTED, "has ", call.in_count, " inputs and ", call.out_count,
                   " outputs, at most ", kMaxOperands, " in all are possible");
    if (call.attrs_size > kMaxAttributes)
      device::fail(HEDDLE_UNSUPPORTED, "has ", call.attrs_size, " bytes of attributes, at most ",
                   kMaxAttributes, " are possible");
    for (std::uint32_t i = 0; i < in_count_; ++i) keep(i, call.in[i]);
    for (std::uint32_t i = 0; i < out_count_; ++i) keep(in_count_ + i, call.out[i]);
    if (call.attrs_size > 0) std::memcpy(attrs_, call.attrs, call.attrs_size);
  }

  // An optional input: nullptr when absent.
  const heddle_view* maybe(std::uint32_t index) const {
    return index < in_count_ && (present_ >> index & 1u) != 0 ? &views_[index] : nullptr;
  }
  // REQUIRES: the operand is there, which check() made sure of.
  const heddle_view& in(std::uint32_t index) const { return views_[index]; }
  const heddle_view& out(std::uint32_t index = 0) const { return views_[in_count_ + index]; }
  std::uint32_t in_count() const { return in_count_; }
  template <class Attrs>
  const Attrs& attrs() const {
    static_assert(sizeof(Attrs) <= kMaxAttributes);
    return *reinterpret_cast<const Attrs*>(attrs_);
  }

  Device& device() const { return *device_; }
  void* workspace() const { return workspace_; }
  Stream& stream() const { return *stream_; }
  void run_on(Stream& stream) { stream_ = &stream; }

  // Tiles over the device's threads: tile(index, scratch).
  template <class Tile>
  void parallel_for(std::int64_t count, Tile&& tile) const {
    stream_->parallel_for(count, static_cast<Tile&&>(tile));
  }
  // For tiles that take long, now and then.
  void check_wanted() const { stream_->check_wanted(); }

 private:
  void keep(std::uint32_t place, const heddle_view* view) {
    if (view == nullptr) return;
    views_[place] = *view;
    present_ |= 1u << place;
  }

  Device* device_;
  Stream* stream_ = nullptr;
  void* workspace_;
  std::uint32_t in_count_, out_count_, present_ = 0;
  alignas(8) std::byte attrs_[kMaxAttributes];
  heddle_view views_[kMaxOperands];
};
static_assert(std::is_trivially_copyable_v<Call> && sizeof(Call) <= Work::kBytes);

template <class Kernel>
heddle_status* launch_kernel(heddle_device* device, heddle_stream* stream,
                             const heddle_op_call* call, void* workspace) {
  Device& self = as_device(device);
  return device::guard(self.host(), Kernel::op, [&] {
    Kernel::check(*call);
    as_stream(stream).enqueue({Kernel::op, Kernel::name},
                              Work([copy = Call(self, *call, workspace)](Stream& on) mutable {
                                copy.run_on(on);
                                Kernel::run(copy);
                              }));
  });
}

template <class Kernel>
constexpr heddle_kernel kernel_table() {
  return {.size = sizeof(heddle_kernel),
          .op = Kernel::op,
          .device_kind = "cpu",
          .name = Kernel::name,
          .fits = [](heddle_device* device,
                     const heddle_op_call* call) { return Kernel::fits(as_device(device), *call); },
          .launch = launch_kernel<Kernel>};
}

}  // namespace heddle::cpu
