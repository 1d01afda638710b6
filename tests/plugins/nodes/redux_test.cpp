// FLUX.1 Redux: a picture's tokens behind those of a text, with a tower of SigLIP's kind, against
// PyTorch (../goldens/make_redux_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/text.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/lent_tensor.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using heddle::Engine;
using heddle::EngineOptions;
using heddle::Results;
using heddle::engine::cat;
using namespace heddle::test;

namespace {

constexpr double kReduxTolerance = 5e-6;

std::filesystem::path redux_folder() { return tests_folder() / "plugins/goldens/redux"; }

struct ReduxFixture {
  TemporaryFolder folder;
  TensorFile expected{redux_folder() / "expected.safetensors"};
  Engine engine{options()};

  EngineOptions options() const {
    std::filesystem::create_directories(folder / "models/clip_vision");
    std::filesystem::create_directories(folder / "models/style_models");
    write_safetensors(folder / "models/clip_vision/sigclip_vision_patch14_384.safetensors",
                      seeded_model("siglip", false, "redux"));
    write_safetensors(folder / "models/style_models/flux1-redux-dev.safetensors",
                      seeded_model("redux", false, "redux"));
    EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs = {folder / "models"};
    options.input_dir = tests_folder() / "plugins/goldens/edit";
    options.output_dir = folder / "out";
    return options;
  }
  // The tower, the style model, a text, and a picture that is seen.
  static std::string flow(const std::string& picture, const std::string& crop,
                          const std::string& apply,
                          const std::string& tower = "sigclip_vision_patch14_384") {
    return cat(R"({"tower": {"class_type": "CLIPVisionLoader", "inputs": {"clip_name": ")", tower,
               R"(.safetensors"}},
      "style": {"class_type": "StyleModelLoader", "inputs": {"style_model_name": "flux1-redux-dev.safetensors"}},
      "text": {"class_type": "test.conditioning", "inputs": {"path": ")",
               (redux_folder() / "expected.safetensors").string(),
               R"(", "prefix": "in.text", "option": ""}},
      "picture": {"class_type": "LoadImage", "inputs": {"image": ")",
               picture, R"("}},
      "seen": {"class_type": "CLIPVisionEncode", "inputs": {"clip_vision": ["tower", 0], "image": ["picture", 0], "crop": ")",
               crop, R"("}},
      "out": {"class_type": "StyleModelApply", "inputs": {"conditioning": ["text", 0], "style_model": ["style", 0],
        "clip_vision_output": ["seen", 0], )",
               apply, R"(}}, "first": {"class_type": "test.first", "inputs": {"list": ["out", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["first", 0]}}})");
  }
  static std::string apply(const std::string& strength, const std::string& type = "multiply") {
    return cat(R"("strength": )", strength, R"(, "strength_type": ")", type, "\"");
  }
  Results run(const std::string& text) {
    return engine.start(engine.parse(text), {{}, {"seen.CLIP_VISION_OUTPUT", "first.value"}})
        .wait();
  }
  void compare(const std::vector<float>& got, const std::string& golden) const {
    const double error = relative_error(got, expected.floats(golden));
    BOOST_TEST_MESSAGE(golden << ": relative error " << error);
    BOOST_TEST(error < kReduxTolerance, golden << ": relative error " << error);
  }
  std::string refusal(const std::string& text) {
    return engine_refusal([&] { engine.plan(engine.parse(text)); });
  }
};

void says(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words)
    BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(redux, ReduxFixture)

BOOST_AUTO_TEST_CASE(the_tower_sees_what_that_of_transformers_sees) {
  ModelProbe probe;
  const Results results =
      probe.call({folder / "models/clip_vision/sigclip_vision_patch14_384.safetensors",
                  "vision_encoder", "", redux_folder() / "expected.safetensors", "seen."});
  compare(results.floats("model.outputs", "last_hidden.0"), "seen.last_hidden");
}

