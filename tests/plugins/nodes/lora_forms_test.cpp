// LoRAs that are no products (LoHa, LoKr, DoRA, OFT, ...): the weights that they make, against
// LyCORIS (make_lora_form_goldens.py), and how they run.
#include <cstring>

#include "engine/files/checkpoint.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/unet_fixture.h"

using namespace heddle::test;

namespace {

constexpr double kWeightError = 2e-6;

struct LoraForms : UnetWorkflow {
  TensorFile golden_weights{tests_folder() / "plugins/goldens/lora_forms/expected.safetensors"};
  std::vector<FileTensor> unet = unet_model("sd1");

  LoraForms() {
    write_file("loras/forms", seeded_model("lora", false, "lora_forms"));
    // Of another module than those.
    write_file("loras/none", {seeded_tensor("lora_unet_conv_in.diff_b", {32})});
    write_safetensors(folder / "text.safetensors",
                      {seeded_tensor("in.one.cross_attn", {1, 7, 64}),
                       seeded_tensor("in.one.pooled_output", {1, 64})});
  }

  void write_unet() const { write_file("diffusion_models/unet", unet); }
  FileTensor& tensor(const std::string& name) {
    for (FileTensor& each : unet)
      if (each.name == name) return each;
    throw std::runtime_error("no " + name);
  }
  static std::string with_lora(const std::string& file, double strength,
                               const std::string& dtype = "default") {
    return node("plain", "UNETLoader",
                R"("unet_name": "unet.safetensors", "weight_dtype": ")" + dtype + "\"") +
           node("model", "LoraLoaderModelOnly",
                heddle::engine::cat(R"("model": ["plain", 0], "lora_name": ")", file,
                                    R"(.safetensors", "strength_model": )", strength));
  }
  heddle::EngineOptions options_for(const std::string& device, std::uint64_t budget = 0) const {
    heddle::EngineOptions options = engine_options();
    const std::string kind = device.substr(0, device.find(':'));
    if (kind == "fake") options.plugin_dirs.push_back(kFakePlugin);
    options.devices = {device};
    options.compute = {{kind, "f32"}};
    if (budget > 0) options.budgets = {{device, heddle::MemorySize{budget}}};
    options.model_dirs = {folder / "models"};
    options.output_dir = folder / "forms";
    return options;
  }
  // One evaluation of the UNet, as a sampler's.
  std::vector<float> draw(const std::string& file, const heddle::EngineOptions& options,
                          const std::string& dtype = "default") const {
    heddle::Engine engine(options);
    return draw_on(engine, with_lora(file, 0.7, dtype));
  }
  std::vector<float> draw_on(heddle::Engine& engine, const std::string& model) const {
    const std::string flow =
        "{" + model +
        node("empty", "EmptyLatentImage", R"("width": 64, "height": 64, "batch_size": 1)") +
        node("one", "test.conditioning",
             heddle::engine::cat(R"("path": ")", (folder / "text.safetensors").string(),
                                 R"(", "prefix": "in.one", "option": "")")) +
        R"("drawn": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 3,
            "steps": 2, "cfg": 1.0, "sampler_name": "euler", "scheduler": "normal",
            "positive": ["one", 0], "negative": ["one", 0], "latent_image": ["empty", 0],
            "denoise": 1.0}},
           "look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}}})";
    return engine.start(engine.parse(flow), {{}, {"drawn.LATENT"}})
        .wait()
        .floats("drawn.LATENT", "samples");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(lora_forms, LoraForms)

BOOST_AUTO_TEST_CASE(weights_are_those_of_lycoris) {
  write_unet();
  for (const char* strength : {"1.0", "0.7"}) {
    const std::string flow =
        "{" + with_lora("forms", std::stod(strength)) +
        R"("save": {"class_type": "ModelSave", "inputs": {"model": ["model", 0],
            "filename_prefix": "forms_)" +
        strength + "\"}}}";
    heddle::Engine engine(options_for("cpu:0"));
    engine.start(engine.parse(flow)).wait();
    const heddle::engine::Checkpoint saved = heddle::engine::open_checkpoint(
        folder / "forms" / heddle::engine::cat("forms_", strength, "_00001_.safetensors"));
    std::size_t held = 0;
    for (const auto& [name, entry] : golden_weights.entries()) {
      const std::size_t space = name.find(' ');
      if (name.substr(space + 1) != strength) continue;
      const std::string weight =
          "model.diffusion_model." + original_unet_name(name.substr(0, space), 2);
      const std::vector<float> wanted = golden_weights.floats(name);
      const heddle::engine::TensorView& made = saved.at(weight);
      std::vector<float> values(made.data.size() / sizeof(float));
      std::memcpy(values.data(), made.data.data(), made.data.size());
      double worst = 0;
      for (std::size_t i = 0; i < wanted.size(); ++i)
        worst = std::max(worst, double(std::abs(values.at(7 * i) - wanted[i])));
      BOOST_TEST(worst < kWeightError, name << ": " << worst);
      ++held;
    }
    BOOST_TEST(held == 16u);
  }
}

BOOST_AUTO_TEST_CASE(little_memory_and_two_devices_change_no_byte) {
  write_unet();
  const std::vector<float> alone = draw("forms", options_for("cpu:0"));
  BOOST_TEST(alone != draw("none", options_for("cpu:0")));
  BOOST_TEST(alone == draw("forms", options_for("fake:0")));
  BOOST_TEST(alone == draw("forms", options_for("fake:0", 1300 << 10)));
}

