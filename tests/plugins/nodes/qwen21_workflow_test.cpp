// Qwen-Image 2.1 from the prompt to the latent and the picture, and from pictures and a prompt to a
// picture, over models whose weights follow from their names, against PyTorch
// (../goldens/make_qwen21_goldens.py, make_qwen21_picture_goldens.py); divided over devices, the
// same bytes, or nearly the same numbers.
#include <cmath>
#include <cstring>

#include "engine/base/text.h"
#include "plugins/encoders/windows.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/joined_gates.h"
#include "tests/support/seeded_weights.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct Qwen21Workflow : NodeFixture {
  const FakeControl control;
  TensorFile expected{tests_folder() / "plugins/goldens/qwen21/expected.safetensors"};

  Qwen21Workflow() {
    std::filesystem::create_directories(folder / "models/diffusion_models");
    write_safetensors(folder / "models/diffusion_models/qwen_image_2.1.safetensors",
                      seeded_model("transformer", false, "qwen21"));
    write_safetensors(folder / "models/text_encoders/qwen3vl_8b.safetensors",
                      seeded_model("text", false, "qwen21"));
  }
  static std::string flow(const std::string& sampling, const std::string& hints = "") {
    return cat(
        R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "qwen_image_2.1.safetensors", "weight_dtype": "default"}},
      "clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "qwen3vl_8b.safetensors", "type": "qwen_image", "device": "default"}},
      "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a photo of a (red fox:1.1) in the snow, soft light", "clip": ["clip", 0]}},
      "two": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": ["clip", 0]}},
      "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "look_a": {"class_type": "test.look", "inputs": {"value": ["first", 0]}},
      "three": {"class_type": "TextEncodeQwenImage21", "inputs": {"clip": ["clip", 0], "resolution": 96,
        "prompt": "a photo of a (red fox:1.1) in the snow, soft light", "negative_prompt": ""}},
      "second": {"class_type": "test.first", "inputs": {"list": ["three", 0]}},
      "look_b": {"class_type": "test.look", "inputs": {"value": ["second", 0]}},
      "look_c": {"class_type": "test.look", "inputs": {"value": ["three", 2]}},
      "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 96, "height": 64, "batch_size": 1}},
      "drawn": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 7, "steps": 3,
        "sampler_name": "euler", "scheduler": "simple", "positive": ["one", 0], "negative": ["two", 0],
        "latent_image": ["empty", 0], "denoise": 1.0, )",
        sampling, hints,
        R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}}})");
  }
  heddle::EngineOptions options_for(std::vector<std::string> devices) const {
    const std::string kind = devices.front().substr(0, devices.front().find(':'));
    heddle::EngineOptions options = engine_options();
    if (kind == "fake") options.plugin_dirs.push_back(kFakePlugin);
    options.devices = std::move(devices);
    options.compute = {{kind, "f32"}};
    options.reference_kernels = true;
    options.model_dirs = {folder / "models"};
    options.output_dir = folder / "placed";
    return options;
  }
  static std::vector<float> draw(heddle::EngineOptions options, const std::string& hints) {
    heddle::Engine engine(std::move(options));
    return engine.start(engine.parse(flow(R"("cfg": 2.5})", hints)), {{}, {"drawn.LATENT"}})
        .wait()
        .floats("drawn.LATENT", "samples");
  }
};

// Pictures and a prompt to a picture, with an autoencoder.
struct Qwen21Edit : NodeFixture {
  const std::filesystem::path goldens = tests_folder() / "plugins/goldens/qwen21_pictures";
  TensorFile expected{goldens / "expected.safetensors"};

