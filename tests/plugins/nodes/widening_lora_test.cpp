// LoRAs of FLUX.1's Canny and Depth, in the form in which they were published: the first layer's is
// wider than the model's, there are biases, and norms that take the places of the model's. Against
// a model of that width into which the same was merged here (concat_test.cpp holds such models).
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"
#include "tests/support/merged_lora.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

constexpr float kStrength = 0.75f;

// At 0.75: changes are exact in f32 as often as they can be.
struct WideningLora : PlacedFixture {
  const std::filesystem::path goldens = tests_folder() / "plugins/goldens/control";

  WideningLora() {
    input_dir = goldens;
    const std::vector<FileTensor> model = seeded_model("flux", false, "control");
    add("diffusion_models/flux", model);
    add("vae/ae", seeded_model("z_image.vae"));
    std::vector<FileTensor> lora, merged = model;
    // The layer that reads the latent, of twice as many numbers.
    FileTensor& first = tensor_named(merged, "x_embedder.weight");
    const std::int64_t rows = first.shape[0], columns = first.shape[1];
    std::vector<float> wide(std::size_t(rows * 2 * columns), 0.0f);
    const std::vector<float> narrow = floats_of(first);
    for (std::int64_t row = 0; row < rows; ++row)
      std::copy_n(narrow.begin() + row * columns, columns, wide.begin() + row * 2 * columns);
    first.shape[1] *= 2;
    first.bytes = bytes_of_floats(wide);
    add_module("img_in", "x_embedder", 0, rows, lora, merged);
    add_module("double_blocks.0.img_attn.proj", "transformer_blocks.0.attn.to_out.0", 0, rows, lora,
               merged);
    add_module("double_blocks.0.img_mlp.0", "transformer_blocks.0.ff.net.0.proj", 0, 4 * rows, lora,
               merged);
    // Its norm, whatever the strength.
    FileTensor& norm = tensor_named(merged, "transformer_blocks.0.attn.norm_q.weight");
    lora.push_back(
        seeded_tensor("double_blocks.0.img_attn.norm.query_norm.scale", norm.shape, "other_norm"));
    norm.bytes = lora.back().bytes;
    add("loras/depth", lora);
    add("diffusion_models/merged", merged);
  }
  static void add_module(const std::string& name, const std::string& module, std::int64_t from,
                         std::int64_t rows, std::vector<FileTensor>& lora,
                         std::vector<FileTensor>& merged) {
    FileTensor& weight = tensor_named(merged, module + ".weight");
    const FileTensor up = seeded_tensor(name + ".lora_B.weight", {rows, 4}),
                     down = seeded_tensor(name + ".lora_A.weight", {4, weight.shape[1]}),
                     bias = seeded_tensor(name + ".lora_B.bias", {rows});
    merge_product(weight, from, up, down, kStrength);
    FileTensor& changed = tensor_named(merged, module + ".bias");
    std::vector<float> sum = floats_of(changed);
    const std::vector<float> more = floats_of(bias);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += kStrength * more[i];
    changed.bytes = bytes_of_floats(sum);
    lora.insert(lora.end(), {up, down, bias});
  }
  // From a picture to the latent; `patched`: what makes "used" of "model".
  std::string flow(const std::string& file, const std::string& patched,
                   const std::string& hints = "") const {
    const auto node = [](const char* name, const char* type, const std::string& inputs) {
      return cat(", \"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}");
    };
    std::string whole = drawn_of(
        cat(loaded(file), patched, R"(, "text": )", text("flux", goldens / "expected.safetensors"),
            node("vae", "VAELoader", R"("vae_name": "ae.safetensors")"),
            node("hint", "LoadImage", R"("image": "hint.png")"),
            node("both", "InstructPixToPixConditioning",
                 R"("positive": ["text", 0], "negative": ["text", 0], "vae": ["vae", 0],
                 "pixels": ["hint", 0])"),
            node("one", "FluxGuidance", R"("conditioning": ["both", 0], "guidance": 10.0)"),
            node("two", "FluxGuidance", R"("conditioning": ["both", 1], "guidance": 10.0)")),
        hints);
    if (patched.empty()) return whole;
    const std::string from = R"("inputs": {"model": ["model", 0], "seed")";
    return whole.replace(whole.find(from), from.size(),
                         R"("inputs": {"model": ["used", 0], "seed")");
  }
  static std::string lora() {
    return cat(R"(, "used": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["model", 0],
        "lora_name": "depth.safetensors", "strength_model": )",
               kStrength, "}}");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(widening_lora, WideningLora)

BOOST_AUTO_TEST_CASE(a_lora_widens_the_layer_that_reads_the_latent) {
  const std::vector<float> drawn = draw(options_for({"cpu:0"}), flow("flux", lora()));
  const double error = relative_error(drawn, draw(options_for({"cpu:0"}), flow("merged", ""))),
               moved = relative_error(drawn, draw(options_for({"cpu:0"}), flow("flux", "")));
  BOOST_TEST(error < kTolerance, "relative error " << error);
  BOOST_TEST(moved > 100 * kTolerance, "the LoRA changed " << moved);
}

BOOST_AUTO_TEST_CASE(what_a_widened_model_calls_is_told_before_it) {
  // Of a pipeline that encodes, so that all shapes are known.
  const std::vector<std::int64_t> first =
      TensorFile(random() / "flux_diffusers.safetensors").at("x_embedder.weight").shape;
  add("loras/wide", {seeded_tensor("img_in.lora_A.weight", {2, 2 * first[1]}),
                     seeded_tensor("img_in.lora_B.weight", {first[0], 2})});
  heddle::Engine::Data data{options_for({"cpu:0"})};
  check_inference(data,
                  R"({"all": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}},
      "model": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["all", 0],
        "lora_name": "wide.safetensors", "strength_model": 1.0}},
      "text": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["all", 1], "text": "a fox"}},
      "picture": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 48, "batch_size": 1, "color": 16744448}},
      "both": {"class_type": "InstructPixToPixConditioning", "inputs": {"positive": ["text", 0],
        "negative": ["text", 0], "vae": ["all", 2], "pixels": ["picture", 0]}},
      "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 1, "steps": 2,
        "cfg": 1.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["both", 0],
        "negative": ["both", 1], "latent_image": ["both", 2], "denoise": 1.0}},
      "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
}

BOOST_AUTO_TEST_CASE(a_widened_model_is_not_saved) {
  heddle::Engine saving(options_for({"cpu:0"}));
  const std::string refused = engine_refusal([&] {
    saving
        .start(saving.parse(cat("{", loaded("flux"), lora(),
                                R"(, "save": {"class_type": "ModelSave", "inputs": {
        "model": ["used", 0], "filename_prefix": "wide"}}})")))
        .wait();
  });
  BOOST_TEST(refused.find("the LoRA 'depth.safetensors'") != std::string::npos, refused);
}

BOOST_AUTO_TEST_CASE(dividing_a_widened_model_keeps_its_bytes_or_nearly_its_numbers,
                     *boost::unit_test::label("long")) {
  hold([&](const std::string& hints) { return flow("flux", lora(), hints); },
       {"layers", "data", "cfg"}, {"sequence", "tensor"}, 1500 << 10);
}

BOOST_AUTO_TEST_SUITE_END()
