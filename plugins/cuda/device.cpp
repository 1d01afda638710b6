#include "device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <vector>

#include "device_memory.h"
#include "driver.h"
#include "heddle/device.hpp"
#include "matmul.h"
#include "nvml.h"
#include "plan_store.h"
#include "plugins/blocks/attention_fp8.h"
#include "plugins/blocks/linear_int8.h"
#if defined(HEDDLE_WITH_CUDNN)
#include "cudnn_plan.h"
#endif

namespace heddle::cuda {

namespace {

Settings read_settings(const device::Options& options) {
  options.only({"threads", "share_index", "share_count", "compute", "kernels", "cudnn_flops",
                "hopper_percent", "plans", "behave_as", "attention_dtype", "linear_dtype"});
  Settings settings;
  const std::string compute = options.text("compute", "bf16");
  if (compute == "bf16")
    settings.compute = HEDDLE_BF16;
  else if (compute == "fp16")
    settings.compute = HEDDLE_F16;
  else if (compute == "f32")
    settings.compute = HEDDLE_F32;
  else
    device::fail(HEDDLE_INVALID_ARGUMENT, "option 'compute' is '", compute,
                 "', has to be bf16, fp16 or f32");
  const std::string kernels = options.text("kernels", "all");
  if (kernels != "all" && kernels != "reference")
    device::fail(HEDDLE_INVALID_ARGUMENT, "option 'kernels' is '", kernels,
                 "', has to be all or reference");
  settings.reference_only = kernels == "reference";
  settings.cudnn_flops = static_cast<double>(options.integer("cudnn_flops", 1 << 30));
  settings.hopper_percent = static_cast<int>(options.integer("hopper_percent", 75));
  const std::string plans = options.text("plans", "");
  if (plans != "none")
    settings.plans = plans.empty() ? PlanStore::default_folder() : std::filesystem::path(plans);
  settings.behave_as = static_cast<int>(options.integer("behave_as", 0));
  settings.attention_fp8 = blocks::asks_for_fp8_attention(options);
  settings.linear_int8 = blocks::asks_for_int8_products(options);
  return settings;
}

// Which devices of this process have a context: each of them reaches the others' memory as soon as
// both have.
struct Peers {
  std::mutex mutex;
  std::vector<Device*> devices;  // mutex
};
Peers& peers() {
  static Peers all;
  return all;
}

// REQUIRES: both have a context.
void open_way(const Device& from, const Device& to) {
  check(cudaSetDevice(from.ordinal()), "cudaSetDevice");
  const cudaError_t error = cudaDeviceEnablePeerAccess(to.ordinal(), 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled)
    cudaGetLastError();
  else
    check(error, "cudaDeviceEnablePeerAccess");
  check(share_device_memory(to.ordinal(), from.ordinal()), "cuMemSetAccess");
}

Card find_card(std::uint32_t index, const Settings& settings) {
  if (cards().empty())
    device::fail(HEDDLE_NOT_FOUND, "no GPU can be used here: ", no_cards_reason(),
                 ". nvidia-smi shows what the driver finds");
  if (index >= cards().size())
    device::fail(HEDDLE_NOT_FOUND, "this machine shows ", cards().size(), " CUDA devices");
  Card card = cards()[index];
  if (settings.behave_as != 0) {
    card.major = settings.behave_as / 10;
    card.minor = settings.behave_as % 10;
  }
  return card;
}

}  // namespace

Device::Device(const heddle_host* host, std::uint32_t index, const heddle_value* options)
    : host_(host),
      name_(device::cat("cuda:", index)),
      settings_(read_settings(device::Options(host, options))),
      card_(find_card(index, settings_)) {
  if (settings_.attention_fp8 && !has_hopper_kernels(card_))
    host_->log(host_, HEDDLE_WARN, device::cat(name_, ": ", no_fp8_attention(card_)).c_str());
  make_libraries();
}

Device::~Device() {
  for (std::thread* thread : {&context_ahead_, &opening_, &opening_ahead_})
    if (thread->joinable()) thread->join();
  const std::lock_guard lock(peers().mutex);
  std::erase(peers().devices, this);
}

void Device::use() {
  health_.require_whole();
  if (!has_context()) make_context();
  if (const cudaError_t error = cudaSetDevice(ordinal()); error != cudaSuccess)
    health_.check(error, "cudaSetDevice");
}

// The ordinals are CUDA's own: where NVML has told of the cards, the driver has not been asked yet.
void Device::make_context() {
  const std::lock_guard lock(mutex_);
  if (has_context()) return;
  begin_opening_library();
  const int ordinal = driver::ordinal_of(card_.uuid);
  if (ordinal < 0)
    device::fail(HEDDLE_NOT_FOUND, "CUDA does not show ", card_.uuid,
                 " to this process. nvidia-smi -L shows what there is");
  was_there_ = driver::has_primary_context(ordinal);
  cuda::check(cudaSetDevice(ordinal), "cudaSetDevice");
  cuda::check(cudaFree(nullptr), "cudaFree");  // makes it
  ordinal_.store(ordinal, std::memory_order_release);
  {
    const std::lock_guard peers_lock(peers().mutex);
    for (Device* other : peers().devices)
      if (other->ordinal() != ordinal && peer_way(card_, other->card()).is_direct) {
        open_way(*this, *other);
        open_way(*other, *this);
      }
    peers().devices.push_back(this);
  }
  cuda::check(cudaSetDevice(ordinal), "cudaSetDevice");
  has_context_.store(true, std::memory_order_release);
  begin_opening();
}

// Its handles need a context, what it is asked before does not.
void Device::make_libraries() {
#if defined(HEDDLE_WITH_CUDNN)
  if (!settings_.reference_only) cudnn_ = std::make_shared<Cudnn>(*this);
#endif
}

void Device::expect_work() noexcept {
  if (is_for_work()) return;
  const std::lock_guard lock(mutex_);
  if (is_for_work() || context_ahead_.joinable()) return;
  expects_work_ = true;
  try {
    context_ahead_ = std::thread([this] {
      try {
        use();
      } catch (const std::exception&) {
        // The first work says so.
      }
    });
  } catch (const std::system_error&) {
    // No thread is to be had: it is made by the first work.
  }
}

// cuBLASLt is half a gigabyte, and takes a tenth of a second to open: beside the driver, which
// takes two for a context.
void Device::begin_opening_library() {
  if (settings_.reference_only || opening_ahead_.joinable()) return;
  try {
    opening_ahead_ = std::thread([] { Matmul::is_there(); });
  } catch (const std::system_error&) {
    // No thread is to be had: it is opened at its first use.
  }
}

void Device::begin_opening() {
  if (settings_.reference_only) return;
  try {
    opening_ = std::thread([this] { matmul(); });
  } catch (const std::system_error&) {
    // No thread is to be had: it is opened at its first use.
  }
}

// Kernels are chosen by what there is: why there is no context is told by whoever launches
// something.
bool Device::has_matmul() noexcept {
  if (has_matmul_.load(std::memory_order_acquire)) return true;
  try {
    use();
    const std::lock_guard lock(mutex_);
    if (has_matmul_) return true;
    if (!settings_.reference_only) matmul_ = Matmul::open(*this);
  } catch (const std::exception& error) {
    if (!has_context()) return false;
    host_->log(host_, HEDDLE_WARN,
               device::cat("cuda: ", error.what(), "; linear layers run on slow kernels").c_str());
  }
  has_matmul_.store(true, std::memory_order_release);
  return true;
}

Matmul* Device::matmul() noexcept { return has_matmul() ? matmul_.get() : nullptr; }

bool Device::multiplies() noexcept {
  if (has_matmul_.load(std::memory_order_acquire)) return matmul_ != nullptr;
  return !settings_.reference_only && Matmul::is_there();
}

void Device::leave([[maybe_unused]] cudaStream_t stream) noexcept {
#if defined(HEDDLE_WITH_CUDNN)
  if (cudnn_ != nullptr) cudnn_->leave(stream);
#endif
}

void Device::release_context() {
  for (std::thread* thread : {&context_ahead_, &opening_})
    if (thread->joinable()) thread->join();
  const std::lock_guard lock(mutex_);
  expects_work_ = false;
  if (!has_context()) return;
  if (const std::int64_t left = things_.load(); left > 0)
    device::fail(HEDDLE_INVALID_ARGUMENT, "the context is asked for while ", left,
                 " pieces of memory, streams and events are left");
  matmul_.reset();
  cudnn_.reset();
  make_libraries();
  has_matmul_ = false;
  const std::lock_guard peers_lock(peers().mutex);
  std::erase(peers().devices, this);
  const auto same = std::ranges::find_if(
      peers().devices, [&](const Device* other) { return other->ordinal() == ordinal(); });
  if (same != peers().devices.end()) {  // another engine of this process: it is that one's now
    (*same)->was_there_ = (*same)->was_there_ && was_there_;
  } else if (!was_there_) {
    for (const Device* other : peers().devices) {
      cuda::check(cudaSetDevice(other->ordinal()), "cudaSetDevice");
      if (cudaDeviceDisablePeerAccess(ordinal()) != cudaSuccess) cudaGetLastError();
    }
    cuda::check(cudaSetDevice(ordinal()), "cudaSetDevice");
    unshare_device_memory(ordinal());
    cuda::check(cudaDeviceReset(), "cudaDeviceReset");
  }
  has_context_ = false;
}

void Device::require_current() const {
#if !defined(NDEBUG)
  int current = -1;
  if (cudaGetDevice(&current) == cudaSuccess && current == ordinal()) return;
  std::fprintf(stderr, "%s: a call was made while the thread's device was CUDA's %d, not %d\n",
               name_.c_str(), current, ordinal());
  std::abort();
#endif
}

void Device::describe(heddle_device_info& info) {
  write_text(
      info.name,
      card_.name +
          (settings_.attention_fp8 && has_hopper_kernels(card_) ? blocks::kFp8AttentionModel : "") +
          (settings_.linear_int8 && !settings_.reference_only && card_.major >= 8
               ? blocks::kInt8ProductsModel
               : ""));
  write_text(info.location, card_.uuid);
  info.memory_total = info.memory_free = card_.memory_bytes;
  if (const auto memory = nvml::memory(card_.uuid)) {
    info.memory_total = std::min(memory->total, card_.memory_bytes);
    info.memory_free = std::min(memory->free, info.memory_total);
  } else if (has_context()) {
    use();
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    info.memory_total = total;
    info.memory_free = free;
  }
  info.alignment = 256;
  info.host_visible = 0;
  info.compute = settings_.compute;
  info.threads = 0;
  info.flops_per_second = flops_per_second(card_, settings_.compute);
  info.bytes_per_second = bytes_per_second(card_);
}

}  // namespace heddle::cuda
