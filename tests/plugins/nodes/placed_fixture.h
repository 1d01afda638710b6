// Holds a family's model to what it draws on one device: divided over several and with little
// memory it makes the same bytes, or, where the order of sums changes, nearly the same numbers.
#pragma once

#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/seeded_weights.h"

namespace heddle::test {

struct PlacedFixture : NodeFixture {
  const FakeControl control;
  std::filesystem::path input_dir = {};  // of pictures, where a flow loads some

  void add(const std::string& name, const std::vector<FileTensor>& tensors) const {
    const std::filesystem::path path = folder / "models" / (name + ".safetensors");
    std::filesystem::create_directories(path.parent_path());
    // The fixture's own models are links to goldens.
    BOOST_TEST_REQUIRE(!std::filesystem::is_symlink(path), path);
    write_safetensors(path, tensors);
  }
  // A CONDITIONING out of a file in the folder, "texts.safetensors", or another one.
  std::string text(const std::string& name, const std::filesystem::path& file = {}) const {
    return engine::cat(R"({"class_type": "test.conditioning", "inputs": {"path": ")",
                       (file.empty() ? folder / "texts.safetensors" : file).string(),
                       R"(", "prefix": "in.)", name, R"(", "option": ""}})");
  }
  // Two guided steps of two items from "model", "one" and "two" to "look"; hints: of the sampler.
  static std::string drawn_of(const std::string& nodes, const std::string& hints) {
    return engine::cat(
        "{", nodes,
        R"(, "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 48, "height": 32, "batch_size": 2}},
      "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 1, "steps": 2,
        "cfg": 2.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["one", 0],
        "negative": ["two", 0], "latent_image": ["empty", 0], "denoise": 1.0})",
        hints, R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  static std::string loaded(const std::string& file) {
    return engine::cat(R"("model": {"class_type": "UNETLoader", "inputs": {"unet_name": ")", file,
                       R"(.safetensors", "weight_dtype": "default"}})");
  }
  EngineOptions options_for(std::vector<std::string> devices, std::uint64_t budget = 0) const {
    const std::string kind = devices.front().substr(0, devices.front().find(':'));
    EngineOptions options = engine_options();
    if (kind == "fake") options.plugin_dirs.push_back(kFakePlugin);
    if (budget > 0) options.budgets = {{devices.front(), MemorySize{budget}}};
    options.devices = std::move(devices);
    options.compute = {{kind, "f32"}};
    options.reference_kernels = true;
    options.model_dirs = {folder / "models"};
    if (!input_dir.empty()) options.input_dir = input_dir;
    options.output_dir = folder / "placed";
    return options;
  }
  static std::vector<float> draw(EngineOptions options, const std::string& flow) {
    Engine engine(std::move(options));
    return engine.start(engine.parse(flow), {{}, {"out.LATENT"}})
        .wait()
        .floats("out.LATENT", "samples");
  }
  static bool are_equal(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
  }

  // flow: of the sampler's hints. budget: bytes of a device that do not hold all weights. numbers:
  // of a latent.
  void hold(const std::function<std::string(const std::string& hints)>& flow,
            std::initializer_list<const char*> same, std::initializer_list<const char*> nearly,
            std::uint64_t budget, std::size_t numbers = 2 * 16 * 4 * 6) const {
    const std::vector<float> alone = draw(options_for({"cpu:0"}), flow(""));
    BOOST_TEST(alone.size() == numbers);
    const auto divided = [&](const char* mode) {
      return draw(options_for({"fake:0", "fake:1"}),
                  flow(engine::cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")")));
    };
    for (const char* mode : same) BOOST_TEST(are_equal(alone, divided(mode)), mode);
    for (const char* mode : nearly) {
      const double error = relative_error(divided(mode), alone);
      BOOST_TEST(error < kTolerance, mode << ": relative error " << error);
    }
    BOOST_TEST(are_equal(alone, draw(options_for({"fake:0"}, budget), flow(""))), "little memory");
  }

  // flow: guided by two sets. Its tokens are divided among 2 devices, among `most`, and among 2 for
  // each set: nearly the numbers of one device, the same bytes in every order of the devices' work,
  // and each of them attends to something. outputs: of the flow, all of which count.
  void hold_tokens(const std::function<std::string(const std::string& hints)>& flow,
                   std::uint32_t most = 4,
                   const std::vector<std::string>& outputs = {"out.LATENT"}) const {
    const auto drawn = [&](Engine& engine, const std::string& hints) {
      const Results results = engine.start(engine.parse(flow(hints)), {{}, outputs}).wait();
      std::vector<float> all;
      for (const std::string& output : outputs) {
        const std::vector<float> made = results.floats(output, "samples");
        BOOST_TEST_REQUIRE(!made.empty(), output);
        all.insert(all.end(), made.begin(), made.end());
      }
      return all;
    };
    Engine one(options_for({"cpu:0"}));
    const std::vector<float> alone = drawn(one, "");
    const auto divided = [&](const char* mode, std::uint32_t count, const char* order) {
      std::vector<std::string> names;
      for (std::uint32_t d = 0; d < count; ++d) names.push_back(engine::cat("fake:", d));
      EngineOptions options = options_for(names);
      options.device_options["fake"] = order;
      control->reset();  // launches are counted from here on
      Engine engine(std::move(options));
      const std::vector<float> made =
          drawn(engine, engine::cat(R"(, "parallel": ")", mode, R"(", "device": ")",
                                    engine::join(names, ","), "\""));
      const double error = relative_error(made, alone);
      BOOST_TEST_MESSAGE(mode << " over " << count << ": relative error " << error);
      BOOST_TEST(error < kTolerance, mode << " over " << count << ": relative error " << error);
      for (std::uint32_t d = 0; d < count; ++d)
        BOOST_TEST(control->launches(d, HEDDLE_OP_ATTENTION) > 0u, mode << ": " << names[d]);
      return made;
    };
    const std::vector<float> two = divided("sequence", 2, "{}");
    if (most > 2)
      BOOST_TEST(are_equal(divided("sequence", most, "{}"),
                           divided("sequence", most, R"({"shuffle": 5})")));
    else
      BOOST_TEST(are_equal(divided("sequence", 2, R"({"shuffle": 6})"), two));
    BOOST_TEST(are_equal(divided("cfg+sequence", 4, R"({"shuffle": 7})"), two));
  }
};

}  // namespace heddle::test
