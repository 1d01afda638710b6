// Stable Diffusion 1.x, 2.x, SDXL and its refiner from the prompt to the picture, out of
// checkpoints as they were published, over models whose weights follow from their names, against
// PyTorch (../goldens/make_unet_goldens.py).
#include "engine/base/text.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/unet_models.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct UnetWorkflow : NodeFixture {
  const std::filesystem::path golden = tests_folder() / "plugins/goldens/unet/expected.safetensors";
  TensorFile expected{golden};
  std::vector<FileTensor> checkpoint;

  void add(const std::string& prefix, std::vector<FileTensor> tensors) {
    for (FileTensor& tensor : tensors) {
      tensor.name = prefix + tensor.name;
      checkpoint.push_back(std::move(tensor));
    }
  }
  static std::vector<FileTensor> without_projection(const std::string& name) {
    std::vector<FileTensor> tensors = unet_model(name);
    std::erase_if(tensors,
                  [](const FileTensor& tensor) { return tensor.name.starts_with("text_proj"); });
    return tensors;
  }
  // "pix2pix": "inpaint" with a first convolution of 8 channels.
  void add_unet(const std::string& kind) {
    const bool is_pix2pix = kind == "pix2pix";
    std::vector<FileTensor> tensors = unet_model(is_pix2pix ? "inpaint" : kind);
    for (FileTensor& tensor : tensors)
      if (is_pix2pix && tensor.name == "conv_in.weight")
        tensor = seeded_tensor(tensor.name, {tensor.shape[0], 8, 3, 3});
    name_unet_as_original(tensors, kind == "sd1" ? 2 : 1, "model.diffusion_model.");
    add("", std::move(tensors));
    add("first_stage_model.", unet_model("vae"));
  }
  // The checkpoint of a kind, as "checkpoints/drawn.safetensors".
  void write(const std::string& kind) {
    add_unet(kind);
    if (kind == "sd1" || kind == "inpaint" || kind == "pix2pix")
      add("cond_stage_model.transformer.", without_projection("clip_l"));
    if (kind == "sd2") add("", as_open_clip(unet_model("clip_h"), "cond_stage_model.model."));
    if (kind == "sdxl") {
      add("conditioner.embedders.0.transformer.", without_projection("clip_l"));
      add("", as_open_clip(unet_model("clip_g"), "conditioner.embedders.1.model."));
    }
    if (kind == "refiner")
      add("", as_open_clip(unet_model("clip_g"), "conditioner.embedders.0.model."));
    write_file("checkpoints/drawn", checkpoint);
  }
  void write_file(const std::string& file, const std::vector<FileTensor>& tensors) const {
    const std::filesystem::path path = folder / "models" / (file + ".safetensors");
    std::filesystem::create_directories(path.parent_path());
    write_safetensors(path, tensors);
  }
  static std::string node(const std::string& name, const std::string& type,
                          const std::string& inputs) {
    return cat("\"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}, ");
  }
  static std::string text(const std::string& name, const std::string& words,
                          const std::string& clip) {
    return node(name, "CLIPTextEncode", cat(R"("text": ")", words, R"(", "clip": )", clip));
  }
  static std::string loader() {
    return node("model", "CheckpointLoaderSimple", R"("ckpt_name": "drawn.safetensors")");
  }
  static std::string texts(const std::string& clip = R"(["model", 1])") {
    return text("one", "a photo of a cat", clip) + text("two", "", clip) +
           node("empty", "EmptyLatentImage", R"("width": 80, "height": 48, "batch_size": 1)");
  }
  // A tensor of the goldens.
  std::string given(const char* name, const char* type, const char* golden_name) const {
    return node(name, type,
                cat(R"("path": ")", golden.string(), R"(", "name": ")", golden_name, "\""));
  }
  static std::string drawing(const std::string& sampler) {
    return "\"drawn\": " + ksampler(sampler) + ", " +
           node("picture", "VAEDecode", R"("samples": ["drawn", 0], "vae": ["model", 2])") +
           node("first", "test.first", R"("list": ["one", 0])") +
           node("look_a", "test.look", R"("value": ["first", 0])") +
           node("look", "test.look", R"("value": ["drawn", 0])") +
           R"("look_b": {"class_type": "test.look", "inputs": {"value": ["picture", 0]}})";
  }
  void same(const std::vector<float>& found, const std::string& name) {
    const double error = relative_error(found, expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }
  // Every fifth pixel of every fifth row, as the goldens have them.
  static std::vector<float> few(const std::vector<float>& picture) {
    constexpr std::size_t kHeight = 48, kWidth = 80;
    std::vector<float> found;
    for (std::size_t y = 0; y < kHeight; y += 5)
      for (std::size_t x = 0; x < kWidth; x += 5)
        for (std::size_t c = 0; c < 3; ++c) found.push_back(picture.at((y * kWidth + x) * 3 + c));
    return found;
  }
  void check(const std::string& nodes, const std::string& name) {
    const heddle::Results results =
        run_whole("{" + nodes + "}", {"first.value", "drawn.LATENT", "picture.IMAGE"});
    for (const std::string& warning : warnings) BOOST_TEST(warning == "");
    if (expected.has(name + ".states")) {
      const std::vector<float> states = results.floats("first.value", "cross_attn");
      const std::size_t width = states.size() / 77;
      std::vector<float> kept;
      for (std::size_t token = 0; token < 77; token += 11)
        kept.insert(kept.end(), states.begin() + std::ptrdiff_t(token * width),
                    states.begin() + std::ptrdiff_t((token + 1) * width));
      same(kept, name + ".states");
    }
    if (expected.has(name + ".pooled"))
      same(results.floats("first.value", "pooled_output"), name + ".pooled");
    same(results.floats("drawn.LATENT", "samples"), name + ".latent");
    same(few(results.floats("picture.IMAGE", "")), name + ".picture");
  }
  // The same factors by three schemes of names, and the checkpoint with their products added.
  struct LoraFiles {
    std::vector<FileTensor> kohya, original, diffusers, merged;
    // Of the attentions alone, also by the older names of diffusers.
    std::vector<FileTensor> attentions, processors;
  };
  LoraFiles lora_files() const {
    struct Factor {
      const char *tensor, *kohya, *original, *diffusers, *processor = nullptr;
    };
    const Factor factors[] = {
        {"model.diffusion_model.input_blocks.3.1.transformer_blocks.0.attn2.to_k.weight",
         "lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_attn2_to_k",
         "lora_unet_input_blocks_3_1_transformer_blocks_0_attn2_to_k",
         "unet.down_blocks.1.attentions.0.transformer_blocks.0.attn2.to_k",
         "unet.down_blocks.1.attentions.0.transformer_blocks.0.attn2.processor.to_k"},
        {"model.diffusion_model.middle_block.1.transformer_blocks.0.attn1.to_out.0.weight",
         "lora_unet_mid_block_attentions_0_transformer_blocks_0_attn1_to_out_0",
         "lora_unet_middle_block_1_transformer_blocks_0_attn1_to_out_0",
         "unet.mid_block.attentions.0.transformer_blocks.0.attn1.to_out.0",
         "unet.mid_block.attentions.0.transformer_blocks.0.attn1.processor.to_out"},
        {"model.diffusion_model.output_blocks.5.0.in_layers.2.weight",
         "lora_unet_up_blocks_2_resnets_1_conv1", "lora_unet_output_blocks_5_0_in_layers_2",
         "unet.up_blocks.2.resnets.1.conv1"},
        {"conditioner.embedders.0.transformer.text_model.encoder.layers.0.mlp.fc1.weight",
         "lora_te1_text_model_encoder_layers_0_mlp_fc1",
         "lora_te1_text_model_encoder_layers_0_mlp_fc1",
         "text_encoder.text_model.encoder.layers.0.mlp.fc1"},
        {"conditioner.embedders.1.model.transformer.resblocks.3.mlp.c_proj.weight",
         "lora_te2_text_model_encoder_layers_3_mlp_fc2",
         "lora_te2_text_model_encoder_layers_3_mlp_fc2",
         "text_encoder_2.text_model.encoder.layers.3.mlp.fc2"}};
    constexpr std::int64_t kRank = 2;
    LoraFiles files{{}, {}, {}, checkpoint, {}, {}};
    for (const Factor& factor : factors)
      for (FileTensor& target : files.merged) {
        if (target.name != factor.tensor) continue;
        std::vector<std::int64_t> down_shape = target.shape, up_shape(target.shape.size(), 1);
        down_shape[0] = up_shape[1] = kRank;
        up_shape[0] = target.shape[0];
        const FileTensor up = seeded_tensor(target.name + ".up", up_shape),
                         down = seeded_tensor(target.name + ".down", down_shape);
        const auto add = [&](std::vector<FileTensor>& file, const char* module, const char* ups,
                             const char* downs) {
          file.push_back({cat(module, ups), up.dtype, up.shape, up.bytes});
          file.push_back({cat(module, downs), down.dtype, down.shape, down.bytes});
        };
        add(files.kohya, factor.kohya, ".lora_up.weight", ".lora_down.weight");
        add(files.original, factor.original, ".lora_up.weight", ".lora_down.weight");
        add(files.diffusers, factor.diffusers, ".lora_B.weight", ".lora_A.weight");
        if (factor.processor != nullptr) {
          add(files.attentions, factor.kohya, ".lora_up.weight", ".lora_down.weight");
          add(files.processors, factor.processor, "_lora.up.weight", "_lora.down.weight");
        }
        add_product(target, up, down);
      }
    BOOST_REQUIRE(files.kohya.size() == 2 * std::size(factors));
    return files;
  }
  static void add_product(FileTensor& target, const FileTensor& up, const FileTensor& down) {
    const auto rows = std::size_t(target.shape[0]), ranks = std::size_t(down.shape[0]),
               columns = target.bytes.size() / sizeof(float) / rows;
    auto* const sums = reinterpret_cast<float*>(target.bytes.data());
    const auto* const ups = reinterpret_cast<const float*>(up.bytes.data());
    const auto* const downs = reinterpret_cast<const float*>(down.bytes.data());
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t column = 0; column < columns; ++column)
        for (std::size_t rank = 0; rank < ranks; ++rank)
          sums[row * columns + column] += ups[row * ranks + rank] * downs[rank * columns + column];
  }
  static std::string sampler(const char* cfg, const char* name, const char* scheduler,
                             int steps = 4) {
    return cat(R"("steps": )", steps, R"(, "cfg": )", cfg, R"(, "sampler_name": ")", name,
               R"(", "scheduler": ")", scheduler, "\"");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(unet_workflows, UnetWorkflow)

