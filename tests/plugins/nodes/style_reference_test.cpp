// USOStyleReference: FLUX.1 in the style of a picture, with a tower of SigLIP's kind, against
// PyTorch (../goldens/make_uso_goldens.py).
#include <set>

#include "engine/files/checkpoint.h"
#include "engine/graph/model.h"
#include "engine/plugin/loader.h"
#include "engine/plugin/model_builder.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

constexpr const char* kUsoFile = "uso-flux1-projector-v1";
constexpr const char* kUsoTower = "sigclip_vision_patch14_384";

struct StyleFixture : PlacedFixture {
  TensorFile expected{tests_folder() / "plugins/goldens/uso/expected.safetensors"};

  StyleFixture() {
    input_dir = tests_folder() / "plugins/goldens/edit";
    add(cat("clip_vision/", kUsoTower), uso("siglip"));
    add(cat("model_patches/", kUsoFile), uso("projector"));
  }
  static std::vector<FileTensor> uso(const std::string& model) {
    return seeded_model(model, false, "uso");
  }
  static std::string node(const std::string& name, const std::string& type,
                          const std::string& inputs) {
    return cat("\"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}, ");
  }
  // The model in the style of a picture: NAME; `from`: the model before.
  static std::string styled(const std::string& name, const std::string& picture,
                            const std::string& from, const std::string& tower = kUsoTower,
                            const std::string& patch = kUsoFile) {
    return cat(
        node(name + "_tower", "CLIPVisionLoader",
             cat(R"("clip_name": ")", tower, R"(.safetensors")")),
        node(name + "_file", "ModelPatchLoader", cat(R"("name": ")", patch, R"(.safetensors")")),
        node(name + "_picture", "LoadImage", cat(R"("image": ")", picture, "\"")),
        node(name + "_seen", "CLIPVisionEncode",
             cat(R"("clip_vision": [")", name, R"(_tower", 0], "image": [")", name,
                 R"(_picture", 0], "crop": "center")")),
        node(name, "USOStyleReference",
             cat(R"("model": [")", from, R"(", 0], "model_patch": [")", name,
                 R"(_file", 0], "clip_vision_output": [")", name, R"(_seen", 0])")));
  }
  static std::string one_style() { return styled("style", "one.png", "model"); }
  // Three steps of the model "style" to "out".
  static std::string flow(const std::string& nodes, const std::string& changes = "",
                          const std::string& hints = "") {
    std::string sampler = ksampler(cat(R"("model": ["style", 0], "cfg": 1, "steps": 3)",
                                       changes.empty() ? "" : ", ", changes));
    sampler.insert(sampler.size() - 1, hints);
    return workflow(cat(nodes, "\"out\": ", sampler, ", ", kLook));
  }
  std::vector<float> drawn(const std::string& text) const {
    EngineOptions options = options_for({"cpu:0"});
    options.reference_kernels = false;
    return draw(options, text);
  }
  void compare(const std::vector<float>& got, const std::string& golden) const {
    const double error = relative_error(got, expected.floats(golden));
    BOOST_TEST_MESSAGE(golden << ": relative error " << error);
    BOOST_TEST(error < kTolerance, golden << ": relative error " << error);
  }
  std::string refusal(const std::string& nodes) const {
    const Engine planner(options_for({"cpu:0"}));
    return engine_refusal([&] { planner.plan(planner.parse(flow(nodes))); });
  }
};

void says_of_style(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words)
    BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(style_references, StyleFixture)

BOOST_AUTO_TEST_CASE(the_projector_makes_the_tokens_that_pytorch_makes) {
  ModelProbe probe;
  const Results results =
      probe.call({folder / cat("models/model_patches/", kUsoFile, ".safetensors"), "model_patch",
                  "", tests_folder() / "plugins/goldens/uso/expected.safetensors", "project."});
  compare(results.floats("model.outputs", "tokens.0"), "project.tokens");
}

BOOST_AUTO_TEST_CASE(the_tower_gives_the_states_of_the_layers_that_are_read) {
  EngineOptions options = options_for({"cpu:0"});
  Engine seeing(options);
  const Results results =
      seeing
          .start(
              seeing.parse(workflow(cat(
                  one_style(),
                  R"("look": {"class_type": "test.look", "inputs": {"value": ["style_seen", 0]}})"))),
              {{}, {"style_seen.CLIP_VISION_OUTPUT"}})
          .wait();
  std::vector<float> states;
  for (const char* field : {"hidden_20", "hidden_11", "hidden_2"}) {
    const std::vector<float> one = results.floats("style_seen.CLIP_VISION_OUTPUT", field);
    states.insert(states.end(), one.begin(), one.end());
  }
  compare(states, "states");
}

BOOST_AUTO_TEST_CASE(a_style_draws_what_pytorch_draws) {
  const std::vector<float> one = drawn(flow(one_style()));
  compare(one, "one");
  compare(drawn(flow(styled("first", "one.png", "model") + styled("style", "two.png", "first"))),
          "two");
  BOOST_TEST(relative_error(one, expected.floats("two")) > 100 * kTolerance);
}

