// Runs of a small graphs/scene.json whose sampler stands on fake devices: with streamed weights,
// divided over devices, or replaying captured graphs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/temporary_folder.h"

namespace heddle::test {

inline constexpr int kSceneSteps = 4;
inline constexpr const char* kSceneSampler = "5";  // the node's id

// Where and how the sampler runs. With cpu:0 at the end all else runs there.
struct SceneWay {
  std::vector<std::string> devices;
  std::string parallel = {};                          // empty: as placed
  std::map<std::string, std::uint64_t> budgets = {};  // of devices; else all of them
};

struct SceneRuns {
  FakeControl control;
  TemporaryFolder folder;

  static std::string flow_text() {
    std::ifstream file(HEDDLE_SOURCE_DIR "/graphs/scene.json");
    std::string text{std::istreambuf_iterator<char>(file), {}};
    text = std::regex_replace(text, std::regex("\"(width|height)\": \\d+"), "\"$1\": 64");
    text = std::regex_replace(text, std::regex("\"sampler_name\": \"euler\""),
                              "\"sampler_name\": \"dpmpp_2m_sde\"");
    return std::regex_replace(text, std::regex("\"steps\": \\d+"),
                              "\"steps\": " + std::to_string(kSceneSteps));
  }
  EngineOptions options(const SceneWay& way) const {
    EngineOptions o = fake_engine_options(way.devices);
    for (const std::string& device : way.devices) o.compute[device] = "f32";
    o.model_dirs = {HEDDLE_SOURCE_DIR "/graphs/models"};
    o.output_dir = folder / "output";
    o.cache_bytes = 1;
    o.reference_kernels = false;  // faster
    for (const auto& [device, bytes] : way.budgets) {
      o.budgets[device] = bytes;
      o.reserves[device] = std::uint64_t{0};
    }
    return o;
  }
  static Workflow flow(const Engine& engine, const SceneWay& way) {
    Workflow flow = engine.parse(flow_text());
    if (!way.parallel.empty()) flow.parallel("sampler", way.parallel);
    if (way.devices.back() == "cpu:0") {
      flow.place("sampler", "fake:0");
      for (const char* node : {"prompt", "negative prompt", "size", "decode"})
        flow.place(node, "cpu:0");
    }
    return flow;
  }
  static std::vector<float> pixels(const Results& results) {
    return results.image("decode.IMAGE").pixels;
  }
  // With all the room that there is, and without a stop.
  std::vector<float> whole(const SceneWay& way, int seed = 0) const {
    SceneWay with_room = way;
    with_room.budgets.clear();
    Engine engine(options(with_room));
    Workflow scene = flow(engine, way);
    if (seed != 0) scene.set("sampler.seed", std::to_string(seed));
    return pixels(engine.start(scene, {.fetch = {"decode.IMAGE"}}).wait());
  }
  // Of each device but the CPU: what keeps the bytes, and what is needed to stream nothing.
  struct Room {
    std::uint64_t least = 0, all = 0;
  };
  std::map<std::string, Room> room(const SceneWay& way) const {
    std::map<std::string, Room> rooms;
    Engine engine(options(way));
    const engine::Json told =
        engine::parse_json(engine.plan_min_memory(flow(engine, way), true), "min-memory");
    for (const engine::Json& device : told.as_array()) {
      const std::string name(device.at("device").as_string());
      if (!name.starts_with("fake")) continue;
      Room& one = rooms[name];
      one.least = device.at("min_bytes").as_uint64();
      for (const engine::Json& node : device.at("nodes").as_array())
        one.all = std::max(one.all, node.at("all_bytes").as_uint64());
    }
    return rooms;
  }
  bool is_divided(const SceneWay& way) const {
    Engine engine(options(way));
    for (const PlannedCall& call : engine.planned_calls(flow(engine, way)))
      if (call.parallel == way.parallel) return true;
    return false;
  }
};

}  // namespace heddle::test