BOOST_AUTO_TEST_CASE(strengths_that_nearly_agree_make_weights_of_their_own) {
  write_unet();
  heddle::Engine engine(options_for("cpu:0")), other(options_for("cpu:0"));
  const std::vector<float> before = draw_on(engine, with_lora("forms", 0.1234561)),
                           behind = draw_on(engine, with_lora("forms", 0.1234564));
  BOOST_TEST(behind != before);
  BOOST_TEST(behind == draw_on(other, with_lora("forms", 0.1234564)));
}

BOOST_AUTO_TEST_CASE(matrices_in_eight_bits_are_changed_as_their_numbers_are) {
  const std::pair<unsigned char, float> numbers[] = {
      {0x18, 0.0625f},  {0x98, -0.0625f},  {0x20, 0.125f}, {0xA0, -0.125f},
      {0x10, 0.03125f}, {0x90, -0.03125f}, {0x00, 0.0f}};
  const std::string block = "down_blocks.0.attentions.0.transformer_blocks.0.";
  std::vector<FileTensor> packed;
  for (const char* module : {"attn1.to_q", "attn1.to_k", "attn1.to_out.0", "attn2.to_v"}) {
    FileTensor& plain = tensor(block + module + ".weight");
    const std::size_t count = plain.bytes.size() / sizeof(float);
    FileTensor small{plain.name, "F8_E4M3", plain.shape, std::string(count, '\0')};
    std::vector<float> values(count);
    std::uint32_t state = 7;
    for (std::size_t i = 0; i < count; ++i) {
      state = state * 1664525u + 1013904223u;
      const auto& [byte, value] = numbers[(state >> 16) % std::size(numbers)];
      small.bytes[i] = char(byte);
      values[i] = value;
    }
    plain.bytes = bytes_of_floats(values);
    packed.push_back(small);
  }
  write_unet();
  const std::vector<float> wide = draw("forms", options_for("cpu:0")),
                           cast = draw("forms", options_for("cpu:0"), "fp8_e4m3fn");
  BOOST_TEST(cast != wide);
  for (const FileTensor& small : packed) tensor(small.name) = small;
  write_unet();
  BOOST_TEST(draw("forms", options_for("cpu:0")) == wide);
  BOOST_TEST(draw("forms", options_for("cpu:0"), "fp8_e4m3fn") == cast);
  BOOST_TEST(draw("forms", options_for("fake:0", 1300 << 10)) == wide);
}

BOOST_AUTO_TEST_CASE(incomplete_and_misfitting_ones_are_refused) {
  write_unet();
  const std::string module = "lora_unet_down_blocks_0_resnets_0_conv1.";
  const auto refusal = [&](const std::vector<FileTensor>& tensors) {
    write_file("loras/wrong", tensors);
    heddle::Engine engine(options_for("cpu:0"));
    return engine_refusal([&] {
      engine
          .start(engine.parse("{" + with_lora("wrong", 1) +
                              R"("look": {"class_type": "test.look",
                                    "inputs": {"value": ["model", 0]}}})"))
          .wait();
    });
  };
  const auto zeros = [&](const std::string& factor, const std::vector<std::int64_t>& shape) {
    return FileTensor{module + factor, "F8_E4M3", shape,
                      std::string(std::size_t(shape[0] * shape[1]), '\0')};
  };
  const auto loha = [&](std::int64_t rows, std::int64_t rank) {
    return std::vector{zeros("hada_w1_a", {rows, rank}), zeros("hada_w1_b", {rank, rows}),
                       zeros("hada_w2_a", {rows, rank}), zeros("hada_w2_b", {rank, rows})};
  };
  std::vector<FileTensor> both_kinds = loha(16, 2);
  both_kinds.push_back(seeded_tensor(module + "oft_blocks", {8, 4, 4}));
  const std::pair<std::string, std::vector<FileTensor>> cases[] = {
      {"has no 'hada_w1_b'", {seeded_tensor(module + "hada_w1_a", {32, 2})}},
      {"has no numbers in '" + module + "hada_w1_", loha(100000, 0)},
      // Products of 4 TB.
      {"is (1048576, 1048576), the weight (32, 288)", loha(1 << 20, 1)},
      {"is (1048576, 1048576), the weight (32, 288)",
       {zeros("lokr_w1", {1024, 1024}), zeros("lokr_w2", {1024, 1024})}},
      {"GLoRA of other sizes than the weight",
       {zeros("a1.weight", {32, 2}), zeros("a2.weight", {2, 32}), zeros("b1.weight", {1 << 20, 2}),
        zeros("b2.weight", {2, 1 << 20})}},
      {"is (16, 16), the weight (32, 288)", both_kinds},
      {"is (16, 16), the weight (32, 288)",
       {seeded_tensor(module + "lokr_w1", {4, 4}), seeded_tensor(module + "lokr_w2", {4, 4})}},
      {"rotations for another number of rows than 32",
       {seeded_tensor(module + "oft_blocks", {3, 4, 4})}},
      // A shift by 64 is one by nothing on most processors.
      {"stages of rotations that 32 rows", {seeded_tensor(module + "oft_blocks", {64, 16, 2, 2})}},
      {"stages of rotations that 32 rows", {seeded_tensor(module + "oft_blocks", {6, 16, 2, 2})}},
      {"has 3 scales for 32 rows",
       {seeded_tensor(module + "oft_blocks", {2, 8, 4, 4}),
        seeded_tensor(module + "rescale", {3})}},
      {"magnitudes alone", {seeded_tensor(module + "dora_scale", {32, 1, 1, 1})}},
      {"change embeddings", {seeded_tensor(module + "lora_embedding_A", {2, 2})}}};
  for (const auto& [part, tensors] : cases) {
    const std::string found = refusal(tensors);
    BOOST_TEST(found.find(part) != std::string::npos, found);
  }
}

BOOST_AUTO_TEST_SUITE_END()