BOOST_AUTO_TEST_CASE(pictures_are_cut_and_stretched_as_comfyui_does) {
  const auto seen = [&](const char* picture, const char* crop) {
    return run(flow(picture, crop, apply("1"))).floats("seen.CLIP_VISION_OUTPUT", "last_hidden");
  };
  compare(seen("one.png", "center"), "center.last_hidden");
  compare(seen("one.png", "none"), "none.last_hidden");
  compare(seen("two.png", "center"), "two.last_hidden");
}

BOOST_AUTO_TEST_CASE(its_tokens_stand_behind_those_of_the_text) {
  const Results results = run(flow("one.png", "center", apply("0.5")));
  const std::vector<float> all = results.floats("first.value", "cross_attn"),
                           text = expected.floats("in.text.cross_attn");
  BOOST_TEST_REQUIRE(all.size() > text.size());
  const auto behind = all.begin() + std::ptrdiff_t(text.size());
  BOOST_TEST(std::equal(text.begin(), text.end(), all.begin()));
  compare({behind, all.end()}, "style");
}

BOOST_AUTO_TEST_CASE(a_bias_without_a_strength_changes_nothing) {
  const auto states = [&](const char* type) {
    return run(flow("one.png", "center", apply("1", type))).floats("first.value", "cross_attn");
  };
  BOOST_TEST(states("attn_bias") == states("multiply"), boost::test_tools::per_element());
  says(refusal(flow("one.png", "center", apply("0.5", "attn_bias"))), {"attn_bias", "multiply"});
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  // A text that is told of, too: of the same width.
  std::filesystem::create_directories(folder / "models/text_encoders");
  write_safetensors(folder / "models/text_encoders/qwen.safetensors",
                    seeded_model("text", false, "edit"));
  std::string told = flow("one.png", "center", apply("0.5"));
  const std::string link = R"("conditioning": ["text", 0])";
  told.replace(told.find(link), link.size(), R"("conditioning": ["encoded", 0])");
  told.insert(
      1,
      R"("clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "qwen.safetensors", "type": "qwen_image"}},
                 "encoded": {"class_type": "CLIPTextEncode", "inputs": {"text": "a fox", "clip": ["clip", 0]}}, )");
  Engine::Data other(options());
  check_inference(other, told);
}

BOOST_AUTO_TEST_CASE(what_is_no_states_of_pictures_is_refused) {
  LentTensor flat({2, 3}, std::vector<float>(6));
  const std::map<std::string, DLManagedTensor*> seen{{"last_hidden", flat.lend()}};
  says(engine_refusal([&] {
         engine
             .start(engine.parse(flow("one.png", "center", apply("1"))),
                    {.fetch = {"first.value"}, .inputs = {{"out.clip_vision_output", seen}}})
             .wait();
       }),
       {"clip_vision_output", "no states (pictures, tokens, width)"});
}

BOOST_AUTO_TEST_CASE(a_file_of_another_kind_is_refused_before_anything_is_loaded) {
  const auto add = [&](const char* name, const std::vector<FileTensor>& tensors) {
    write_safetensors(folder / "models/clip_vision" / name, tensors);
  };
  const auto with = [&](const char* tower) {
    return refusal(flow("one.png", "center", apply("1"), tower));
  };
  add("redux.safetensors", seeded_model("redux", false, "redux"));
  says(with("redux"), {"redux.safetensors", "a style model", "StyleModelLoader"});
  add("qwen.safetensors", seeded_model("text", false, "edit"));
  says(with("qwen"), {"qwen.safetensors", "language model", "CLIPLoader"});
  std::vector<FileTensor> wide = seeded_model("redux", false, "redux");
  for (FileTensor& tensor : wide)
    if (tensor.name == "redux_up.weight") tensor = seeded_tensor(tensor.name, {72, 80});
  Engine fresh(options());
  write_safetensors(folder / "models/style_models/flux1-redux-dev.safetensors", wide);
  says(engine_refusal([&] { fresh.plan(fresh.parse(flow("one.png", "center", apply("1")))); }),
       {"width 72", "80", "sigclip_vision_patch14_384"});
}

BOOST_AUTO_TEST_SUITE_END()
