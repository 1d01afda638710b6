// Chroma Radiance from the prompt to the picture, with ComfyUI's nodes and file names, over models
// whose weights follow from their names, against PyTorch (../goldens/make_radiance_goldens.py).
#include "tests/plugins/nodes/chroma_fixture.h"
#include "tests/plugins/nodes/infer_check.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct RadianceWorkflow : ChromaFixture {
  RadianceWorkflow() : ChromaFixture("radiance") {}

  static std::vector<FileTensor> transformer() { return seeded_model("filter", false, "radiance"); }
  void add_models() const {
    add(transformer(), "diffusion_models/chroma-radiance-x0");
    add(encoder(), "text_encoders/t5xxl_fp8_e4m3fn_scaled");
  }
  static std::string loader(const std::string& dtype = "default",
                            const std::string& file = "chroma-radiance-x0") {
    return unet(file, dtype);
  }
  // options: of ChromaRadianceOptions, but the model.
  static std::string flow(
      const std::string& loader,
      const std::string& options =
          R"("preserve_wrapper": true, "start_sigma": 1, "end_sigma": 0, "nerf_tile_size": -1, "force_sequential_txt_ids": false)",
      const std::string& vae = "pixel_space") {
    return cat(
        "{", loader,
        R"(, "clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "t5xxl_fp8_e4m3fn_scaled.safetensors", "type": "chroma", "device": "default"}},
      "vae": {"class_type": "VAELoader", "inputs": {"vae_name": ")",
        vae, R"("}},
      "options": {"class_type": "ChromaRadianceOptions", "inputs": {"model": ["unet", 0], )",
        options, R"(}},
      "padded": {"class_type": "T5TokenizerOptions", "inputs": {"min_padding": 0, "min_length": 0, "clip": ["clip", 0]}},
      )",
        drawing(R"(["options", 0])", R"(["padded", 0])", R"(["vae", 0])",
                "EmptyChromaRadianceLatentImage", 48, 32),
        "}");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(radiance_workflows, RadianceWorkflow)

BOOST_AUTO_TEST_CASE(from_the_prompt_to_the_picture_equals_pytorch) {
  add_models();
  const heddle::Results results = run_whole(flow(loader()), {"drawn.output", "picture.IMAGE"});
  compare_drawing(results);
}

// What is drawn are pixels: the last one shown is the picture.
BOOST_AUTO_TEST_CASE(every_step_shows_its_pixels) {
  add_models();
  std::vector<std::vector<std::uint8_t>> seen;
  heddle::StartOptions options;
  options.fetch = {"picture.IMAGE"};
  options.previews = heddle::PreviewMethod::linear;
  options.observer = [&](const heddle::Event& event) {
    if (event.kind != heddle::Event::Kind::preview) return;
    BOOST_TEST_REQUIRE((event.preview->width == 48 && event.preview->height == 32));
    const std::uint8_t* const pixels = event.preview->pixels;
    seen.emplace_back(pixels, pixels + 3 * 48 * 32);
  };
  const std::vector<float> picture =
      engine.start(engine.parse(flow(loader())), std::move(options)).wait().floats("picture.IMAGE");
  BOOST_TEST_REQUIRE(seen.size() == 3u);
  BOOST_TEST((seen[0] != seen[2]));
  BOOST_TEST_REQUIRE(seen[2].size() == picture.size());
  for (std::size_t i = 0; i < picture.size(); ++i)
    BOOST_TEST_REQUIRE(std::abs(255 * picture[i] - float(seen[2][i])) <= 0.51f);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_holds_it_and_its_text_encoder) {
  std::vector<FileTensor> all;
  add_models();
  put(all, "model.diffusion_model.", transformer());
  add(all, "diffusion_models/prefixed");
  BOOST_TEST((drawn(flow(loader("default", "prefixed"))) == drawn(flow(loader()))));
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  add_models();
  heddle::EngineOptions options = engine_options();
  options.compute[heddle::test::test_device_kind()] = "f32";
  options.model_dirs = {folder / "models"};
  options.output_dir = folder / "told";
  heddle::Engine::Data told(options);
  check_inference(told, flow(loader()));
}

BOOST_AUTO_TEST_CASE(options_change_where_texts_stand_and_nothing_else) {
  add_models();
  const auto with = [&](const char* tile, const char* sequential, const char* end = "0") {
    return drawn(flow(loader(), cat(R"("preserve_wrapper": true, "start_sigma": 1, "end_sigma": )",
                                    end, R"(, "nerf_tile_size": )", tile,
                                    R"(, "force_sequential_txt_ids": )", sequential)));
  };
  const std::vector<float> plain = with("-1", "false");
  BOOST_TEST((with("16", "false", "0.5") == plain));
  std::vector<FileTensor> marked = transformer();
  marked.push_back({"__sequential__", "F32", {0}, ""});
  add(marked, "diffusion_models/marked");
  const std::vector<float> sequential = with("-1", "true");
  BOOST_TEST((sequential != plain));
  BOOST_TEST((drawn(flow(loader("default", "marked"))) == sequential));
  says(engine_refusal([&] { with("-1", "true", "0.5"); }),
       {"force_sequential_txt_ids", "end_sigma 0.5"});
  says(engine_refusal([&] { with("-2", "false"); }), {"nerf_tile_size is -2"});
}

BOOST_AUTO_TEST_CASE(a_lora_finds_its_modules_and_eight_bits_round) {
  add_models();
  add(add_lora({{"diffusion_model.nerf_blocks.1.param_generator",
                 "nerf_blocks.1.param_generator.weight"},
                {"lora_unet_single_blocks_1_linear1", "single_blocks.1.linear1.weight", false},
                {"lora_unet_nerf_image_embedder_embedder_0",
                 "nerf_image_embedder.embedder.0.weight", false}},
               transformer()),
      "diffusion_models/merged");
  std::string patched = flow(
      loader() +
      R"(, "lora": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["unet", 0], "lora_name": "style.safetensors", "strength_model": 0.5}})");
  const std::string from = R"("inputs": {"model": ["unet", 0], "preserve)";
  patched.replace(patched.find(from), from.size(), R"("inputs": {"model": ["lora", 0], "preserve)");
  const std::vector<float> with_lora = drawn(patched);
  check_lora(with_lora, drawn(flow(loader("default", "merged"))), 10);
  check_rounded(drawn(flow(loader("fp8_e4m3fn"))));
}

BOOST_AUTO_TEST_CASE(a_saved_model_has_the_publishers_names_and_numbers) {
  add_models();
  check_saved(loader(), transformer());
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_with_what_it_is) {
  add_models();
  add(seeded_model("z_image.vae"), "vae/ae");
  says(
      engine_refusal([&] {
        const std::string options =
            R"("preserve_wrapper": true, "start_sigma": 1, "end_sigma": 0, "nerf_tile_size": -1, "force_sequential_txt_ids": false)";
        run_whole(flow(loader(), options, "ae.safetensors"), {});
      }),
      {"3", "16"});
  std::vector<FileTensor> wide = transformer();
  for (FileTensor& tensor : wide)
    if (tensor.name == "txt_in.weight") tensor = seeded_tensor("txt_in.weight", {48, 64});
  add(wide, "diffusion_models/wide");
  says(engine_refusal([&] { drawn(flow(loader("default", "wide"))); }),
       {"160", "64", "CLIPLoader, type chroma"});
}

BOOST_AUTO_TEST_SUITE_END()
