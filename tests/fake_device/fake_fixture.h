// Fake devices for tests: opened alone, or given to an engine; and hold of what they count and of
// their faults. All counters and simulated times are zero when a fixture has been made.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/memory/device_state.h"
#include "engine/plugin/devices.h"
#include "engine/tensor/call.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/ops.h"
#include "heddle/testing/fake_control.h"
#include "tests/support/engine_fixture.h"

namespace heddle::test {

inline constexpr const char* kFakePlugin = HEDDLE_FAKE_DEVICE_DIR "/fake.so";

// The plugin and its control table; holds the plugin loaded.
class FakeControl {
 public:
  FakeControl() : plugin_(engine::load_plugin(kFakePlugin)) { control().reset(); }
  const heddle_fake_control& control() const {
    return *static_cast<const heddle_fake_control*>(plugin_->provide(HEDDLE_FAKE_CONTROL).at(0));
  }
  const heddle_fake_control* operator->() const { return &control(); }

 private:
  std::shared_ptr<const engine::Plugin> plugin_;
};

// Options of an engine with fake devices; `options` as in configuration.h. They compute with the
// plain loops.
inline EngineOptions fake_engine_options(std::vector<std::string> devices,
                                         std::string options = "{}") {
  EngineOptions result = engine_options();
  result.plugin_dirs.push_back(kFakePlugin);
  result.devices = std::move(devices);
  result.device_options["fake"] = std::move(options);
  result.reference_kernels = true;
  return result;
}

// Fake devices without an engine, "fake:0" to "fake:<count - 1>".
class Fakes {
 public:
  explicit Fakes(const std::string& options = "{}", std::uint32_t count = 1)
      : plugins_(engine::load_plugins({HEDDLE_PLUGINS_DIR "/cpu.so", kFakePlugin})) {
    engine::DeviceSelection selection;
    for (std::uint32_t i = 0; i < count; ++i)
      selection.names.push_back("fake:" + std::to_string(i));
    selection.options["fake"] = options;
    selection.compute["fake"] = "f32";
    selection.reference_kernels = true;
    devices_ = engine::open_devices(plugins_, selection);
  }
  Fakes(const Fakes&) = delete;
  ~Fakes() {  // as an Environment's: a device may keep events and memory of another
    for (const engine::RunDevice& device : devices_) device.state->release_all();
  }

  const FakeControl& control() const { return control_; }
  engine::DeviceState& state(std::size_t i = 0) const { return *devices_.at(i).state; }
  const engine::Device& device(std::size_t i = 0) const { return state(i).device(); }
  const engine::LoadedPlugins& plugins() const { return plugins_; }

 private:
  engine::LoadedPlugins plugins_;
  FakeControl control_;
  std::vector<engine::RunDevice> devices_;
};

// Memory of a device, outside of any pool.
class DeviceBuffer {
 public:
  DeviceBuffer(const engine::Device& device, std::size_t floats)
      : device_(device),
        floats_(floats),
        data_(static_cast<std::byte*>(device.allocate(floats * sizeof(float)))) {}
  ~DeviceBuffer() { device_.free(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return floats_ * sizeof(float); }
  const engine::Device& device() const { return device_; }
  heddle_view view() const {
    const std::int64_t shape[] = {std::int64_t(floats_)};
    return {engine::make_info(HEDDLE_F32, shape), data_};
  }

  // What is in it, by a stream of its own, when `after` is done.
  std::vector<float> read() const {
    std::vector<float> result(floats_);
    engine::Stream stream(device_);
    device_.copy(stream, nullptr, result.data(), &device_, data_, bytes());
    stream.synchronize();
    return result;
  }

 private:
  const engine::Device& device_;
  std::size_t floats_;
  std::byte* data_;
};

// Enqueues buffer = value.
inline void fill(const Fakes& fakes, engine::Stream& stream, const DeviceBuffer& buffer,
                 double value) {
  const heddle_view view = buffer.view();
  const heddle_view* out[] = {&view};
  const heddle_fill_attrs attrs{value};
  const heddle_op_call call{sizeof call, HEDDLE_OP_FILL, 0, 1, nullptr, out, &attrs, sizeof attrs};
  const heddle_kernel& kernel = fakes.plugins().kernels->choose(buffer.device(), call);
  engine::throw_status(kernel.launch(buffer.device().raw(), stream.raw(), &call, nullptr), "fill");
}

// Enqueues to = from, between any two fakes.
inline void copy(engine::Stream& stream, const DeviceBuffer& to, const DeviceBuffer& from) {
  stream.device().copy(stream, &to.device(), to.data(), &from.device(), from.data(), to.bytes());
}

}  // namespace heddle::test
