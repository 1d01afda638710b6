#include "test_device.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "heddle/device.hpp"

namespace heddle::conformance {

// ---- plugin ----

Plugin::Plugin(const std::string& path) : library_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) throw std::runtime_error(path + ": " + dlerror());
  const auto* entry = static_cast<const heddle_plugin*>(dlsym(library_, "heddle_entry"));
  if (entry == nullptr) throw std::runtime_error(path + ": exports no heddle_entry");
  if (entry->abi_major != HEDDLE_ABI_MAJOR || entry->abi_minor > HEDDLE_ABI_MINOR)
    throw std::runtime_error(path + ": built against another ABI");
  if (entry->init != nullptr) check(entry->init(mini_host()));
  const heddle_list* devices = entry->provide(HEDDLE_DEVICES);
  if (devices == nullptr || devices->count == 0)
    throw std::runtime_error(path + ": provides no devices");
  device_ = static_cast<const heddle_device_desc*>(devices->items[0]);
  add_to_registry(entry);
  for (auto kernel = device_->kernels; kernel != nullptr && *kernel != nullptr; ++kernel)
    kernels_.push_back(*kernel);
  const heddle_list* more = entry->provide(HEDDLE_KERNELS);
  for (std::uint32_t i = 0; more != nullptr && i < more->count; ++i) {
    const auto* kernel = static_cast<const heddle_kernel*>(more->items[i]);
    if (std::strcmp(kernel->device_kind, device_->kind) == 0) kernels_.push_back(kernel);
  }
}

Plugin::~Plugin() {
  const auto* entry = static_cast<const heddle_plugin*>(dlsym(library_, "heddle_entry"));
  remove_from_registry(entry);
  if (entry->deinit != nullptr) entry->deinit();
  dlclose(library_);
}

// ---- memory ----

TestDevice::Buffer::Buffer(const TestDevice& device, std::size_t bytes)
    : device(&device), memory(nullptr), bytes(bytes) {
  check(device.desc_.alloc(device.device_, bytes, &memory));
}

TestDevice::Buffer::~Buffer() {
  if (memory != nullptr) device->desc_.free(device->device_, memory);
}

TestDevice::Buffer::Buffer(Buffer&& other) noexcept
    : device(other.device), memory(std::exchange(other.memory, nullptr)), bytes(other.bytes) {}

// ---- device ----

TestDevice::TestDevice(const Plugin& plugin, const OptionMap& options, std::uint32_t index)
    : plugin_(plugin), desc_(plugin.device()) {
  const OptionRecord record(options);
  check(desc_.open(mini_host(), index, record.value(), &device_));
  check(desc_.stream_make(device_, &stream_));
}

TestDevice::~TestDevice() {
  desc_.stream_free(stream_);
  desc_.close(device_);
}

heddle_device_info TestDevice::info() const {
  heddle_device_info result{};
  check(desc_.info(device_, &result));
  return result;
}

void TestDevice::wait() const {
  heddle_event* event = nullptr;
  check(desc_.event_make(device_, &event));
  heddle_status* status = desc_.record(stream_, event);
  if (status == nullptr) status = desc_.wait(event);
  desc_.event_free(event);
  check(status);
}

// A case on the device: views, and the memory they point into.
struct TestDevice::Prepared {
  std::string op;
  std::vector<Buffer> buffers;
  std::vector<std::optional<heddle_view>> in, out;
  std::vector<std::size_t> out_buffer;  // index into buffers
  std::vector<std::byte> attrs;
  std::vector<const heddle_view*> in_pointers, out_pointers;

  heddle_op_call call() {
    in_pointers.clear();
    out_pointers.clear();
    for (const auto& view : in) in_pointers.push_back(view ? &*view : nullptr);
    for (const auto& view : out) out_pointers.push_back(&*view);
    return {.size = sizeof(heddle_op_call),
            .op = op.c_str(),
            .in_count = static_cast<std::uint32_t>(in.size()),
            .out_count = static_cast<std::uint32_t>(out.size()),
            .in = in_pointers.data(),
            .out = out_pointers.data(),
            .attrs = attrs.data(),
            .attrs_size = static_cast<std::uint32_t>(attrs.size())};
  }
};

