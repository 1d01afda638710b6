// UNets of Stable Diffusion, SDXL and Stable Video Diffusion on several devices and with little
// memory: the same bytes.
#include <cstring>

#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/shown_models.h"
#include "tests/support/svd_models.h"

using heddle::Engine;
using heddle::EngineOptions;
using heddle::engine::cat;
using heddle::test::NodeFixture;

namespace {

struct PlacedUnet : NodeFixture {
  const heddle::test::FakeControl control;

  PlacedUnet() {
    using heddle::test::seeded_tensor, heddle::test::write_safetensors;
    for (const char* kind : {"sd1", "sd2", "sdxl", "refiner", "inpaint"})
      write_safetensors(folder / "models/diffusion_models" / cat(kind, ".safetensors"),
                        heddle::test::unet_model(kind));
    for (const char* kind : {"lotus", "x4"})
      write_safetensors(folder / "models/diffusion_models" / cat(kind, ".safetensors"),
                        heddle::test::shown_model(kind));
    write_safetensors(folder / "models/diffusion_models/svd.safetensors",
                      heddle::test::svd_model("unet"));
    write_safetensors(folder / "texts_svd.safetensors",
                      {seeded_tensor("in.one.cross_attn", {1, 1, 64}),
                       seeded_tensor("in.one.concat_latent_image", {1, 4, 5, 9}),
                       seeded_tensor("in.two.cross_attn", {1, 1, 64}),
                       seeded_tensor("in.two.concat_latent_image", {2, 4, 5, 9})});
    // Of a latent: what is right of its middle is drawn anew.
    std::vector<float> drawn(5 * 9, 0.0f);
    for (std::size_t i = 0; i < drawn.size(); ++i) drawn[i] = i % 9 > 4 ? 1.0f : 0.0f;
    write_safetensors(folder / "mask.safetensors",
                      {{"in.mask", "F32", {1, 5, 9}, heddle::test::bytes_of_floats(drawn)},
                       seeded_tensor("in.latent", {2, 4, 5, 9})});
    for (const int width : {64, 128})
      write_safetensors(folder / cat("texts", width, ".safetensors"),
                        {seeded_tensor("in.one.cross_attn", {1, 7, width}),
                         seeded_tensor("in.one.pooled_output", {1, 64}),
                         seeded_tensor("in.two.cross_attn", {1, 4, width}),
                         seeded_tensor("in.two.pooled_output", {1, 64})});
  }
  std::string text(const char* kind, const char* name) const {
    const int width = std::string(kind) == "sdxl" ? 128 : 64;
    const std::string file =
        std::string(kind) == "svd" ? "texts_svd.safetensors" : cat("texts", width, ".safetensors");
    return cat(R"({"class_type": "test.conditioning", "inputs": {"path": ")",
               (folder / file).string(), R"(", "prefix": "in.)", name, R"(", "option": ""}})");
  }
  // Two items, guided, of a size that does not divide evenly.
  std::string flow(const char* kind, const std::string& hints) const {
    if (std::string(kind) == "x4") return upscaling(hints);
    const std::string empty =
        std::string(kind) == "inpaint"
            ? masked_latent()
            : R"("empty": {"class_type": "EmptyLatentImage", "inputs": {"width": 72, "height": 40, "batch_size": 2}})";
    return cat(R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": ")", kind,
               R"(.safetensors", "weight_dtype": "default"}}, "one": )", text(kind, "one"),
               R"(, "two": )", text(kind, "two"), ", ", empty, R"(,
      "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 1, "steps": 2,
        "cfg": 2.0, "sampler_name": "euler", "scheduler": "normal", "positive": ["one", 0],
        "negative": ["two", 0], "latent_image": ["empty", 0], "denoise": 1.0})",
               hints,
               R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  // Two items and one mask, which the model is shown.
  std::string masked_latent() const {
    const std::string file = (folder / "mask.safetensors").string();
    return cat(R"("given": {"class_type": "test.latent", "inputs": {"path": ")", file,
               R"(", "name": "in.latent"}},
      "mask": {"class_type": "test.mask", "inputs": {"path": ")",
               file, R"(", "name": "in.mask"}},
      "empty": {"class_type": "SetLatentNoiseMask", "inputs": {"samples": ["given", 0], "mask": ["mask", 0]}})");
  }
  // Of two small pictures with noise in them.
  std::string upscaling(const std::string& hints) const {
    return cat(
        R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "x4.safetensors",
        "weight_dtype": "default"}}, "one": )",
        text("x4", "one"), R"(, "two": )", text("x4", "two"),
        R"(, "small": {"class_type": "EmptyImage", "inputs": {"width": 9, "height": 5, "batch_size": 2, "color": 12345}},
      "larger": {"class_type": "SD_4XUpscale_Conditioning", "inputs": {"images": ["small", 0],
        "positive": ["one", 0], "negative": ["two", 0], "scale_ratio": 4.0, "noise_augmentation": 0.1}},
      "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 1, "steps": 2,
        "cfg": 2.0, "sampler_name": "euler", "scheduler": "normal", "positive": ["larger", 0],
        "negative": ["larger", 1], "latent_image": ["larger", 2], "denoise": 1.0})",
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
  std::vector<float> draw(const char* kind, EngineOptions options,
                          const std::string& hints = "") const {
    Engine engine(std::move(options));
    return engine.start(engine.parse(flow(kind, hints)), {{}, {"out.LATENT"}})
        .wait()
        .floats("out.LATENT", "samples");
  }
  static bool are_equal(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
  }
  void check(const char* kind, std::uint64_t budget) const {
    const std::vector<float> alone = draw(kind, options_for({"cpu:0"}));
    BOOST_TEST(alone.size() == 2u * 4 * 5 * 9);
    for (const char* mode : {"layers", "data", "cfg"})
      BOOST_TEST(are_equal(alone, draw(kind, options_for({"fake:0", "fake:1"}),
                                       cat(R"(, "parallel": ")", mode,
                                           R"(", "device": "fake:0,fake:1")"))),
                 kind << ", " << mode);
    BOOST_TEST(are_equal(alone, draw(kind, options_for({"fake:0"}, budget))),
               kind << ", little memory");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(unet_placed, PlacedUnet)

BOOST_AUTO_TEST_CASE(dividing_the_first_keeps_its_bytes) { check("sd1", 2 << 20); }

BOOST_AUTO_TEST_CASE(dividing_the_second_keeps_its_bytes, *boost::unit_test::label("long")) {
  check("sd2", 6 << 20);
}

BOOST_AUTO_TEST_CASE(dividing_the_refiner_keeps_its_bytes, *boost::unit_test::label("long")) {
  check("refiner", 3 << 20);
}

BOOST_AUTO_TEST_CASE(dividing_a_model_that_is_shown_a_mask_keeps_its_bytes) {
  check("inpaint", 2 << 20);
}

BOOST_AUTO_TEST_CASE(dividing_sdxl_keeps_its_bytes, *boost::unit_test::label("long")) {
  check("sdxl", 6 << 20);
}

BOOST_AUTO_TEST_CASE(dividing_the_upscaler_keeps_its_bytes, *boost::unit_test::label("long")) {
  check("x4", 5 << 19);
}

// Its frames are no batch, so that "data" leaves them together.
BOOST_AUTO_TEST_CASE(dividing_a_video_model_keeps_its_bytes, *boost::unit_test::label("long")) {
  check("svd", 6 << 20);
}

BOOST_AUTO_TEST_CASE(dividing_lotus_keeps_its_bytes, *boost::unit_test::label("long")) {
  check("lotus", 6 << 20);
}

BOOST_AUTO_TEST_SUITE_END()