BOOST_AUTO_TEST_CASE(the_first_from_a_checkpoint_equals_pytorch) {
  write("sd1");
  check(loader() + texts() + drawing(sampler("7.0", "euler", "normal")), "sd1_drawn");
  check(loader() +
            node("clip", "CLIPSetLastLayer", R"("clip": ["model", 1], "stop_at_clip_layer": -2)") +
            texts(R"(["clip", 0])") + drawing(sampler("7.0", "dpmpp_2m", "karras")),
        "sd1_skipped");
}

BOOST_AUTO_TEST_CASE(the_second_from_a_checkpoint_equals_pytorch) {
  write("sd2");
  check(loader() + texts() + drawing(sampler("5.0", "dpmpp_2m", "karras")), "sd2_drawn");
}

// Files of diffusers lack its last layer, which counts all the same.
BOOST_AUTO_TEST_CASE(layers_of_open_clip_h_are_counted_as_published) {
  std::vector<FileTensor> tensors = without_projection("clip_h");
  write_file("text_encoders/whole", tensors);
  std::erase_if(tensors, [](const FileTensor& tensor) {
    return tensor.name.find("encoder.layers.23.") != std::string::npos;
  });
  write_file("text_encoders/cut", tensors);
  const auto states = [this](const std::string& file, int stop) {
    return run_whole(
               "{" +
                   node("clip", "CLIPLoader",
                        cat(R"("clip_name": ")", file,
                            R"(.safetensors", "type": "stable_diffusion")")) +
                   node("stopped", "CLIPSetLastLayer",
                        cat(R"("clip": ["clip", 0], "stop_at_clip_layer": )", stop)) +
                   text("one", "a cat", R"(["stopped", 0])") +
                   node("first", "test.first", R"("list": ["one", 0])") +
                   R"("look": {"class_type": "test.look", "inputs": {"value": ["first", 0]}}})",
               {"first.value"})
        .floats("first.value", "cross_attn");
  };
  for (const int stop : {-2, -5, -24})
    BOOST_TEST((states("cut", stop) == states("whole", stop)), stop);
  BOOST_TEST((states("cut", -2) != states("cut", -3)));
}