namespace {

// As engines tell a use that is newer than the plugin.
heddle_use told_use(const TestDevice& device, heddle_use use) {
  if (use <= HEDDLE_USE_LINEAR_FP8) return use;
  const auto* const uses = device.extension<heddle_device_uses>(HEDDLE_DEVICE_USES);
  return uses != nullptr && use <= uses->last ? use : heddle_use{HEDDLE_USE_VECTOR};
}

}  // namespace

TestDevice::Prepared TestDevice::prepare(const OpCase& op_case, bool in_place) const {
  Prepared result;
  result.op = op_case.op;
  result.attrs = op_case.attrs;
  const auto upload = [&](const HostTensor& tensor) {
    result.buffers.emplace_back(*this, tensor.memory().size());
    void* memory = result.buffers.back().memory;
    check(desc_.copy(stream_, device_, memory, nullptr, tensor.memory().data(),
                     tensor.memory().size()));
    return heddle_view{tensor.info(), static_cast<std::byte*>(memory) + tensor.origin()};
  };
  for (std::uint32_t i = 0; i < op_case.in.size(); ++i) {
    if (!op_case.in[i]) {
      result.in.emplace_back();
    } else if (op_case.weight && op_case.weight->input == i) {
      const HostTensor& file = *op_case.in[i];
      heddle_weight_layout layout{};
      heddle_tensor_info told = file.info();
      if (op_case.weight->told != 0) told.dtype = op_case.weight->told;
      const heddle_use use = told_use(*this, op_case.weight->use);
      check(desc_.weight_layout(device_, use, &told, &layout));
      result.buffers.emplace_back(*this, layout.bytes);
      const heddle_view part{file.info(),
                             const_cast<std::byte*>(file.memory().data()) + file.origin()};
      const heddle_view* parts[] = {&part};
      check(desc_.make_weight(device_, stream_, use, &layout, 1, parts,
                              result.buffers.back().memory));
      result.in.emplace_back(heddle_view{layout.info, result.buffers.back().memory});
    } else {
      result.in.emplace_back(upload(*op_case.in[i]));
    }
  }
  for (std::size_t i = 0; i < op_case.out.size(); ++i) {
    if (in_place && i == 0) {
      result.out.emplace_back(result.in[0]);
      result.out_buffer.push_back(0);
      continue;
    }
    result.out_buffer.push_back(result.buffers.size());
    result.out.emplace_back(upload(op_case.out[i]));
  }
  wait();
  return result;
}

const heddle_kernel* TestDevice::best(const heddle_op_call& call) const {
  const heddle_kernel* chosen = nullptr;
  std::int32_t highest = 0;
  for (const heddle_kernel* kernel : kernels()) {
    if (std::strcmp(kernel->op, call.op) != 0) continue;
    const std::int32_t answer = kernel->fits(device_, &call);
    if (answer > highest) chosen = kernel;
    highest = std::max(highest, answer);
  }
  return chosen;
}

// As the engine asks: shapes are known, memory is not.
std::optional<TestDevice::Prepared> TestDevice::shapes_of(const OpCase& op_case) const {
  Prepared result;
  result.op = op_case.op;
  result.attrs = op_case.attrs;
  for (std::uint32_t i = 0; i < op_case.in.size(); ++i) {
    if (!op_case.in[i]) {
      result.in.emplace_back();
      continue;
    }
    heddle_tensor_info info = op_case.in[i]->info();
    if (op_case.weight && op_case.weight->input == i) {
      if (op_case.weight->told != 0) info.dtype = op_case.weight->told;
      const auto layout = weight_layout(told_use(*this, op_case.weight->use), info);
      if (!layout) return std::nullopt;
      info = layout->info;
    }
    result.in.emplace_back(heddle_view{info, nullptr});
  }
  for (const HostTensor& tensor : op_case.out)
    result.out.emplace_back(heddle_view{tensor.info(), nullptr});
  return result;
}

