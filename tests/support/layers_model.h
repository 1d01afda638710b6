// A random model of linear layers (the family test.layers), in workflows and in sessions that a
// test opens itself, on any devices.
#pragma once

#include <random>

#include "engine/base/text.h"
#include "engine/files/checkpoint.h"
#include "engine/session/session.h"
#include "engine/tensor/shape.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/placed_runs.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace heddle::test {

// What a session may use of the devices of its placement, and who watches it.
struct SessionLimits {
  std::vector<std::uint64_t> budgets;  // by place; those that are missing have none
  engine::DeviceRates rates = {};
  engine::Timeline* timeline = nullptr;
  std::int64_t items = 1;  // of the batch
  int donor = -1;          // a device that may lend the first place so many bytes
  std::uint64_t donor_available = 0;
  std::shared_ptr<engine::Ledger> host = nullptr;  // of host memory
  std::uint64_t pinned_bytes = 0;                  // of what is streamed
  std::function<std::uint64_t()> budget_now = {};  // of each device slot, in place of budgets
};

struct LayersModel {
  static constexpr int kWidth = 24, kLayers = 7, kItems = 4;

  TemporaryFolder folder;
  std::string path;
  int width, layers;
  PlacedRuns runs;

  // Computes with the plain loops. `fakes`: options of the fake devices.
  explicit LayersModel(const std::vector<std::string>& devices, const std::string& fakes = "{}",
                       int width_of_all = kWidth, int layer_count = kLayers)
      : width(width_of_all),
        layers(layer_count),
        runs({.names = devices,
              .compute = all_in_f32(devices),
              .threads = 1,
              .reference_kernels = true,
              .options = {{"fake", fakes}}},
             {HEDDLE_PLUGINS_DIR, HEDDLE_SAMPLE_PLUGINS_DIR, HEDDLE_FAKE_DEVICE_DIR}) {
    std::mt19937 random(11);
    std::normal_distribution<float> normal(0.0f, 0.2f);
    std::vector<FileTensor> tensors;
    for (int l = 0; l < layers; ++l) {
      std::vector<float> w(std::size_t(width) * std::size_t(width));
      for (float& x : w) x = normal(random);
      tensors.push_back(
          {"layers." + std::to_string(l) + ".weight", "F32", {width, width}, bytes_of_floats(w)});
    }
    path = folder.write("layers.safetensors", safetensors_bytes(tensors)).string();
  }

  std::string flow(int steps, int sets, const std::string& device = "") const {
    const std::string on = device.empty() ? "" : R"(, "device": ")" + device + "\"";
    return workflow(
        {{"load",
          (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
         {"x", (R"({"class_type": "test.ramp", "inputs": {"count": )" + std::to_string(width) +
                R"(, "items": 4}})")
                   .c_str()},
         {"loop",
          (R"({"class_type": "test.loop", "inputs": {"model": ["load", 0], "x": ["x", 0], "steps": )" +
           std::to_string(steps) + R"(, "sets": )" + std::to_string(sets) + "}" + on + "}")
              .c_str()},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}});
  }

  engine::DeviceState& state(std::uint32_t device) {
    return *runs.environment().devices[device].state;
  }
  engine::Value model() {
    return runs.environment().build_model("test", engine::open_checkpoint(path), nullptr, {});
  }

  // A session of `sets` sets at home on device 0, all of whose inputs lie there.
  struct Opened {
    std::unique_ptr<engine::Session> session;
    std::vector<engine::Value> x;  // of the next step
    void step(std::uint32_t index) {
      std::vector<const heddle_value*> in;
      for (const engine::Value& value : x) in.push_back(value.get());
      const std::vector<engine::Value> out = session->step(index, in);
      for (std::size_t s = 0; s < x.size(); ++s)
        x[s] = engine::make_record({{"x", *std::get<engine::Record>(out[s]->content).find("y")}});
    }
  };
  Opened open(
      std::uint32_t steps, std::uint32_t sets,
      std::function<engine::CallPlacement(const engine::Model&)> parallelize,
      std::function<bool()> cancelled = [] { return false; }, SessionLimits limits = {}) {
    Opened opened;
    engine::SessionRequest request{model(), {}, {}, steps};
    std::vector<float> t(steps);
    for (std::uint32_t i = 0; i < steps; ++i) t[i] = 1.0f + float(i);
    request.schedule = engine::make_record({{"t", tensor({steps, 1, 1}, t)}});
    for (std::uint32_t s = 0; s < sets; ++s) {
      request.constants.push_back(
          engine::make_record({{"bias", tensor({1, 1, 1}, {0.5f * float(s + 1)})}}));
      opened.x.push_back(engine::make_record(
          {{"x", tensor({limits.items, 1, width},
                        std::vector<float>(std::size_t(limits.items * width), float(s)))}}));
    }
    engine::Timeline* const timeline = limits.timeline;
    const auto choose_devices = [this, parallelize = std::move(parallelize),
                                 limits = std::move(limits)](const engine::Model& of,
                                                             const engine::CallSpec&) {
      engine::SessionDeviceSlots chosen{{}, 0, parallelize(of)};
      for (const std::uint32_t d : chosen.placement.devices) {
        engine::RunDevice& device = runs.environment().devices[d];
        const std::size_t p = chosen.device_slots.size();
        chosen.device_slots.push_back({device.state.get(), device.weights.get(),
                                       limits.budget_now           ? limits.budget_now()
                                       : p < limits.budgets.size() ? limits.budgets[p]
                                                                   : engine::kNoLimit,
                                       limits.rates});
      }
      chosen.host_memory = limits.host;
      chosen.pinned_bytes = limits.pinned_bytes;
      if (limits.donor >= 0)
        chosen.donors.push_back(
            {{"donor", limits.donor_available, {{1e12, 0}}},
             runs.environment().devices[std::size_t(limits.donor)].weights.get()});
      return chosen;
    };
    opened.session = std::make_unique<engine::Session>(choose_devices, std::move(request),
                                                       std::move(cancelled), timeline);
    return opened;
  }

  // Bytes in use, by device, when nothing is kept for later.
  std::vector<std::uint64_t> used() {
    runs.environment().cache.clear();
    std::vector<std::uint64_t> bytes;
    for (const engine::RunDevice& device : runs.environment().devices) {
      device.state->settle();
      device.weights->drop_unused();
    }
    for (const engine::RunDevice& device : runs.environment().devices) {
      device.state->settle();
      bytes.push_back(device.state->memory_use().used - device.weights->bytes());
    }
    return bytes;
  }

 private:
  engine::Value tensor(std::vector<std::int64_t> shape, const std::vector<float>& values) {
    const engine::Tensor made =
        state(0).upload(engine::make_info(HEDDLE_F32, shape), values.data());
    return engine::make_value(state(0).bring(made));
  }
};

}  // namespace heddle::test
