#include "device.h"

#include <algorithm>

#include "heddle/control_groups.hpp"
#include "heddle/device.hpp"
#include "machine.h"
#include "plugins/blocks/attention_fp8.h"
#include "plugins/blocks/linear_int8.h"
#if defined(HEDDLE_WITH_ONEDNN)
#include "onednn_primitives.h"
#endif

namespace heddle::cpu {

namespace {

constexpr std::int64_t kMaxThreads = 1024;

// Devices that are open together divide the cores: what does not come out even goes to the first
// ones, one each, and a device that gets none shares one.
std::int64_t share_of_cores(const device::Options& options) {
  const std::int64_t count = options.integer("share_count", 1),
                     index = options.integer("share_index", 0);
  if (count < 1 || count > kMaxThreads)
    device::fail(HEDDLE_INVALID_ARGUMENT, "option 'share_count' is ", count,
                 ", has to be from 1 to ", kMaxThreads);
  if (index < 0 || index >= count)
    device::fail(HEDDLE_INVALID_ARGUMENT, "option 'share_index' is ", index,
                 ", has to be from 0 to ", count - 1);
  const std::int64_t cores = usable_threads();
  return std::max<std::int64_t>(1, cores / count + (index < cores % count ? 1 : 0));
}

Settings read_settings(const device::Options& options) {
  options.only({"threads", "share_index", "share_count", "compute", "kernels", "attention_dtype",
                "linear_dtype"});
  Settings settings;

  const std::int64_t threads = options.integer("threads", share_of_cores(options));
  if (threads < 1 || threads > kMaxThreads)
    device::fail(HEDDLE_INVALID_ARGUMENT, "option 'threads' is ", threads, ", has to be from 1 to ",
                 kMaxThreads);
  settings.threads = static_cast<unsigned>(threads);

  const std::string compute = options.text("compute", has_bf16_tiles() ? "bf16" : "f32");
  if (compute != "f32" && compute != "bf16")
    device::fail(HEDDLE_INVALID_ARGUMENT, "option 'compute' is '", compute,
                 "', has to be f32 or bf16");
  settings.compute = compute == "bf16" ? HEDDLE_BF16 : HEDDLE_F32;

  const std::string kernels = options.text("kernels", "all");
  if (kernels != "all" && kernels != "reference")
    device::fail(HEDDLE_INVALID_ARGUMENT, "option 'kernels' is '", kernels,
                 "', has to be all or reference");
  settings.reference_only = kernels == "reference";
  settings.attention_fp8 = blocks::asks_for_fp8_attention(options);
  settings.linear_int8 = blocks::asks_for_int8_products(options);
  return settings;
}

}  // namespace

Device::Device(const heddle_host* host, std::uint32_t index, const heddle_value* options)
    : host_(host),
      name_(device::cat("cpu:", index)),
      settings_(read_settings(device::Options(host, options))),
      memory_total_(machine::memory().total),
      pool_(settings_.threads),
      vector_(vector_kernels()) {
#if defined(HEDDLE_WITH_ONEDNN)
  primitives_ = std::make_unique<Primitives>();
#endif
}

Device::~Device() = default;

}  // namespace heddle::cpu