  Qwen21Edit() {
    for (const auto& [file, model] :
         {std::pair("diffusion_models/unet", "transformer"),
          std::pair("text_encoders/clip", "text"), std::pair("vae/vae", "vae")}) {
      const std::filesystem::path path = folder / "models" / cat(file, ".safetensors");
      std::filesystem::create_directories(path.parent_path());
      write_safetensors(path, seeded_model(model, false, "qwen21_pictures"));
    }
  }
  // `more` are inputs of the encoder; `hints` those of the sampler.
  static std::string flow(const std::string& more, const std::string& hints = "") {
    return cat(
        R"({"unet": {"class_type": "UNETLoader", "inputs": {"unet_name": "unet.safetensors", "weight_dtype": "default"}},
      "model": {"class_type": "QwenImage21Cache", "inputs": {"model": ["unet", 0], "device": "cpu", "dtype": "int8"}},
      "clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "clip.safetensors", "type": "qwen_image", "device": "default"}},
      "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "vae.safetensors"}},
      "one": {"class_type": "LoadImage", "inputs": {"image": "one.png"}},
      "two": {"class_type": "LoadImage", "inputs": {"image": "two.png"}},
      "joined": {"class_type": "JoinImageWithAlpha", "inputs": {"image": ["two", 0], "alpha": ["two", 1]}},
      "texts": {"class_type": "TextEncodeQwenImage21", "inputs": {"clip": ["clip", 0],
        "prompt": "<image2> beside the fox of <image1>, soft light", "negative_prompt": "", "resolution": 0)",
        more,
        R"(}},
      "first": {"class_type": "test.first", "inputs": {"list": ["texts", 0]}},
      "look_a": {"class_type": "test.look", "inputs": {"value": ["first", 0]}},
      "drawn": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 7, "steps": 3,
        "sampler_name": "euler", "scheduler": "simple", "positive": ["texts", 0], "negative": ["texts", 1],
        "latent_image": ["texts", 2], "denoise": 1.0, "cfg": )",
        hints.empty() ? "1" : hints, R"(}},
      "picture": {"class_type": "VAEDecode", "inputs": {"samples": ["drawn", 0], "vae": ["vae", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["picture", 0]}}})");
  }
  // A text alone, by the files of these names.
  static std::string text_flow(const std::string& unet = "unet", const std::string& clip = "clip",
                               const std::string& vae = "vae") {
    return cat(R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": ")", unet,
               R"(.safetensors", "weight_dtype": "default"}},
      "clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": ")",
               clip, R"(.safetensors", "type": "qwen_image", "device": "default"}},
      "vae": {"class_type": "VAELoader", "inputs": {"vae_name": ")",
               vae, R"(.safetensors"}},
      "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a photo of a (red fox:1.1) in the snow, soft light", "clip": ["clip", 0]}},
      "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "look_a": {"class_type": "test.look", "inputs": {"value": ["first", 0]}},
      "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 64, "height": 32, "batch_size": 1}},
      "drawn": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 7, "steps": 3,
        "sampler_name": "euler", "scheduler": "simple", "positive": ["one", 0], "negative": ["one", 0],
        "latent_image": ["empty", 0], "denoise": 1.0, "cfg": 1.0}},
      "picture": {"class_type": "VAEDecode", "inputs": {"samples": ["drawn", 0], "vae": ["vae", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["picture", 0]}}})");
  }
  static constexpr const char* kBoth =
      R"(, "images.image_2": ["joined", 0], "images.image_1": ["one", 0])";
  heddle::EngineOptions options_for(std::vector<std::string> devices) const {
    heddle::EngineOptions options = engine_options();
    options.compute = {{devices.front().substr(0, devices.front().find(':')), "f32"}};
    if (devices.front().starts_with("fake")) options.plugin_dirs.push_back(kFakePlugin);
    options.devices = std::move(devices);
    options.reference_kernels = true;
    options.model_dirs = {folder / "models"};
    options.input_dir = goldens;
    options.output_dir = folder / "edited";
    return options;
  }
  void compare(const std::vector<float>& got, const char* golden) const {
    const double error = relative_error(got, expected.floats(golden));
    BOOST_TEST_MESSAGE(golden << ": relative error " << error);
    BOOST_TEST(error < kTolerance, golden << ": relative error " << error);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(qwen21_workflows, Qwen21Workflow)

BOOST_AUTO_TEST_CASE(from_the_prompt_to_the_latent_equals_pytorch) {
  const heddle::Results results = run_whole(
      flow(R"("cfg": 1})"), {"first.value", "second.value", "three.latent", "drawn.LATENT"});
  BOOST_TEST(warnings.empty());
  BOOST_TEST(results.floats("second.value", "cross_attn") ==
             results.floats("first.value", "cross_attn"));
  BOOST_TEST(results.floats("three.latent", "samples") == std::vector<float>(64 * 6 * 6, 0.0f));
  const double text = relative_error(results.floats("first.value", "cross_attn"),
                                     expected.floats("flow.states")),
               latent = relative_error(results.floats("drawn.LATENT", "samples"),
                                       expected.floats("flow.latent"));
  BOOST_TEST_MESSAGE("text " << text << ", latent " << latent);
  BOOST_TEST(text < kTolerance, "relative error " << text);
  BOOST_TEST(latent < kTolerance, "relative error " << latent);
}

BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes_or_nearly_its_numbers) {
  const std::vector<float> alone = draw(options_for({"cpu:0"}), "");
  BOOST_TEST(alone.size() == 8u * 4 * 6);
  for (const char* mode : {"layers", "cfg"}) {
    const std::vector<float> parted =
        draw(options_for({"fake:0", "fake:1"}),
             cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")"));
    BOOST_TEST_REQUIRE(parted.size() == alone.size());
    BOOST_TEST(std::memcmp(parted.data(), alone.data(), 4 * alone.size()) == 0, mode);
  }
  for (const char* mode : {"tensor", "sequence"}) {
    const double error =
        relative_error(draw(options_for({"fake:0", "fake:1"}),
                            cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")")),
                       alone);
    BOOST_TEST(error < kTolerance, mode << ": relative error " << error);
  }
}

