#include "device.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "heddle/device.hpp"
#include "matmul.h"
#include "nvml.h"
#include "plan_store.h"
#if defined(HEDDLE_WITH_CUDNN)
#include "cudnn_plan.h"
#endif

namespace heddle::cuda {

namespace {

Settings read_settings(const device::Options& options) {
  options.only(
      {"threads", "share_index", "share_count", "compute", "kernels", "cudnn_flops", "plans"});
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
  const std::string plans = options.text("plans", "");
  if (plans != "none")
    settings.plans = plans.empty() ? PlanStore::default_folder() : std::filesystem::path(plans);
  return settings;
}

// "GPU-00112233-4455-6677-8899-aabbccddeeff"
std::string write_uuid(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text;
}

int attribute(int ordinal, cudaDeviceAttr which) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, which, ordinal) == cudaSuccess ? value : 0;
}

// Operations of a matrix product that one multiprocessor does in a clock, dense: NVIDIA's
// architecture papers.
double operations_per_clock(int major, heddle_dtype compute) {
  if (compute == HEDDLE_F32) return 256;
  return major >= 9 ? 4096 : major == 8 ? 2048 : 1024;
}

template <class Text>
void write_text(Text& field, const std::string& text) {
  const std::size_t length = std::min(text.size(), sizeof field - 1);
  std::memcpy(field, text.data(), length);
  field[length] = '\0';
}

}  // namespace

Device::Device(const heddle_host* host, std::uint32_t index, const heddle_value* options)
    : host_(host),
      name_(device::cat("cuda:", index)),
      ordinal_(static_cast<int>(index)),
      settings_(read_settings(device::Options(host, options))) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    cudaGetLastError();
    device::fail(HEDDLE_NOT_FOUND,
                 "no GPU can be used here: cudaGetDeviceCount: ", cudaGetErrorString(error),
                 ". nvidia-smi shows what the driver finds");
  }
  if (ordinal_ >= count)
    device::fail(HEDDLE_NOT_FOUND, "this machine shows ", count, " CUDA devices");
  cudaDeviceProp properties{};
  cuda::check(cudaGetDeviceProperties(&properties, ordinal_), "cudaGetDeviceProperties");
  uuid_ = write_uuid(properties.uuid);
  multiprocessors_ = properties.multiProcessorCount;
  use();
  check(cudaFree(nullptr),
        "cudaFree");  // the primary context, made here and not in the middle of a run
  if (settings_.reference_only) return;
#if defined(HEDDLE_WITH_CUDNN)
  cudnn_ = std::make_shared<Cudnn>(*this);
#endif
  begin_opening();
}

Device::~Device() {
  if (opening_.joinable()) opening_.join();
}

// cuBLASLt is half a gigabyte, and takes a tenth of a second to open.
void Device::begin_opening() {
  try {
    opening_ = std::thread([this] { matmul(); });
  } catch (const std::system_error&) {
    // No thread is to be had: it is opened at its first use.
  }
}

Matmul* Device::matmul() {
  std::call_once(matmul_opened_, [&] {
    if (settings_.reference_only) return;
    try {
      matmul_ = Matmul::open(*this);
    } catch (const std::exception& error) {
      host_->log(
          host_, HEDDLE_WARN,
          device::cat("cuda: ", error.what(), "; linear layers run on slow kernels").c_str());
    }
  });
  return matmul_.get();
}

void Device::use() {
  health_.require_whole();
  check(cudaSetDevice(ordinal_), "cudaSetDevice");
}

void Device::describe(heddle_device_info& info) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal_), "cudaGetDeviceProperties");
  write_text(info.name, properties.name);
  write_text(info.location, uuid_);
  if (const auto memory = nvml::memory(uuid_)) {
    // What the driver keeps for itself is in NVML's total, never free for us.
    info.memory_total = std::min<std::uint64_t>(memory->total, properties.totalGlobalMem);
    info.memory_free = std::min<std::uint64_t>(memory->free, info.memory_total);
  } else {
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
  // Large products reach three quarters of the peak, copies nine tenths.
  info.flops_per_second = 0.75 * operations_per_clock(properties.major, settings_.compute) *
                          multiprocessors_ * attribute(ordinal_, cudaDevAttrClockRate) * 1e3;
  info.bytes_per_second = 0.9 * 2 * attribute(ordinal_, cudaDevAttrMemoryClockRate) * 1e3 *
                          properties.memoryBusWidth / 8;
}

}  // namespace heddle::cuda