std::optional<heddle_weight_layout> TestDevice::weight_layout(
    heddle_use use, const heddle_tensor_info& info) const {
  heddle_weight_layout layout{};
  heddle_status* const status = desc_.weight_layout(device_, use, &info, &layout);
  if (status == nullptr) return layout;
  const Reason reason = take(status);
  if (reason.code != HEDDLE_UNSUPPORTED) throw std::runtime_error(reason.message);
  return std::nullopt;
}

bool TestDevice::offers(const std::string& op) const {
  return std::any_of(kernels().begin(), kernels().end(),
                     [&](const heddle_kernel* kernel) { return op == kernel->op; });
}

std::vector<const heddle_kernel*> TestDevice::fitting(const OpCase& op_case) const {
  if (!offers(op_case.op)) return {};
  std::optional<Prepared> prepared = shapes_of(op_case);
  if (!prepared) return {};
  const heddle_op_call call = prepared->call();
  std::vector<std::pair<std::int32_t, const heddle_kernel*>> found;
  for (const heddle_kernel* kernel : kernels()) {
    if (op_case.op != kernel->op) continue;
    const std::int32_t answer = kernel->fits(device_, &call);
    if (answer > 0) found.emplace_back(answer, kernel);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<const heddle_kernel*> result;
  for (const auto& [answer, kernel] : found) result.push_back(kernel);
  return result;
}

void TestDevice::run_prepared(OpCase& op_case, const heddle_kernel* kernel, bool in_place) const {
  for (HostTensor& tensor : op_case.out) tensor.poison();
  Prepared prepared = prepare(op_case, in_place);
  heddle_op_call call = prepared.call();
  if (kernel == nullptr) kernel = best(call);
  if (kernel == nullptr) throw std::runtime_error(op_case.name + ": no kernel fits");
  Buffer workspace(*this, kernel->workspace != nullptr ? kernel->workspace(device_, &call) : 0);
  check(kernel->launch(device_, stream_, &call, workspace.memory));
  // The call's structs die here on purpose: a kernel that has not copied them reads garbage.
  prepared.in_pointers.assign(prepared.in_pointers.size(), nullptr);
  prepared.attrs.assign(prepared.attrs.size(), std::byte{0xee});
  for (auto& view : prepared.in)
    if (view) std::memset(&*view, 0xee, sizeof *view);
  for (std::size_t i = 0; i < op_case.out.size(); ++i) {
    HostTensor& tensor = op_case.out[i];
    const Buffer& buffer = prepared.buffers[prepared.out_buffer[i]];
    check(desc_.copy(stream_, nullptr, tensor.memory().data(), device_, buffer.memory,
                     tensor.memory().size()));
  }
  wait();
}

void TestDevice::run(OpCase& op_case, const heddle_kernel* kernel) const {
  run_prepared(op_case, kernel, false);
}

void TestDevice::run_in_place(OpCase& op_case, const heddle_kernel* kernel) const {
  run_prepared(op_case, kernel, true);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double TestDevice::measure(OpCase& op_case, const heddle_kernel* kernel, double seconds,
                           Clock clock) const {
  Prepared prepared = prepare(op_case, false);
  const heddle_op_call call = prepared.call();
  Buffer workspace(*this, kernel->workspace != nullptr ? kernel->workspace(device_, &call) : 0);
  const auto run = [&](int repeats) {
    const double start = clock();
    for (int i = 0; i < repeats; ++i)
      check(kernel->launch(device_, stream_, &call, workspace.memory));
    wait();
    return clock() - start;
  };
  run(1);  // whatever a first call prepares
  const int repeats = std::clamp(static_cast<int>(seconds / std::max(run(1), 1e-6)), 1, 10000);
  return std::min(run(repeats), run(repeats)) / repeats;
}

}  // namespace heddle::conformance