// ComfyUI's files have both matrices that raise an MLP in one.
BOOST_AUTO_TEST_CASE(a_lora_changes_joined_matrices_as_it_changes_them_apart) {
  std::vector<FileTensor> style;
  for (const char* module : {"img_mlp.gate_layer", "img_mlp.proj", "attn.to_k"})
    for (const auto& [side, shape] :
         {std::pair(".lora_A.weight", std::vector<std::int64_t>{4, 64}),
          std::pair(".lora_B.weight",
                    std::vector<std::int64_t>{std::string(module) == "attn.to_k" ? 64 : 192, 4})})
      style.push_back(seeded_tensor(cat("transformer.transformer_blocks.1.", module, side), shape));
  std::filesystem::create_directories(folder / "models/loras");
  write_safetensors(folder / "models/loras/style.safetensors", style);
  const auto drawn = [&](bool is_patched) {
    std::string text = flow(R"("cfg": 1})");
    const std::string from = R"("model": ["model", 0], "seed")",
                      to = R"("model": ["lora", 0], "seed")";
    if (is_patched) {
      text.replace(text.find(from), from.size(), to);
      text.insert(1,
                  R"("lora": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["model", 0],
        "lora_name": "style.safetensors", "strength_model": 0.5}}, )");
    }
    heddle::Engine engine(options_for({"cpu:0"}));
    return engine.start(engine.parse(text), {{}, {"drawn.LATENT"}})
        .wait()
        .floats("drawn.LATENT", "samples");
  };
  const std::vector<float> plain = drawn(false), apart = drawn(true);
  std::vector<FileTensor> tensors = seeded_model("transformer", false, "qwen21");
  join_gates(tensors);
  write_safetensors(folder / "models/diffusion_models/qwen_image_2.1.safetensors", tensors);
  const std::vector<float> joined = drawn(true);
  BOOST_TEST(relative_error(apart, plain) > 100 * kTolerance);
  BOOST_TEST(relative_error(joined, apart) < kTolerance);
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  heddle::Engine::Data told(options_for({"cpu:0"}));
  check_inference(told, flow(R"("cfg": 2.5})"));
}

BOOST_AUTO_TEST_CASE(places_of_pictures_count_the_tokens_that_are_not_left_out) {
  heddle::encoders::Windows all;
  all.rows.resize(1);
  all.rows.front().ids.resize(20);
  all.dropped = 5;
  // The first begins among what is dropped.
  all.pictures = {{0, 3, 2, 2}, {1, 9, 1, 2}};
  BOOST_TEST(all.kept() == 15);
  all.drops_pictures = true;
  using Parts = std::vector<std::pair<std::int64_t, std::int64_t>>;
  BOOST_TEST((all.kept_parts() == Parts{{7, 9}, {11, 20}}));
  BOOST_TEST(all.kept() == 11);
  BOOST_TEST((all.picture_slots() == std::vector<std::int64_t>{0, 2}));
}

BOOST_FIXTURE_TEST_CASE(from_pictures_and_a_prompt_to_a_picture_equals_pytorch, Qwen21Edit) {
  heddle::Engine engine(options_for({"cpu:0"}));
  const auto run = [&](const std::string& text, std::vector<std::string> keep) {
    return engine.start(engine.parse(text), {{}, std::move(keep)}).wait();
  };
  const std::string shown = flow(cat(kBoth, R"(, "vae": ["vae", 0])"));
  const heddle::Results drawn = run(shown, {"first.value", "drawn.LATENT", "picture.IMAGE"});
  compare(drawn.floats("first.value", "cross_attn"), "edit.states");
  compare(drawn.floats("drawn.LATENT", "samples"), "edit.latent");
  BOOST_TEST((drawn.shape("picture.IMAGE") == std::vector<std::int64_t>{1, 32, 128, 4}));
  std::vector<float> rows = drawn.floats("picture.IMAGE");
  rows.resize(std::size_t{8 * 128 * 4});
  compare(rows, "edit.picture");
  const heddle::Results seen = run(flow(kBoth), {"first.value", "texts.latent"});
  compare(seen.floats("first.value", "cross_attn"), "edit.seen");
  BOOST_TEST((seen.shape("texts.latent", "samples") == std::vector<std::int64_t>{1, 64, 2, 8}));
}

