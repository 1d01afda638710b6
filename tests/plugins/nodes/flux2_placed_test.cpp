// A FLUX.2 model that is shown a picture, divided over devices in every way: the bytes of one
// device, or, where the order of sums changes, nearly its numbers.
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

struct PlacedFlux2 : NodeFixture {
  const heddle::test::FakeControl control;

  PlacedFlux2() {
    using heddle::test::seeded_tensor, heddle::test::write_safetensors;
    write_safetensors(folder / "models/diffusion_models/klein.safetensors",
                      heddle::test::seeded_model("klein", false, "flux2"));
    write_safetensors(folder / "texts.safetensors",
                      {seeded_tensor("in.one.cross_attn", {1, 7, 72}),
                       seeded_tensor("in.two.cross_attn", {1, 4, 72}),
                       seeded_tensor("in.other.cross_attn", {1, 7, 72}),
                       seeded_tensor("in.picture", {1, 16, 1, 3})});
  }
  std::string text(const char* name) const {
    return cat(R"({"class_type": "test.conditioning", "inputs": {"path": ")",
               (folder / "texts.safetensors").string(), R"(", "prefix": "in.)", name,
               R"(", "option": ""}})");
  }
  // Two items, guided.
  std::string flow(const std::string& hints) const {
    return cat(
        R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "klein.safetensors", "weight_dtype": "default"}},
      "one": )",
        text("one"), R"(, "two": )", text("two"),
        R"(, "picture": {"class_type": "test.latent", "inputs": {"path": ")",
        (folder / "texts.safetensors").string(), R"(", "name": "in.picture"}},
      "shown": {"class_type": "ReferenceLatent", "inputs": {"conditioning": ["one", 0], "latent": ["picture", 0]}},
      "empty": {"class_type": "EmptyFlux2LatentImage", "inputs": {"width": 48, "height": 32, "batch_size": 2}},
      "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 1, "steps": 1,
        "cfg": 2.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["shown", 0],
        "negative": ["two", 0], "latent_image": ["empty", 0], "denoise": 1.0})",
        hints, R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  // What is made of the picture is kept for the second step.
  std::string kept_flow(const std::string& hints) const {
    std::string text = flow(hints);
    const auto replace = [&](const std::string& from, const std::string& to) {
      text.replace(text.find(from), from.size(), to);
    };
    replace(R"("inputs": {"model": ["model", 0])", R"("inputs": {"model": ["kept", 0])");
    replace(R"("steps": 1)", R"("steps": 2)");
    replace(R"("one": )",
            R"("kept": {"class_type": "FluxKVCache", "inputs": {"model": ["model", 0]}}, "one": )");
    return text;
  }
  // At cfg 1, with what guides attentions away from this text; empty: nothing does.
  std::string attention_flow(const char* negative, const std::string& hints) const {
    const bool is_guided = negative[0] != '\0';
    return cat(
        R"({"plain": {"class_type": "UNETLoader", "inputs": {"unet_name": "klein.safetensors", "weight_dtype": "default"}},
      "model": {"class_type": "NAGuidance", "inputs": {"model": ["plain", 0], "nag_scale": 5.0, "nag_alpha": 0.5, "nag_tau": 1.5}},
      "one": )",
        text("one"), R"(, "two": )", text(is_guided ? negative : "one"),
        R"(, "empty": {"class_type": "EmptyFlux2LatentImage", "inputs": {"width": 48, "height": 32, "batch_size": 2}},
      "out": {"class_type": "KSampler", "inputs": {"model": [")",
        is_guided ? "model" : "plain", R"(", 0], "seed": 1, "steps": 1,
        "cfg": 1.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["one", 0],
        "negative": ["two", 0], "latent_image": ["empty", 0], "denoise": 1.0})",
        hints, R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  std::vector<float> draw(std::vector<std::string> devices, const std::string& hints) const {
    return draw_flow(std::move(devices), flow(hints));
  }
  std::vector<float> draw_flow(std::vector<std::string> devices, const std::string& flow,
                               bool is_slow = true) const {
    EngineOptions options = heddle::test::engine_options();
    options.plugin_dirs.push_back(heddle::test::kFakePlugin);
    options.devices = std::move(devices);
    options.compute = {{"fake", "f32"}};
    options.reference_kernels = is_slow;
    options.model_dirs = {folder / "models"};
    options.output_dir = folder / "placed";
    Engine placed(std::move(options));
    return placed.start(placed.parse(flow), {{}, {"out.LATENT"}})
        .wait()
        .floats("out.LATENT", "samples");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(flux2_placed, PlacedFlux2, *boost::unit_test::label("long"))

BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes_or_nearly_its_numbers) {
  const std::vector<float> alone = draw({"fake:0"}, "");
  BOOST_TEST(alone.size() == 2u * 16 * 2 * 3);
  const auto divided = [&](const char* mode) {
    return draw({"fake:0", "fake:1"},
                cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")"));
  };
  for (const char* mode : {"layers", "data", "cfg"}) {
    const std::vector<float> made = divided(mode);
    BOOST_TEST((made.size() == alone.size() &&
                std::memcmp(made.data(), alone.data(), 4 * alone.size()) == 0),
               mode);
  }
  for (const char* mode : {"sequence", "tensor"})
    BOOST_TEST(heddle::test::relative_error(divided(mode), alone) < kTolerance, mode);
}

BOOST_AUTO_TEST_CASE(what_was_made_of_pictures_is_kept_wherever_the_model_is) {
  const std::vector<float> alone = draw_flow({"fake:0"}, kept_flow(""), false);
  const auto hint = [](const char* mode) {
    return cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")");
  };
  for (const char* mode : {"layers", "data", "cfg"}) {
    const std::vector<float> made = draw_flow({"fake:0", "fake:1"}, kept_flow(hint(mode)), false);
    BOOST_TEST((made.size() == alone.size() &&
                std::memcmp(made.data(), alone.data(), 4 * alone.size()) == 0),
               mode);
  }
  // Devices divide none of its heads, which are kept whole.
  BOOST_TEST(heddle::test::relative_error(
                 draw_flow({"fake:0", "fake:1"}, kept_flow(hint("tensor")), false), alone) <
             kTolerance);
  const std::string said = heddle::test::engine_refusal([&] {
    draw_flow({"fake:0", "fake:1"}, kept_flow(hint("sequence")), false);
  });
  BOOST_TEST(said.find("Use layers, cfg or data, or leave out FluxKVCache") != std::string::npos,
             said);
}

BOOST_AUTO_TEST_CASE(guided_attentions_are_led_away_from_another_text_alone) {
  const auto drawn = [&](const char* negative, const char* mode = nullptr) {
    const std::string hints =
        mode == nullptr ? "" : cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")");
    return draw_flow({"fake:0", "fake:1"}, attention_flow(negative, hints));
  };
  using heddle::test::relative_error;
  const std::vector<float> plain = drawn(""), other = drawn("other");
  // Away from itself is nowhere.
  BOOST_TEST(relative_error(drawn("one"), plain) < kTolerance);
  BOOST_TEST(relative_error(other, plain) > 10 * kTolerance);
  for (const char* mode : {"sequence", "tensor"})
    BOOST_TEST(relative_error(drawn("other", mode), other) < kTolerance, mode);
}

BOOST_AUTO_TEST_SUITE_END()
