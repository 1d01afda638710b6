// LoRA files of FLUX.2 by every name that its modules have, against a model into whose matrices the
// same was merged here; its autoencoder by tiles; fp8.
#include "engine/base/text.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/merged_lora.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct Flux2Lora : NodeFixture {
  static constexpr std::int64_t kHidden = 48;

  Flux2Lora() {
    write_safetensors(folder / "models/diffusion_models/klein.safetensors",
                      seeded_model("klein", false, "flux2"));
    write_safetensors(folder / "texts.safetensors", {seeded_tensor("in.one.cross_attn", {1, 7, 72}),
                                                     seeded_tensor("in.z", {1, 128, 3, 5})});
  }
  std::vector<float> draw(const std::string& file, const std::string& lora,
                          const std::string& dtype = "default") {
    const std::string loaded = lora.empty() ? "model" : "patched";
    return run_whole(
               cat(R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": ")", file,
                   R"(.safetensors", "weight_dtype": ")", dtype, R"("}}, )",
                   lora.empty()
                       ? ""
                       : cat(R"("patched": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["model", 0], "lora_name": ")",
                             lora, R"(.safetensors", "strength_model": 0.5}}, )"),
                   R"("one": {"class_type": "test.conditioning", "inputs": {"path": ")",
                   (folder / "texts.safetensors").string(),
                   R"(", "prefix": "in.one", "option": ""}},
      "empty": {"class_type": "EmptyFlux2LatentImage", "inputs": {"width": 80, "height": 48, "batch_size": 1}},
      "out": {"class_type": "KSampler", "inputs": {"model": [")",
                   loaded, R"(", 0], "seed": 1, "steps": 1, "cfg": 1.0, "sampler_name": "euler",
        "scheduler": "simple", "positive": ["one", 0], "negative": ["one", 0], "latent_image": ["empty", 0], "denoise": 1.0}},
      "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})"),
               {"out.LATENT"})
        .floats("out.LATENT", "samples");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(flux2_lora, Flux2Lora)

BOOST_AUTO_TEST_CASE(modules_are_found_by_the_publishers_diffusers_and_kohyas_names) {
  const std::string a = ".lora_A.weight", b = ".lora_B.weight";
  constexpr std::int64_t d = kHidden;
  const std::vector<LoraTarget> modules = {
      {"diffusion_model.single_blocks.0.linear1", b, a, "single_blocks.0.linear1.weight", 0, 9 * d},
      {"transformer.single_transformer_blocks.1.attn.to_qkv_mlp_proj", b, a,
       "single_blocks.1.linear1.weight", 0, 9 * d},
      {"transformer.transformer_blocks.0.attn.to_k", b, a, "double_blocks.0.img_attn.qkv.weight", d,
       d},
      {"transformer.transformer_blocks.1.ff_context.linear_in", b, a,
       "double_blocks.1.txt_mlp.0.weight", 0, 6 * d},
      {"transformer.double_stream_modulation_img.linear", b, a,
       "double_stream_modulation_img.lin.weight", 0, 6 * d},
      {"lora_unet_double_blocks_1_img_attn_proj", ".lora_up.weight", ".lora_down.weight",
       "double_blocks.1.img_attn.proj.weight", 0, d}};
  std::vector<FileTensor> changed = seeded_model("klein", false, "flux2");
  const std::vector<FileTensor> factors = merged_lora(changed, modules, 0.5f);
  write_safetensors(folder / "models/loras/flux2.safetensors", factors);
  write_safetensors(folder / "models/diffusion_models/merged.safetensors", changed);
  const std::vector<float> with_lora = draw("klein", "flux2");
  BOOST_TEST(warnings.empty());
  const double error = relative_error(with_lora, draw("merged", "")),
               moved = relative_error(with_lora, draw("klein", ""));
  BOOST_TEST(error < kTolerance, "relative error " << error);
  BOOST_TEST(moved > 100 * kTolerance, "the LoRA changed " << moved);
}

BOOST_AUTO_TEST_CASE(matrices_may_be_kept_in_eight_bits) {
  const double error = relative_error(draw("klein", "", "fp8_e4m3fn"), draw("klein", ""));
  BOOST_TEST((error > kTolerance && error < 0.1), "relative error " << error);
}

BOOST_AUTO_TEST_CASE(tiles_of_packed_latents_make_a_whole_picture) {
  write_safetensors(folder / "models/vae/flux2-vae.safetensors",
                    seeded_model("vae", false, "flux2"));
  // node: its class, and inputs besides.
  const auto decoded = [&](const std::string& node) {
    return run_whole(
        cat(R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "flux2-vae.safetensors"}},
      "z": {"class_type": "test.latent", "inputs": {"path": ")",
            (folder / "texts.safetensors").string(), R"(", "name": "in.z"}},
      "picture": {"class_type": ")",
            node, R"("samples": ["z", 0], "vae": ["vae", 0]}},
      "back": {"class_type": "VAEEncode", "inputs": {"pixels": ["picture", 0], "vae": ["vae", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["back", 0]}}})"),
        {"picture.IMAGE", "back.LATENT"});
  };
  const auto tiled = [](int size) {
    return cat(R"(VAEDecodeTiled", "inputs": {"tile_size": )", size,
               R"(, "overlap": 16, "temporal_size": 64, "temporal_overlap": 8, )");
  };
  const heddle::Results whole = decoded(R"(VAEDecode", "inputs": {)"),
                        one_tile = decoded(tiled(512)), tiles = decoded(tiled(64));
  using Shape = std::vector<std::int64_t>;
  BOOST_TEST(relative_error(one_tile.floats("picture.IMAGE"), whole.floats("picture.IMAGE")) <
             kTolerance);
  BOOST_TEST(tiles.shape("picture.IMAGE") == (Shape{1, 48, 80, 3}));
  BOOST_TEST(tiles.shape("back.LATENT", "samples") == (Shape{1, 128, 3, 5}));
}

BOOST_AUTO_TEST_SUITE_END()
