// A picture of Stable Diffusion 1.x made larger, as a latent or as pixels, and drawn on; pictures
// of which a part is drawn anew by a model that was not trained for that. Against PyTorch
// (../goldens/make_hires_goldens.py).
#include "engine/base/text.h"
#include "tests/plugins/nodes/unet_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct HiresFixture : UnetWorkflow {
  const std::filesystem::path hires = tests_folder() / "plugins/goldens/hires/expected.safetensors";
  TensorFile wanted{hires};

  HiresFixture() { write("sd1"); }

  // Of every fifth pixel of every fifth row.
  static std::vector<float> few_of(const std::vector<float>& picture, std::size_t height,
                                   std::size_t width) {
    std::vector<float> found;
    for (std::size_t y = 0; y < height; y += 5)
      for (std::size_t x = 0; x < width; x += 5)
        for (std::size_t c = 0; c < 3; ++c) found.push_back(picture.at((y * width + x) * 3 + c));
    return found;
  }
  void equal(const std::vector<float>& found, const std::string& name) {
    const double error = relative_error(found, wanted.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }
  // nodes end in "last", a KSampler.
  void draws(const std::string& nodes, const std::string& name, std::size_t height,
             std::size_t width) {
    const heddle::Results results =
        run_whole("{" + loader() + texts() + nodes +
                      node("seen", "VAEDecode", R"("samples": ["last", 0], "vae": ["model", 2])") +
                      node("look", "test.look", R"("value": ["last", 0])") +
                      R"("look_b": {"class_type": "test.look", "inputs": {"value": ["seen", 0]}}})",
                  {"last.LATENT", "seen.IMAGE"});
    for (const std::string& warning : warnings) BOOST_TEST(warning == "");
    equal(results.floats("last.LATENT", "samples"), name + ".latent");
    equal(few_of(results.floats("seen.IMAGE", ""), height, width), name + ".picture");
  }
  // Draws, makes of it what `more` says ("large"), and draws on that.
  void enlarges(const std::string& more, const std::string& name) {
    draws("\"first_run\": " + ksampler(sampler("7.0", "euler", "normal")) + ", " + more +
              "\"last\": " +
              ksampler(sampler("7.0", "euler", "normal") +
                       R"(, "latent_image": ["large", 0], "denoise": 0.5)") +
              ", ",
          name, 72, 120);
  }
  static std::string encoded(const char* picture) {
    return node("seen_first", "VAEDecode", R"("samples": ["first_run", 0], "vae": ["model", 2])") +
           node("large", "VAEEncode",
                cat(R"("pixels": [")", picture, R"(", 0], "vae": ["model", 2])"));
  }
  static std::string scaled(const char* picture, const char* method) {
    return node("scaled", "ImageScale",
                cat(R"("image": [")", picture, R"(", 0], "upscale_method": ")", method,
                    R"(", "width": 120, "height": 72, "crop": "disabled")"));
  }
  std::string shown() const {
    const auto golden_of = [&](const char* name, const char* type, const char* tensor) {
      return node(name, type, cat(R"("path": ")", hires.string(), R"(", "name": ")", tensor, "\""));
    };
    return golden_of("pixels", "test.image", "pixels_shown") +
           golden_of("mask", "test.mask", "mask");
  }
  static std::string drawn_from(const char* latent, const char* model) {
    return "\"last\": " +
           ksampler(sampler("7.0", "euler", "normal") + cat(R"(, "latent_image": [")", latent,
                                                            R"(", 0], "model": [")", model,
                                                            R"(", 0])")) +
           ", ";
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(hires_workflows, HiresFixture)

BOOST_AUTO_TEST_CASE(latents_are_made_larger_and_drawn_on) {
  enlarges(node("large", "LatentUpscale",
                R"("samples": ["first_run", 0], "upscale_method": "bilinear", "width": 120,
      "height": 72, "crop": "disabled")"),
           "latent");
  enlarges(node("large", "LatentUpscaleBy",
                R"("samples": ["first_run", 0], "upscale_method": "nearest-exact",
      "scale_by": 1.5)"),
           "latent_by");
}

BOOST_AUTO_TEST_CASE(pictures_are_made_larger_and_drawn_on, *boost::unit_test::label("long")) {
  enlarges(scaled("seen_first", "bicubic") + encoded("scaled"), "pixels");
  write_file("upscale_models/twice", seeded_model("compact_x2", false, "upscalers"));
  enlarges(node("upscaler", "UpscaleModelLoader", R"("model_name": "twice.safetensors")") +
               node("twice", "ImageUpscaleWithModel",
                    R"("upscale_model": ["upscaler", 0], "image": ["seen_first", 0])") +
               scaled("twice", "area") + encoded("scaled"),
           "model");
}

BOOST_AUTO_TEST_CASE(a_part_is_drawn_anew_by_a_mask_of_the_latent) {
  const std::string masked =
      shown() + node("whole", "VAEEncode", R"("pixels": ["pixels", 0], "vae": ["model", 2])") +
      node("held", "SetLatentNoiseMask", R"("samples": ["whole", 0], "mask": ["mask", 0])");
  draws(masked + drawn_from("held", "model"), "masked", 48, 80);
  draws(masked + node("by_level", "DifferentialDiffusion", R"("model": ["model", 0])") +
            drawn_from("held", "by_level"),
        "changed", 48, 80);
}

BOOST_AUTO_TEST_CASE(a_part_is_filled_that_the_model_does_not_see) {
  draws(shown() +
            node("held", "VAEEncodeForInpaint",
                 R"("pixels": ["pixels", 0], "vae": ["model", 2], "mask": ["mask", 0],
      "grow_mask_by": 6)") +
            drawn_from("held", "model"),
        "filled", 48, 80);
}

BOOST_AUTO_TEST_SUITE_END()
