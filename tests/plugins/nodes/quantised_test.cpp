// Loaders of quantised models in whole runs: gguf files, and weights that a loader casts to 8 bits.
#include <cstring>

#include "tests/plugins/nodes/node_fixture.h"

using namespace heddle::test;

namespace {

struct Quantised : NodeFixture {
  const std::filesystem::path files = tests_folder() / "plugins/goldens/quantised",
                              unets = tests_folder() / "plugins/goldens/quantised_unets";

  Quantised() {
    const auto link = [&](const char* file, const char* name) {
      std::filesystem::create_directories((folder / "models" / name).parent_path());
      std::filesystem::create_symlink(files / file, folder / "models" / name);
    };
    link("flux.gguf", "unet/flux-tiny.gguf");
    link("t5.gguf", "text_encoders/t5-tiny.gguf");
    std::filesystem::create_symlink(unets / "blocks.gguf", folder / "models/unet/unet-tiny.gguf");
    link("flux_f8_e4m3.safetensors", "diffusion_models/f8_e4m3.safetensors");
    link("flux_f8_e5m2.safetensors", "diffusion_models/f8_e5m2.safetensors");
  }

  // What three steps make of the small UNet of a loader's node (make_quantised_unets.py).
  std::vector<float> drawn_by_unet(const std::string& loader) {
    return run(R"("unet": )" + loader +
                   R"(, "told": {"class_type": "test.conditioning", "inputs": {"path": ")" +
                   (unets / "expected.safetensors").string() +
                   R"(", "prefix": "unet", "option": ""}}, "cells": {"class_type":
                   "EmptyLatentImage", "inputs": {"width": 80, "height": 48, "batch_size": 1}},
                   "out": )" +
                   ksampler(R"("model": ["unet", 0], "cfg": 1, "steps": 3, "scheduler": "normal",
                       "latent_image": ["cells", 0], "positive": ["told", 0],
                       "negative": ["told", 0])") +
                   ", " + kLook,
               {"out.LATENT"})
        .floats("out.LATENT", "samples");
  }

  // What two steps make of the guided model of the random ones, or of one of its copies.
  std::vector<float> drawn(const std::string& file, const std::string& weight_dtype) {
    const std::string loader = R"("dev": {"class_type": "UNETLoader", "inputs": {"unet_name": ")" +
                               file + R"(", "weight_dtype": ")" + weight_dtype + R"("}}, "out": )";
    return run(loader + ksampler(R"("model": ["dev", 0], "cfg": 1, "steps": 2)") + ", " + kLook,
               {"out.LATENT"})
        .floats("out.LATENT", "samples");
  }
};

bool identical(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(quantised, Quantised)

BOOST_AUTO_TEST_CASE(a_gguf_file_is_sampled_as_pytorch_does_with_its_weights) {
  const std::string conditioning = R"({"class_type": "test.conditioning", "inputs": {"path": ")" +
                                   (files / "expected.safetensors").string() +
                                   R"(", "prefix": "flux", "option": ""}})";
  const TensorFile expected(files / "expected.safetensors");
  for (
      const std::string loader :
      {R"({"class_type": "UnetLoaderGGUF", "inputs": {"unet_name": "flux-tiny.gguf"}})",
       R"({"class_type": "UNETLoader", "inputs": {"unet_name": "flux-tiny.gguf", "weight_dtype": "default"}})"}) {
    const auto values =
        run(R"("quantised": )" + loader + R"(, "told": )" + conditioning + R"(, "out": )" +
                ksampler(
                    R"("model": ["quantised", 0], "cfg": 1, "steps": 3, "positive": ["told", 0], "negative": ["told", 0])") +
                ", " + kLook,
            {"out.LATENT"})
            .floats("out.LATENT", "samples");
    const double error = relative_error(values, expected.floats("flux.sampled"));
    BOOST_TEST(error < kTolerance, loader << ": relative error " << error);
  }
}

BOOST_AUTO_TEST_CASE(a_unet_in_blocks_is_sampled_as_pytorch_does_with_its_weights) {
  const double error =
      relative_error(drawn_by_unet(R"({"class_type": "UnetLoaderGGUF", "inputs": {"unet_name":
          "unet-tiny.gguf"}})"),
                     TensorFile(unets / "expected.safetensors").floats("blocks.sampled"));
  BOOST_TEST_MESSAGE("relative error " << error);
  BOOST_TEST(error < kTolerance, "relative error " << error);
}

// A file whose numbers are all of 8 bits says the same cast to them, and another thing cast to
// others.
BOOST_AUTO_TEST_CASE(a_unet_is_cast_to_8_bits_by_its_loader) {
  std::filesystem::create_symlink(unets / "f8_e4m3.safetensors",
                                  folder / "models/unet/unet-f8.safetensors");
  const auto drawn_as = [&](const std::string& type) {
    return drawn_by_unet(R"({"class_type": "UNETLoader", "inputs": {"unet_name":
        "unet-f8.safetensors", "weight_dtype": ")" +
                         type + "\"}}");
  };
  const std::vector<float> plain = drawn_as("default");
  BOOST_TEST(identical(drawn_as("fp8_e4m3fn"), plain));
  BOOST_TEST(identical(drawn_as("fp8_e4m3fn_fast"), plain));
  const double error = relative_error(drawn_as("fp8_e5m2"), plain);
  BOOST_TEST(error > 1e-4);
  BOOST_TEST(error < 0.5);
}

BOOST_AUTO_TEST_CASE(a_cast_to_8_bits_gives_the_bytes_of_a_file_of_8_bits) {
  const std::vector<float> plain = drawn("guided.safetensors", "default");
  for (const std::string type : {"e4m3", "e5m2"}) {
    const std::vector<float> cast =
        drawn("guided.safetensors", type == "e4m3" ? "fp8_e4m3fn" : "fp8_e5m2");
    BOOST_TEST(identical(cast, drawn("f8_" + type + ".safetensors", "default")), type);
    BOOST_TEST(!identical(cast, plain), type);
    BOOST_TEST(relative_error(cast, plain) < 0.5, type);
  }
  BOOST_TEST(identical(drawn("guided.safetensors", "fp8_e4m3fn_fast"),
                       drawn("guided.safetensors", "fp8_e4m3fn")));
  BOOST_TEST(identical(drawn("guided.safetensors", "default"), plain));
}

BOOST_AUTO_TEST_CASE(text_encoders_load_from_gguf_files_and_weights_in_blocks_are_not_cast) {
  const auto clip = [&](const std::string& type, const std::string& inputs) {
    return run(
        "\"out\": {\"class_type\": \"" + type + "\", \"inputs\": {" + inputs + "}}, " + kLook,
        {"out.CLIP"});
  };
  clip("DualCLIPLoaderGGUF",
       R"("clip_name1": "clip_l.safetensors", "clip_name2": "t5-tiny.gguf", "type": "flux")");
  clip("CLIPLoaderGGUF", R"("clip_name": "clip_l.safetensors", "type": "stable_diffusion")");
  BOOST_TEST(engine_refusal([&] {
               clip("CLIPLoaderGGUF", R"("clip_name": "t5-tiny.gguf", "type": "flux")");
             }).find("flux") != std::string::npos);
  const std::string refused = engine_refusal([&] { drawn("flux-tiny.gguf", "fp8_e4m3fn"); });
  BOOST_TEST(refused.find("cannot be cast to f8_e4m3") != std::string::npos, refused);
}

BOOST_AUTO_TEST_SUITE_END()
