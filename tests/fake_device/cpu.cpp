#include "cpu.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "heddle/device.hpp"

namespace heddle::fake {

namespace {

const heddle_registry_service* registry(const heddle_host* host) {
  return host == nullptr ? nullptr
                         : static_cast<const heddle_registry_service*>(
                               host->service(host, HEDDLE_SERVICE_REGISTRY));
}

// {"threads": 1, "kernels": "all", "compute": "f32"}
class CpuOptions {
 public:
  CpuOptions(const heddle_host* host, const Configuration& configuration)
      : values_(
            *static_cast<const heddle_value_service*>(host->service(host, HEDDLE_SERVICE_VALUE))) {
    const auto text = [&](const std::string& value) {
      return values_.make_str({value.data(), value.size()});
    };
    add("threads", values_.make_int(configuration.threads));
    add("kernels", text(configuration.kernels));
    if (!configuration.compute.empty()) add("compute", text(configuration.compute));
    record_ = values_.make_record(static_cast<std::uint32_t>(keys_.size()), keys_.data(),
                                  members_.data());
  }
  ~CpuOptions() {
    for (const heddle_value* member : members_) values_.release(member);
    values_.release(record_);
  }
  CpuOptions(const CpuOptions&) = delete;
  const heddle_value* record() const { return record_; }

 private:
  void add(const char* key, heddle_value* value) {
    keys_.push_back(key);
    members_.push_back(value);
  }
  const heddle_value_service& values_;
  std::vector<const char*> keys_;
  std::vector<const heddle_value*> members_;
  heddle_value* record_ = nullptr;
};

}  // namespace

const heddle_device_desc* find_cpu(const heddle_host* host) {
  const heddle_registry_service* all = registry(host);
  const std::uint32_t count = all == nullptr ? 0 : all->count(host, HEDDLE_DEVICES);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto* desc = static_cast<const heddle_device_desc*>(all->item(host, HEDDLE_DEVICES, i));
    if (desc != nullptr && std::string_view(desc->kind) == "cpu") return desc;
  }
  return nullptr;
}

std::vector<const heddle_kernel*> cpu_kernels(const heddle_host* host) {
  std::vector<const heddle_kernel*> kernels;
  if (const heddle_device_desc* cpu = find_cpu(host))
    for (auto kernel = cpu->kernels; kernel != nullptr && *kernel != nullptr; ++kernel)
      kernels.push_back(*kernel);
  const heddle_registry_service* all = registry(host);
  const std::uint32_t count = all == nullptr ? 0 : all->count(host, HEDDLE_KERNELS);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto* kernel = static_cast<const heddle_kernel*>(all->item(host, HEDDLE_KERNELS, i));
    if (kernel != nullptr && std::string_view(kernel->device_kind) == "cpu")
      kernels.push_back(kernel);
  }
  return kernels;
}

Cpu::Cpu(const heddle_host* host, std::uint32_t index, const Configuration& configuration)
    : host_(host) {
  const heddle_device_desc* found = find_cpu(host);
  if (found == nullptr)
    device::fail(HEDDLE_NOT_FOUND,
                 "no plugin brings a cpu device, which would compute. Load it first");
  std::memcpy(&desc_, found, std::min<std::size_t>(found->size, sizeof desc_));
  for (const heddle_kernel* kernel : cpu_kernels(host)) kernels_[kernel->op].push_back(kernel);
  const CpuOptions options(host, configuration);
  check(desc_.open(host, index, options.record(), &raw_));
  heddle_device_info info{};
  info.size = sizeof info;
  check(desc_.info(raw_, &info));
  compute_ = info.compute;
}

Cpu::~Cpu() {
  if (raw_ != nullptr) desc_.close(raw_);
}

void Cpu::check(heddle_status* status) const {
  if (status == nullptr) return;
  const device::Error error(host_->status_code(status), host_->status_message(status));
  host_->status_free(status);
  throw error;
}

Cpu::Choice Cpu::choose(const heddle_op_call& call) const {
  Choice best;
  const auto found = kernels_.find(std::string_view(call.op));
  if (found == kernels_.end()) return best;
  for (const heddle_kernel* kernel : found->second) {
    const std::int32_t answer = kernel->fits(raw_, &call);
    if (answer > best.answer) best = {kernel, answer};
  }
  return best;
}

CpuStream::CpuStream(const Cpu& cpu) : cpu_(cpu) {
  cpu_.check(cpu_.desc().stream_make(cpu_.raw(), &stream_));
  cpu_.check(cpu_.desc().event_make(cpu_.raw(), &done_));
}

CpuStream::~CpuStream() {
  cpu_.desc().event_free(done_);
  cpu_.desc().stream_free(stream_);
}

void CpuStream::launch(const heddle_kernel& kernel, const heddle_op_call& call, void* workspace) {
  finish(kernel.launch(cpu_.raw(), stream_, &call, workspace));
}

void CpuStream::make_weight(std::int32_t use, const heddle_weight_layout& layout,
                            const std::vector<heddle_view>& parts, void* dst) {
  std::vector<const heddle_view*> pointers;
  for (const heddle_view& part : parts) pointers.push_back(&part);
  finish(cpu_.desc().make_weight(cpu_.raw(), stream_, use, &layout,
                                 static_cast<std::uint32_t>(pointers.size()), pointers.data(),
                                 dst));
}

void CpuStream::finish(heddle_status* status) {
  cpu_.check(status);
  cpu_.check(cpu_.desc().record(stream_, done_));
  cpu_.check(cpu_.desc().wait(done_));
}

}  // namespace heddle::fake