BOOST_AUTO_TEST_CASE(sdxl_from_a_checkpoint_equals_pytorch) {
  write("sdxl");
  check(loader() + texts() + drawing(sampler("6.0", "dpmpp_2m", "karras")), "sdxl_drawn");
  // The same said by the node that tells sizes, and with encoders of their own.
  write_file("text_encoders/clip_l", unet_model("clip_l"));
  write_file("text_encoders/clip_g", unet_model("clip_g"));
  const auto told = [](const char* name, const char* words) {
    return node(name, "CLIPTextEncodeSDXL",
                cat(R"("clip": ["clip", 0], "width": 80, "height": 48, "crop_w": 0, "crop_h": 0,
                "target_width": 80, "target_height": 48, "text_g": ")",
                    words, R"(", "text_l": ")", words, "\""));
  };
  check(loader() + node("clip", "DualCLIPLoader", R"("clip_name1": "clip_l.safetensors",
                 "clip_name2": "clip_g.safetensors", "type": "sdxl")") +
            told("one", "a photo of a cat") + told("two", "") +
            node("empty", "EmptyLatentImage", R"("width": 80, "height": 48, "batch_size": 1)") +
            drawing(sampler("6.0", "dpmpp_2m", "karras")),
        "sdxl_drawn");
}

BOOST_AUTO_TEST_CASE(the_refiner_from_a_checkpoint_equals_pytorch) {
  write("refiner");
  check(loader() + texts() + drawing(sampler("4.0", "euler", "normal")), "refiner_drawn");
  const auto told = [](const char* name, const char* words, const char* score) {
    return node(name, "CLIPTextEncodeSDXLRefiner",
                cat(R"("clip": ["model", 1], "width": 80, "height": 48, "ascore": )", score,
                    R"(, "text": ")", words, "\""));
  };
  check(loader() + told("one", "a photo of a cat", "6.0") + told("two", "", "2.5") +
            node("empty", "EmptyLatentImage", R"("width": 80, "height": 48, "batch_size": 1)") +
            drawing(sampler("4.0", "euler", "normal")),
        "refiner_drawn");
}