BOOST_FIXTURE_TEST_CASE(from_a_prompt_to_the_picture_equals_pytorch, Qwen21Edit) {
  heddle::Engine engine(options_for({"cpu:0"}));
  const heddle::Results drawn =
      engine
          .start(engine.parse(text_flow()), {{}, {"first.value", "drawn.LATENT", "picture.IMAGE"}})
          .wait();
  compare(drawn.floats("first.value", "cross_attn"), "text.states");
  compare(drawn.floats("drawn.LATENT", "samples"), "text.latent");
  const std::vector<float> made = drawn.floats("picture.IMAGE"),
                           wanted = expected.floats("text.picture");
  BOOST_TEST((drawn.shape("picture.IMAGE") == std::vector<std::int64_t>{1, 32, 64, 4}));
  BOOST_TEST_REQUIRE(made.size() == wanted.size());
  double sum = 0;
  for (std::size_t i = 0; i < made.size(); ++i)
    sum += double(made[i] - wanted[i]) * double(made[i] - wanted[i]);
  const double decibels = -10 * std::log10(sum / double(made.size()));
  BOOST_TEST_MESSAGE(decibels << " dB");
  BOOST_TEST(decibels >= 70, decibels << " dB");
}

BOOST_FIXTURE_TEST_CASE(a_file_of_another_kind_is_refused_before_anything_is_loaded, Qwen21Edit) {
  heddle::Engine engine(options_for({"cpu:0"}));
  const auto says = [&](const std::string& flow, std::initializer_list<const char*> words) {
    const std::string refused = engine_refusal([&] { engine.plan(engine.parse(flow)); });
    for (const char* word : words)
      BOOST_TEST(refused.find(word) != std::string::npos,
                 "'" << word << "' is not in: " << refused);
  };
  const auto link = [&](const char* from, const char* to) {
    std::filesystem::create_symlink(folder / "models" / from, folder / "models" / to);
  };
  link("text_encoders/clip.safetensors", "diffusion_models/text.safetensors");
  link("vae/vae.safetensors", "text_encoders/vae.safetensors");
  link("diffusion_models/unet.safetensors", "vae/model.safetensors");
  says(text_flow("text"), {"text.safetensors", "a text encoder (language_model)",
                           "not a diffusion model", "CLIPLoader"});
  says(text_flow("unet", "vae"),
       {"vae.safetensors", "an autoencoder", "not a text encoder", "VAELoader"});
  says(text_flow("unet", "clip", "model"),
       {"model.safetensors", "a diffusion model (qwen-image-2.1)", "not an autoencoder",
        "UNETLoader"});
  // States of another width, and latents of other channels.
  write_safetensors(folder / "models/text_encoders/narrow.safetensors",
                    seeded_model("text", false, "qwen21"));
  write_safetensors(folder / "models/vae/other.safetensors", seeded_model("qwen_image.vae"));
  says(text_flow("unet", "narrow"), {"24 wide", "reads 32", "Qwen3-VL 8B", "CLIPLoader"});
  says(text_flow("unet", "clip", "other"), {"64 channels, the autoencoder takes 16"});
}

// By an autoencoder whose latents are pictures.
BOOST_FIXTURE_TEST_CASE(pictures_are_scaled_as_pillow_scales_them, Qwen21Edit) {
  heddle::Engine engine(options_for({"cpu:0"}));
  std::string text = flow(R"(, "images.image_7": ["joined", 0], "vae": ["vae", 0])");
  const auto change = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  change("vae.safetensors", "pixel_space");
  change(R"("resolution": 0)", R"("resolution": 32)");
  change("\"one.png\"", "\"smaller.png\"");
  change(R"("look": {"class_type": "test.look", "inputs": {"value": ["picture", 0]}})",
         R"("look": {"class_type": "test.look", "inputs": {"value": ["one", 0]}})");
  const heddle::Results results =
      engine.start(engine.parse(text), {{}, {"first.value", "one.IMAGE"}}).wait();
  const std::vector<float> shown = results.floats("first.value", "reference_latents.0.samples"),
                           wanted = results.floats("one.IMAGE");
  BOOST_TEST_REQUIRE(shown.size() == wanted.size());
  float most = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    most =
        std::max(most, std::abs(shown[i % 3 * (wanted.size() / 3) + i / 3] - (2 * wanted[i] - 1)));
  BOOST_TEST(most < 1e-6f);
}

