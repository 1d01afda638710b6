// What Gemma 4 sees pictures with, on tiny models whose weights follow from their names, against
// transformers (make_gemma4_picture_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/gemma4_pictures.h"
#include "tests/support/model_probe.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// As in vision_model_test.cpp.
constexpr double kGemma4Seen = 5e-6;
// Of a language model whose layers multiply what they make by numbers near 0: transformers itself
// is 1.7e-5 off in f32 what it makes in f64.
constexpr double kGemma4Groups = 1e-4;

struct Gemma4VisionFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  TensorFile expected{tests_folder() / "plugins/goldens/gemma4_pictures/expected.safetensors"};

  heddle::Results see(const std::vector<FileTensor>& tensors, const std::string& name,
                      std::int64_t height, std::int64_t width, const std::string& config = "") {
    FileTensor picture = seeded_tensor(name + ".picture", {height * width * 3});
    picture.shape = {1, height, width, 3};
    write_safetensors(temporary / "model.safetensors", tensors);
    write_safetensors(temporary / "pictures.safetensors", {picture});
    const std::string prefix = name + ".";
    return probe.call({temporary / "model.safetensors", "vision_encoder", config,
                       temporary / "pictures.safetensors", prefix.c_str()});
  }
  double error(const std::vector<FileTensor>& tensors, const std::string& name, std::int64_t height,
               std::int64_t width) {
    return relative_error(see(tensors, name, height, width).floats("model.outputs", "tokens.0"),
                          expected.floats(name + ".tokens"));
  }
  void compare(const std::string& model, const std::string& name, std::int64_t height,
               std::int64_t width) {
    const double found = error(gemma4_seeing(model), name, height, width);
    BOOST_TEST_MESSAGE(name << ": relative error " << found);
    BOOST_TEST(found < kGemma4Seen, name << ": relative error " << found);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(gemma4_vision, Gemma4VisionFixture)

BOOST_AUTO_TEST_CASE(tokens_equal_those_of_transformers) {
  compare("told", "told.wide", 96, 240);
  compare("told", "told.tall", 144, 48);
  compare("plain", "plain.tall", 192, 48);
  compare("dense", "dense.wide", 96, 240);
  compare("dense", "dense.tall", 144, 48);
}

BOOST_AUTO_TEST_CASE(nothing_of_a_file_is_without_effect) {
  for (const char* part :
       {"o_proj.input_max", "gate_proj.output_min", "q_norm.weight", "position_embedding_table"}) {
    std::vector<FileTensor> tensors = gemma4_seeing("told");
    for (FileTensor& tensor : tensors)
      if (tensor.name.ends_with(part))
        tensor.bytes = bytes_of_floats(std::vector<float>(tensor.bytes.size() / 4, 0.1f));
    BOOST_TEST(error(tensors, "told.wide", 96, 240) > 1e-3, part);
  }
}

BOOST_AUTO_TEST_CASE(transformers_names_are_known_too) {
  const auto renamed = [&](const std::string& model, const std::string& tower) {
    std::vector<FileTensor> tensors = gemma4_seeing(model);
    for (FileTensor& tensor : tensors)
      for (const auto& [from, to] : {std::pair<std::string, std::string>{"vision_model.", tower},
                                     {"multi_modal_projector.", "model.embed_vision."}})
        if (tensor.name.starts_with(from)) tensor.name.replace(0, from.size(), to);
    return tensors;
  };
  BOOST_TEST(error(renamed("told", "model.vision_tower."), "told.tall", 144, 48) < kGemma4Seen);
  BOOST_TEST(error(renamed("dense", "model.vision_embedder."), "dense.tall", 144, 48) <
             kGemma4Seen);
}

// In windows that are shorter than it is.
BOOST_AUTO_TEST_CASE(tokens_of_a_picture_see_each_other) {
  write_safetensors(temporary / "model.safetensors", gemma4_seeing("dense"));
  const auto states = [&](const char* config, const char* without) {
    return relative_error(
        probe
            .call({temporary / "model.safetensors", "text_encoder", config,
                   tests_folder() / "plugins/goldens/gemma4_pictures/expected.safetensors",
                   "groups.", without})
            .floats("model.outputs", "last_hidden.0"),
        expected.floats("groups.states"));
  };
  const double found = states(R"({"sliding_window": 8})", "");
  BOOST_TEST_MESSAGE("relative error " << found);
  BOOST_TEST(found < kGemma4Groups);
  BOOST_TEST(states(R"({"sliding_window": 8})", "groups") > 1e-3);
  BOOST_TEST(states(R"({"sliding_window": 1024})", "") > 1e-3);
}

BOOST_AUTO_TEST_CASE(settings_say_how_large_a_token_is_and_how_many_there_may_be) {
  for (const char* model : {"told", "dense"}) {
    const heddle::engine::Json settings = heddle::engine::parse_json(
        see(gemma4_seeing(model), std::string(model) + ".tall", 144, 48).text("model.settings"),
        "settings");
    for (const auto& [key, value] :
         {std::pair{"unit", "48"}, {"picture_tokens", "280"}, {"frame_tokens", "70"}})
      BOOST_TEST(heddle::engine::write_json(*settings.find(key)) == value, model << " " << key);
  }
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const auto says = [&](const std::string& model, auto&& change,
                        std::initializer_list<const char*> words, std::int64_t height = 144) {
    std::vector<FileTensor> tensors = gemma4_seeing(model);
    change(tensors);
    const std::string text = engine_refusal([&] { see(tensors, model + ".tall", height, 48); });
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  const auto without = [](const char* part) {
    return [part](std::vector<FileTensor>& tensors) {
      std::erase_if(tensors, [&](const FileTensor& t) { return t.name.find(part) != t.name.npos; });
    };
  };
  const auto nothing = [](std::vector<FileTensor>&) {};
  says("told", without("layers.1.mlp.up_proj"), {"layers.1.mlp.up_proj.linear.weight"});
  says("told", without("layers.0.self_attn.k_proj.input_min"), {"k_proj.input_min"});
  says("dense", without("pos_norm.bias"), {"pos_norm.bias"});
  says("told", nothing, {"multiples of 48"}, 160);
  says("dense", nothing, {"multiples of 48"}, 160);
  says("told",
       [](std::vector<FileTensor>& tensors) {
         for (FileTensor& tensor : tensors)
           if (tensor.name == "vision_model.patch_embedder.input_proj.weight")
             tensor.shape = {24, 767}, tensor.bytes.resize(4 * 24 * 767);
       },
       {"patch_embedder.input_proj.weight", "767"});
  // A table of eight places is shorter than the picture.
  says("told",
       [](std::vector<FileTensor>& tensors) {
         for (FileTensor& tensor : tensors)
           if (tensor.name.ends_with("position_embedding_table"))
             tensor.shape = {2, 8, 24}, tensor.bytes.resize(4 * 2 * 8 * 24);
       },
       {"8 places"});
}

BOOST_AUTO_TEST_SUITE_END()