BOOST_AUTO_TEST_CASE(what_is_inside_a_mask_is_drawn_anew) {
  write("inpaint");
  const std::string shown = given("pixels", "test.image", "inpaint_drawn.pixels") +
                            given("mask", "test.mask", "inpaint_drawn.mask") + loader() +
                            text("words", "a photo of a cat", R"(["model", 1])") +
                            text("nothing", "", R"(["model", 1])") +
                            node("shown", "InpaintModelConditioning",
                                 R"("positive": ["words", 0], "negative": ["nothing", 0],
      "vae": ["model", 2], "pixels": ["pixels", 0], "mask": ["mask", 0], "noise_mask": false)");
  const auto latent = [](const char* positive, const char* negative, const char* from) {
    return cat(sampler("7.0", "euler", "normal"), R"(, "positive": )", positive,
               R"(, "negative": )", negative, R"(, "latent_image": )", from);
  };
  const std::string first = node("one", "ConditioningZeroOut", R"("conditioning": ["words", 0])");
  check(shown + first + drawing(latent(R"(["shown", 0])", R"(["shown", 1])", R"(["shown", 2])")),
        "inpaint_drawn");
  // Where the conditioning shows nothing, the model is shown the latent and its mask.
  const std::string kept = node("kept", "VAEEncodeForInpaint",
                                R"("pixels": ["pixels", 0], "vae": ["model", 2],
      "mask": ["mask", 0], "grow_mask_by": 0)");
  const auto drawn = [&](const char* positive, const char* negative) {
    return run_whole("{" + shown + kept + first +
                         drawing(latent(positive, negative, R"(["kept", 0])")) + "}",
                     {"drawn.LATENT"})
        .floats("drawn.LATENT", "samples");
  };
  const double error = relative_error(drawn(R"(["words", 0])", R"(["nothing", 0])"),
                                      drawn(R"(["shown", 0])", R"(["shown", 1])"));
  BOOST_TEST(error < kTolerance, "relative error " << error);
}

