// kernel_table<K>() makes the C record of a kernel from a struct K with
//   static constexpr const char *op, *name;
//   static void check(const heddle_op_call&);                  // throws
//   static std::int32_t fits(Device&, const heddle_op_call&);  // 0: cannot; the highest wins
//   static std::size_t workspace(Device&, const heddle_op_call&);  // bytes
//   static void run(Stream&, const heddle_op_call&, void* workspace);  // enqueues; throws
// Plain gives fits = 1 and no workspace: the kernel that takes everything.
#pragma once

#include <cstdint>
#include <exception>

#include "heddle/device.hpp"
#include "plugins/cpu/op_check.h"
#include "stream.h"

namespace heddle::cuda {

struct Plain {
  static constexpr const char* name = "plain";
  static std::int32_t fits(Device&, const heddle_op_call&) { return 1; }
  static std::size_t workspace(Device&, const heddle_op_call&) { return 0; }
};

template <class Kernel>
heddle_status* launch_kernel(heddle_device* device, heddle_stream* stream,
                             const heddle_op_call* call, void* workspace) {
  Device& self = as_device(device);
  return device::guard(self.host(), Kernel::op, [&] {
    Kernel::check(*call);
    self.use();
    Stream& on = as_stream(stream);
    try {
      Kernel::run(on, *call, workspace);
      self.check(cudaGetLastError(), Kernel::name);
    } catch (const std::exception& error) {
      // A library that refuses to be recorded says so in words of its own; run, the call may be
      // well.
      if (on.is_capturing()) device::fail(HEDDLE_UNSUPPORTED, "while capturing: ", error.what());
      throw;
    }
  });
}

template <class Kernel>
constexpr heddle_kernel kernel_table() {
  return {.size = sizeof(heddle_kernel),
          .op = Kernel::op,
          .device_kind = "cuda",
          .name = Kernel::name,
          .fits = [](heddle_device* device,
                     const heddle_op_call* call) { return Kernel::fits(as_device(device), *call); },
          .launch = launch_kernel<Kernel>,
          .workspace =
              [](heddle_device* device, const heddle_op_call* call) {
                return Kernel::workspace(as_device(device), *call);
              }};
}

inline const heddle_view& in(const heddle_op_call& call, std::uint32_t index) {
  return *call.in[index];
}
inline const heddle_view& out(const heddle_op_call& call, std::uint32_t index = 0) {
  return *call.out[index];
}
// What libraries want of an operand's address. It is not known when kernels are chosen.
inline bool lies_at_16(const void* at) { return reinterpret_cast<std::uintptr_t>(at) % 16 == 0; }

// Runs the call by another kernel, with the workspace that it asked for, if any. Throws what that
// answers.
void launch_other(const heddle_kernel& kernel, Stream& stream, const heddle_op_call& call,
                  void* workspace = nullptr);

template <class Attrs>
const Attrs& attrs(const heddle_op_call& call) {
  return *static_cast<const Attrs*>(call.attrs);
}

}  // namespace heddle::cuda