BOOST_AUTO_TEST_CASE(a_style_goes_with_a_picture_that_is_shown) {
  const std::string shown =
      node("picture", "test.latent",
           cat(R"("path": ")", (here() / "reference_goldens.safetensors").string(),
               R"(", "name": "in.first")")) +
      node("with", "ReferenceLatent", R"("conditioning": ["one", 0], "latent": ["picture", 0])") +
      node("shown", "FluxKontextMultiReferenceLatentMethod",
           R"("conditioning": ["with", 0], "reference_latents_method": "uxo/uno")");
  compare(drawn(flow(one_style() + shown, R"("positive": ["shown", 0])")), "shown");
}

// By itself in the published file's size, and joined to a model.
BOOST_AUTO_TEST_CASE(every_tensor_of_the_file_is_taken) {
  const engine::LoadedPlugins plugins = engine::load_plugins({HEDDLE_PLUGINS_DIR});
  const auto hold_names = [&](const char* role, const std::vector<FileTensor>& tensors,
                              const char* config) {
    const std::filesystem::path path = folder / "names.safetensors";
    write_header_only(path, tensors);
    const engine::Value value = engine::from_json(engine::parse_json(config, "config"));
    const engine::Value model =
        engine::build_model(*plugins.catalog, role, engine::open_checkpoint(path), value.get(), {});
    std::set<std::string> taken, all;
    for (const auto& block : engine::get_model(*model)->graph->nodes)
      for (const auto& parts : block.weights)
        for (const auto& part : parts) taken.insert(part.tensor);
    for (const FileTensor& tensor : tensors) all.insert(tensor.name);
    BOOST_TEST(taken == all, boost::test_tools::per_element());
  };
  std::vector<FileTensor> whole;
  for (const char* layer : {"high", "mid", "low"}) {
    const std::string at = cat("feature_embedder.", layer);
    whole.push_back({at + "_embedding_linear.0.weight", "BF16", {64, 729}});
    whole.push_back({at + "_embedding_linear.0.bias", "BF16", {64}});
    whole.push_back({at + "_layer_norm.weight", "BF16", {1152}});
    whole.push_back({at + "_layer_norm.bias", "BF16", {1152}});
    whole.push_back({at + "_projection.weight", "BF16", {3072, 1152}});
    whole.push_back({at + "_projection.bias", "BF16", {3072}});
  }
  hold_names("model_patch", whole, "{}");
  std::vector<FileTensor> joined;
  const TensorFile plain(random() / "flux_original.safetensors");
  for (const auto& [name, entry] : plain.entries())
    joined.push_back({name, entry.dtype, entry.shape});
  for (FileTensor tensor : uso("projector")) {
    tensor.name = "model_patch.0." + tensor.name;
    tensor.bytes.clear();
    joined.push_back(std::move(tensor));
  }
  hold_names(
      "diffusion_model", joined,
      R"({"model_patches": [{"prefix": "model_patch.0.", "file": "patch", "strength": 1.0}]})");
}

BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes_or_nearly_its_numbers) {
  // The tower by itself takes 811 KiB, more than the model.
  hold(
      [&](const std::string& hints) {
        return flow(one_style(), R"("cfg": 2.0, "steps": 2)", hints);
      },
      {"layers", "cfg"}, {"sequence", "tensor"}, 900 << 10, 4 * 6 * 8);
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  Engine::Data told(options_for({"cpu:0"}));
  const std::string words = node("words", "RandomConditioning",
                                 R"("tokens": 5, "width": 24, "pooled_width": 32, "seed": 1)");
  check_inference(told, flow(one_style() + words,
                             R"("cfg": 2.0, "positive": ["words", 0], "negative": ["words", 0])"));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_before_anything_is_loaded) {
  // A tower without so many layers.
  add("clip_vision/shallow", seeded_model("siglip", false, "redux"));
  says_of_style(
      engine_refusal([&] {
        Engine engine(options_for({"cpu:0"}));
        engine.start(engine.parse(flow(styled("style", "one.png", "model", "shallow")))).wait();
      }),
      {"clip_vision_output", "20, 11 and 2", "sigclip_vision_patch14_384"});
  // A patch of another model, and one of other widths.
  add("model_patches/other", seeded_model("alone", false, "patches"));
  says_of_style(refusal(styled("style", "one.png", "model", kUsoTower, "other")),
                {"model_patch", "'z-image'", "'flux'"});
  std::vector<FileTensor> wide = uso("projector");
  for (FileTensor& tensor : wide)
    if (tensor.name.find("_projection.") != std::string::npos)
      tensor =
          seeded_tensor(tensor.name, tensor.shape.size() == 2 ? std::vector<std::int64_t>{48, 72}
                                                              : std::vector<std::int64_t>{48});
  add("model_patches/wide", wide);
  says_of_style(refusal(styled("style", "one.png", "model", kUsoTower, "wide")), {"48 wide", "40"});
  std::vector<FileTensor> narrow = uso("projector");
  for (FileTensor& tensor : narrow)
    if (tensor.name.ends_with("_embedding_linear.0.weight"))
      tensor = seeded_tensor(tensor.name, {3, 9});
  add("model_patches/narrow", narrow);
  says_of_style(refusal(styled("style", "one.png", "model", kUsoTower, "narrow")),
                {"1 x 4 x 72", "9 tokens of 72"});
  std::vector<FileTensor> broken = uso("projector");
  std::erase_if(broken, [](const FileTensor& tensor) {
    return tensor.name == "feature_embedder.low_projection.bias";
  });
  add("model_patches/broken", broken);
  says_of_style(refusal(styled("style", "one.png", "model", kUsoTower, "broken")),
                {"feature_embedder.low_projection.bias"});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