// Stretched, and repeated for further items: as the sampler keeps the rest of the picture by it.
BOOST_AUTO_TEST_CASE(the_model_is_shown_the_mask_that_the_sampler_draws_by) {
  write("inpaint");
  const std::string masks =
      given("wide", "test.image", "inpaint_drawn.pixels") +
      node("square", "ImageScale", R"("image": ["wide", 0], "upscale_method": "nearest-exact",
           "width": 48, "height": 48, "crop": "center")") +
      node("rest", "ImageInvert", R"("image": ["square", 0])") +
      node("both", "ImageBatch", R"("image1": ["square", 0], "image2": ["rest", 0])") +
      node("fitted", "ImageScale", R"("image": ["both", 0], "upscale_method": "bilinear",
           "width": 10, "height": 6, "crop": "disabled")") +
      node("four", "ImageBatch", R"("image1": ["fitted", 0], "image2": ["fitted", 0])") +
      node("items", "RepeatLatentBatch", R"("samples": ["empty", 0], "amount": 4)") +
      node("held", "SetLatentNoiseMask", R"("samples": ["items", 0], "mask": ["mask", 0])");
  const auto drawn = [&](const char* picture) {
    const std::string mask = cat(R"("channel": "red", "image": [")", picture, R"(", 0])");
    return run_whole("{" + masks + loader() + texts() + node("mask", "ImageToMask", mask) +
                         drawing(sampler("7.0", "euler", "normal", 2) +
                                 R"(, "latent_image": ["held", 0])") +
                         "}",
                     {"drawn.LATENT"})
        .floats("drawn.LATENT", "samples");
  };
  BOOST_TEST(relative_error(drawn("both"), drawn("four")) < kTolerance);
}

BOOST_AUTO_TEST_CASE(a_picture_is_drawn_by_another) {
  write("pix2pix");
  check(given("pixels", "test.image", "inpaint_drawn.pixels") + loader() +
            text("words", "a photo of a cat", R"(["model", 1])") +
            text("nothing", "", R"(["model", 1])") +
            node("one", "InstructPixToPixConditioning",
                 R"("positive": ["words", 0], "negative": ["nothing", 0], "vae": ["model", 2],
      "pixels": ["pixels", 0])") +
            drawing(cat(sampler("7.0", "euler", "normal"),
                        R"(, "negative": ["one", 1], "latent_image": ["one", 2])")),
        "pix2pix_drawn");
}

