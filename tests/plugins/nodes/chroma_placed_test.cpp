// Chroma on several devices and with little memory: the same bytes, or, where the order of sums
// changes, nearly the same numbers.
#include <cstring>

#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/seeded_weights.h"

using heddle::Engine;
using heddle::EngineOptions;
using heddle::engine::cat;
using heddle::test::NodeFixture;

namespace {

struct PlacedChroma : NodeFixture {
  const heddle::test::FakeControl control;

  PlacedChroma() {
    using heddle::test::seeded_tensor, heddle::test::write_safetensors;
    write_safetensors(folder / "models/diffusion_models/chroma.safetensors",
                      heddle::test::seeded_model("transformer", false, "chroma"));
    write_safetensors(folder / "texts.safetensors",
                      {seeded_tensor("in.one.cross_attn", {1, 7, 160}),
                       seeded_tensor("in.two.cross_attn", {1, 4, 160}),
                       seeded_tensor("in.three.cross_attn", {1, 7, 160})});
  }
  std::string text(const char* name) const {
    return cat(R"({"class_type": "test.conditioning", "inputs": {"path": ")",
               (folder / "texts.safetensors").string(), R"(", "prefix": "in.)", name,
               R"(", "option": ""}})");
  }
  // Two items, guided.
  std::string flow(const std::string& hints = "") const {
    return cat(
        R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "chroma.safetensors", "weight_dtype": "default"}},
      "one": )",
        text("one"), R"(, "two": )", text("two"),
        R"(, "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 48, "height": 32, "batch_size": 2}},
      "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 1, "steps": 2,
        "cfg": 2.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["one", 0],
        "negative": ["two", 0], "latent_image": ["empty", 0], "denoise": 1.0})",
        hints, R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  EngineOptions options_for(std::vector<std::string> devices, std::uint64_t budget = 0) const {
    const std::string kind = devices.front().substr(0, devices.front().find(':'));
    EngineOptions options = heddle::test::engine_options();
    if (kind == "fake") options.plugin_dirs.push_back(heddle::test::kFakePlugin);
    if (budget > 0) options.budgets = {{devices.front(), heddle::MemorySize{budget}}};
    options.devices = std::move(devices);
    options.compute = {{kind, "f32"}};
    options.reference_kernels = true;
    options.model_dirs = {folder / "models"};
    options.output_dir = folder / "placed";
    return options;
  }
  std::vector<float> draw(EngineOptions options, const std::string& hints = "") const {
    Engine engine(std::move(options));
    return engine.start(engine.parse(flow(hints)), {{}, {"out.LATENT"}})
        .wait()
        .floats("out.LATENT", "samples");
  }
  static bool are_equal(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(chroma_placed, PlacedChroma)

BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes_or_nearly_its_numbers) {
  const std::vector<float> alone = draw(options_for({"cpu:0"}));
  BOOST_TEST(alone.size() == 2u * 16 * 4 * 6);
  const auto divided = [&](const char* mode) {
    return draw(options_for({"fake:0", "fake:1"}),
                cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")"));
  };
  for (const char* mode : {"layers", "data", "cfg"})
    BOOST_TEST(are_equal(alone, divided(mode)), mode);
  for (const char* mode : {"sequence", "tensor"}) {
    const double error = heddle::test::relative_error(divided(mode), alone);
    BOOST_TEST(error < kTolerance, mode << ": relative error " << error);
  }
  // Its weights are some 760 kB.
  BOOST_TEST(are_equal(alone, draw(options_for({"fake:0"}, 700 << 10))), "little memory");
}

BOOST_AUTO_TEST_CASE(attention_is_guided_by_a_text_of_as_many_tokens) {
  Engine engine(options_for({"cpu:0"}));
  const auto drawn = [&](const char* alpha) {
    const std::string model = alpha[0] == '\0' ? "model" : "nag";
    return engine
        .start(
            engine.parse(cat(
                R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "chroma.safetensors", "weight_dtype": "default"}},
      "nag": {"class_type": "NAGuidance", "inputs": {"model": ["model", 0], "nag_scale": 5, "nag_tau": 1.5, "nag_alpha": )",
                alpha[0] == '\0' ? "0" : alpha, R"(}}, "one": )", text("one"), R"(, "three": )",
                text("three"),
                R"(, "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 48, "height": 32, "batch_size": 2}},
      "out": )",
                ksampler(R"("steps": 2, "negative": ["three", 0], "model": [")" + model +
                         R"(", 0])"),
                R"(, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})")),
            {{}, {"out.LATENT"}})
        .wait()
        .floats("out.LATENT", "samples");
  };
  const std::vector<float> plain = drawn("");
  const double none = heddle::test::relative_error(drawn("0"), plain),
               some = heddle::test::relative_error(drawn("0.5"), plain);
  BOOST_TEST(none < kTolerance, "relative error " << none);
  BOOST_TEST(some > 100 * kTolerance, "it changed " << some);
}

BOOST_AUTO_TEST_SUITE_END()
