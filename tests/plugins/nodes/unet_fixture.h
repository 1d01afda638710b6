// Checkpoints of Stable Diffusion as they were published, over models whose weights follow from
// their names, and workflows that draw with them.
#pragma once

#include <cstring>

#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/unet_models.h"

namespace heddle::test {
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
    return engine::cat("\"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs,
                       "}}, ");
  }
  static std::string text(const std::string& name, const std::string& words,
                          const std::string& clip) {
    return node(name, "CLIPTextEncode", engine::cat(R"("text": ")", words, R"(", "clip": )", clip));
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
                engine::cat(R"("path": ")", golden.string(), R"(", "name": ")", golden_name, "\""));
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
          file.push_back({engine::cat(module, ups), up.dtype, up.shape, up.bytes});
          file.push_back({engine::cat(module, downs), down.dtype, down.shape, down.bytes});
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
  // The floats of outputs of a flow, one behind another. budget: bytes of the first device, or 0.
  static std::vector<float> placed(
      EngineOptions options, std::vector<std::string> devices, const std::string& flow,
      std::uint64_t budget, const std::vector<std::pair<const char*, const char*>>& outputs) {
    const std::string kind = devices.front().substr(0, devices.front().find(':'));
    if (kind == "fake") options.plugin_dirs.push_back(kFakePlugin);
    if (budget > 0) options.budgets = {{devices.front(), MemorySize{budget}}};
    options.devices = std::move(devices);
    options.compute = {{kind, "f32"}};
    options.reference_kernels = true;
    Engine engine(std::move(options));
    std::vector<std::string> wanted;
    for (const auto& [output, field] : outputs) wanted.push_back(output);
    const Results results = engine.start(engine.parse(flow), {{}, wanted}).wait();
    std::vector<float> all;
    for (const auto& [output, field] : outputs) {
      const std::vector<float> floats = results.floats(output, field);
      all.insert(all.end(), floats.begin(), floats.end());
    }
    return all;
  }
  // The flow has the same bytes where the calls of a node of this class go through two devices by
  // their layers, and on a device whose budget does not hold all weights.
  static void same_where_placed(const EngineOptions& options, const std::string& flow,
                                const std::string& type, std::uint64_t budget,
                                const std::vector<std::pair<const char*, const char*>>& outputs) {
    const FakeControl control;
    const auto are_equal = [](const std::vector<float>& a, const std::vector<float>& b) {
      return !a.empty() && a.size() == b.size() &&
             std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
    };
    const std::string node = R"({"class_type": ")" + type + "\"";
    std::string divided = flow;
    const std::size_t at = divided.find(node);
    BOOST_TEST_REQUIRE(at != std::string::npos);
    divided.insert(at + 1, R"("parallel": "layers", "device": "fake:0,fake:1", )");
    const std::vector<float> alone = placed(options, {"cpu:0"}, flow, 0, outputs);
    BOOST_TEST(are_equal(alone, placed(options, {"fake:0", "fake:1"}, divided, 0, outputs)),
               "layers");
    // No encoder has such an op, so that those of a sampler are its UNet's.
    const char* const op = type == "KSampler" ? HEDDLE_OP_GATED_ACTIVATION : nullptr;
    for (const std::uint32_t device : {0u, 1u})
      BOOST_TEST(control->launches(device, op) > 0u, "fake:" << device);
    BOOST_TEST(are_equal(alone, placed(options, {"fake:0"}, flow, budget, outputs)),
               "little memory");
  }
  static std::string sampler(const char* cfg, const char* name, const char* scheduler,
                             int steps = 4) {
    return engine::cat(R"("steps": )", steps, R"(, "cfg": )", cfg, R"(, "sampler_name": ")", name,
                       R"(", "scheduler": ")", scheduler, "\"");
  }
};

}  // namespace heddle::test