// A LoRA of a matrix, of a filter (LoCon) and of both encoders, under the names of kohya's scripts
// for UNets of either layout, and of diffusers.
BOOST_AUTO_TEST_CASE(loras_of_all_names_change_the_same_weights) {
  write("sdxl");
  const LoraFiles files = lora_files();
  write_file("loras/unet_kohya", files.kohya);
  write_file("loras/unet_original", files.original);
  write_file("loras/unet_diffusers", files.diffusers);
  write_file("loras/unet_attentions", files.attentions);
  write_file("loras/unet_processors", files.processors);
  write_file("checkpoints/merged", files.merged);
  const auto drawn = [&](const std::string& loaders, const char* from) {
    const heddle::Results results = run_whole(
        "{" + loaders + texts(cat(R"([")", from, R"(", 1])")) + "\"drawn\": " +
            ksampler(
                cat(sampler("6.0", "euler", "normal", 2), R"(, "model": [")", from, R"(", 0])")) +
            R"(, "look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}}})",
        {"drawn.LATENT"});
    for (const std::string& warning : warnings) BOOST_TEST(warning == "");
    return results.floats("drawn.LATENT", "samples");
  };
  const auto with = [&](const char* lora) {
    return drawn(loader() + node("lora", "LoraLoader",
                                 cat(R"("model": ["model", 0], "clip": ["model", 1],
      "lora_name": ")",
                                     lora,
                                     R"(.safetensors", "strength_model": 1.0,
      "strength_clip": 1.0)")),
                 "lora");
  };
  const std::vector<float> first = with("unet_kohya");
  BOOST_TEST((first == with("unet_original")));
  BOOST_TEST((first == with("unet_diffusers")));
  BOOST_TEST((with("unet_attentions") == with("unet_processors")));
  const std::vector<float> whole = drawn(
      node("model", "CheckpointLoaderSimple", R"("ckpt_name": "merged.safetensors")"), "model");
  const double error = relative_error(first, whole);
  BOOST_TEST(error < 1e-5, "relative error " << error);
  const double change = relative_error(first, drawn(loader(), "model"));
  BOOST_TEST(change > 1e-3, "the LoRA changes " << change);
}

// The other parts are those of the random pipeline.
BOOST_AUTO_TEST_CASE(a_folder_draws_what_its_scheduler_says) {
  namespace fs = std::filesystem;
  const fs::path pipelines = folder / "models/diffusers", drawn = pipelines / "drawn";
  fs::create_directories(drawn / "scheduler");
  for (const char* part : {"text_encoder", "tokenizer", "vae"})
    fs::create_directory_symlink(pipelines / "random" / part, drawn / part);
  write_file("diffusers/drawn/unet/diffusion_pytorch_model", unet_model("sd1"));
  write_file("diffusion_models/alone", unet_model("sd1"));
  folder.write("models/diffusers/drawn/model_index.json",
               R"({"_class_name": "StableDiffusionPipeline", "unet": ["diffusers", "UNet"],
             "text_encoder": ["transformers", "CLIP"], "vae": ["diffusers", "VAE"]})");
  const std::string states = (folder / "states.safetensors").string();
  write_safetensors(states, {seeded_tensor("in.one.cross_attn", {1, 7, 64})});
  const auto draw = [&](const std::string& model) {
    return run_whole(
               "{" + model +
                   node("one", "test.conditioning",
                        cat(R"("path": ")", states, R"(", "prefix": "in.one", "option": "")")) +
                   node("empty", "EmptyLatentImage",
                        R"("width": 80, "height": 48, "batch_size": 1)") +
                   "\"drawn\": " +
                   ksampler(sampler("1.0", "euler", "normal", 2) + R"(, "negative": ["one", 0])") +
                   R"(, "look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}}})",
               {"drawn.LATENT"})
        .floats("drawn.LATENT", "samples");
  };
  const auto as_told = [&](const std::string& type) {
    folder.write("models/diffusers/drawn/scheduler/scheduler_config.json",
                 cat(R"({"beta_schedule": "scaled_linear", "prediction_type": ")", type, "\"}"));
    return draw(node("model", "DiffusersLoader", R"("model_path": "drawn")"));
  };
  const std::vector<float> alone = draw(node(
      "model", "UNETLoader", R"("unet_name": "alone.safetensors", "weight_dtype": "default")"));
  BOOST_TEST((as_told("epsilon") == alone));
  BOOST_TEST((as_told("v_prediction") != alone));
}

BOOST_AUTO_TEST_SUITE_END()