BOOST_FIXTURE_TEST_CASE(nodes_of_autoencoders_take_and_give_alpha, Qwen21Edit) {
  const std::string text = R"({
    "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "vae.safetensors"}},
    "one": {"class_type": "LoadImage", "inputs": {"image": "one.png"}},
    "all": {"class_type": "SolidMask", "inputs": {"value": 1, "width": 128, "height": 32}},
    "none": {"class_type": "SolidMask", "inputs": {"value": 0, "width": 128, "height": 32}},
    "opaque": {"class_type": "JoinImageWithAlpha", "inputs": {"image": ["one", 0], "alpha": ["none", 0]}},
    "clear": {"class_type": "JoinImageWithAlpha", "inputs": {"image": ["one", 0], "alpha": ["all", 0]}},
    "a": {"class_type": "VAEEncode", "inputs": {"pixels": ["one", 0], "vae": ["vae", 0]}},
    "b": {"class_type": "VAEEncode", "inputs": {"pixels": ["opaque", 0], "vae": ["vae", 0]}},
    "c": {"class_type": "VAEEncodeTiled", "inputs": {"pixels": ["clear", 0], "vae": ["vae", 0],
      "tile_size": 128, "overlap": 32, "temporal_size": 64, "temporal_overlap": 8}},
    "d": {"class_type": "VAEEncodeForInpaint", "inputs": {"pixels": ["opaque", 0], "vae": ["vae", 0],
      "mask": ["none", 0], "grow_mask_by": 0}},
    "e": {"class_type": "VAEDecodeTiled", "inputs": {"samples": ["c", 0], "vae": ["vae", 0],
      "tile_size": 128, "overlap": 32, "temporal_size": 64, "temporal_overlap": 8}},
    "look_a": {"class_type": "test.look", "inputs": {"value": ["a", 0]}},
    "look_b": {"class_type": "test.look", "inputs": {"value": ["b", 0]}},
    "look_d": {"class_type": "test.look", "inputs": {"value": ["d", 0]}},
    "look_e": {"class_type": "test.look", "inputs": {"value": ["e", 0]}}})";
  heddle::Engine engine(options_for({"cpu:0"}));
  const heddle::Results made =
      engine
          .start(engine.parse(text),
                 {{}, {"a.LATENT", "b.LATENT", "c.LATENT", "d.LATENT", "e.IMAGE"}})
          .wait();
  const std::vector<float> opaque = made.floats("a.LATENT", "samples");
  BOOST_TEST(made.floats("b.LATENT", "samples") == opaque);
  BOOST_TEST(made.floats("d.LATENT", "samples") == opaque);
  BOOST_TEST(relative_error(made.floats("c.LATENT", "samples"), opaque) > 1e-3);
  BOOST_TEST((made.shape("e.IMAGE") == std::vector<std::int64_t>{1, 32, 128, 4}));
  heddle::Engine::Data told(options_for({"cpu:0"}));
  check_inference(told, text);
}

BOOST_FIXTURE_TEST_CASE(dividing_what_is_shown_pictures_keeps_its_bytes_or_nearly_its_numbers,
                        Qwen21Edit, *boost::unit_test::label("long")) {
  const auto draw = [&](std::vector<std::string> devices, const std::string& hints) {
    heddle::Engine engine(options_for(std::move(devices)));
    return engine
        .start(engine.parse(flow(cat(kBoth, R"(, "vae": ["vae", 0])"), hints)),
               {{}, {"drawn.LATENT"}})
        .wait()
        .floats("drawn.LATENT", "samples");
  };
  const std::string two = R"(", "device": "fake:0,fake:1")";
  const std::vector<float> alone = draw({"cpu:0"}, "2.5"),
                           parted = draw({"fake:0", "fake:1"}, R"(2.5, "parallel": "cfg)" + two);
  BOOST_TEST_REQUIRE(parted.size() == alone.size());
  BOOST_TEST(std::memcmp(parted.data(), alone.data(), 4 * alone.size()) == 0);
  const double error =
      relative_error(draw({"fake:0", "fake:1"}, R"(2.5, "parallel": "sequence)" + two), alone);
  BOOST_TEST(error < kTolerance, "sequence: relative error " << error);
}

BOOST_FIXTURE_TEST_CASE(calls_with_pictures_are_told_before_a_run, Qwen21Edit) {
  heddle::Engine::Data told(options_for({"cpu:0"}));
  check_inference(told, flow(cat(kBoth, R"(, "vae": ["vae", 0])"), "2.5"));
  check_inference(told, flow(kBoth));
}

BOOST_AUTO_TEST_SUITE_END()
