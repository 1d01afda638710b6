// Qwen2.5-VL's vision tower, and its language model over texts with pictures in them, and
// Qwen3-VL's tower, on tiny models whose weights follow from their names, against transformers
// (make_vision_goldens.py, make_qwen21_picture_goldens.py).
#include <boost/test/unit_test.hpp>
#include <cstring>

#include "engine/base/json.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// As in random_models_test.cpp.
constexpr double kVisionTolerance = 5e-6;

std::filesystem::path vision_folder() { return tests_folder() / "plugins/goldens/vision"; }

struct VisionFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  TensorFile expected{vision_folder() / "expected.safetensors"};
  heddle::engine::Json configs =
      heddle::engine::parse_json(read_text(vision_folder() / "configs.json"), "configs.json");

  std::string config(const char* model) const {
    return heddle::engine::write_json(*configs.find(model));
  }
  static std::vector<FileTensor> tensors_of(const char* model) {
    return seeded_model(model, false, "vision");
  }
  std::filesystem::path file(const std::vector<FileTensor>& tensors) const {
    const std::filesystem::path path = temporary / "model.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  // A picture of these sides, whose numbers follow from the golden's name.
  heddle::Results see(const std::filesystem::path& model, const std::string& config,
                      const std::string& name, std::int64_t height, std::int64_t width) {
    FileTensor picture = seeded_tensor(name + ".picture", {height * width * 3});
    picture.shape = {1, height, width, 3};
    const std::filesystem::path path = temporary / "pictures.safetensors";
    write_safetensors(path, {picture});
    const std::string prefix = name + ".";
    return probe.call({model, "vision_encoder", config, path, prefix.c_str()});
  }
  std::vector<float> tokens(const std::string& name, std::int64_t height, std::int64_t width) {
    return see(file(tensors_of("vision")), config("vision"), name, height, width)
        .floats("model.outputs", "tokens.0");
  }
  void compare(const std::vector<float>& got, const std::string& golden) const {
    const double error = relative_error(got, expected.floats(golden));
    BOOST_TEST_MESSAGE(golden << ": relative error " << error);
    BOOST_TEST(error < kVisionTolerance, golden << ": relative error " << error);
  }
  heddle::Results read(const std::string& without = "") {
    return probe.call({file(tensors_of("language")), "text_encoder", config("language"),
                       vision_folder() / "expected.safetensors", "text.", without});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(vision_models, VisionFixture)

BOOST_AUTO_TEST_CASE(tokens_of_whole_and_of_cut_windows_equal_those_of_transformers) {
  compare(tokens("square", 224, 224), "square.tokens");
  compare(tokens("wide", 140, 308), "wide.tokens");
  compare(tokens("tall", 252, 56), "tall.tokens");
}

BOOST_AUTO_TEST_CASE(what_qwen3_vl_sees_at_each_depth_equals_transformers) {
  TensorFile wanted{tests_folder() / "plugins/goldens/qwen21_pictures/expected.safetensors"};
  std::vector<FileTensor> tensors = seeded_model("text", false, "qwen21_pictures");
  std::erase_if(tensors, [](const FileTensor& tensor) {
    return tensor.name.find("visual.") == std::string::npos;
  });
  const heddle::Results seen = see(file(tensors), "", "tower", 64, 32);
  for (const std::string output : {"tokens", "deep.0", "deep.1", "deep.2"}) {
    const double error = relative_error(seen.floats("model.outputs", output + ".0"),
                                        wanted.floats("tower." + output));
    BOOST_TEST_MESSAGE(output << ": relative error " << error);
    BOOST_TEST(error < kVisionTolerance, output << ": relative error " << error);
  }
}

BOOST_AUTO_TEST_CASE(layers_that_see_all_patches_see_more_than_their_window) {
  const std::string none = R"({"num_heads": 2, "fullatt_block_indexes": []})";
  const double error = relative_error(
      see(file(tensors_of("vision")), none, "wide", 140, 308).floats("model.outputs", "tokens.0"),
      expected.floats("wide.tokens"));
  BOOST_TEST(error > 1e-3);
}

BOOST_AUTO_TEST_CASE(a_language_model_sees_pictures_where_they_stand_in_the_text) {
  compare(read().floats("model.outputs", "last_hidden.0"), "text.last_hidden");
}

BOOST_AUTO_TEST_CASE(places_of_pictures_turn_with_rows_and_columns) {
  const double error = relative_error(read("positions").floats("model.outputs", "last_hidden.0"),
                                      expected.floats("text.last_hidden"));
  BOOST_TEST(error > 1e-3);
}

BOOST_AUTO_TEST_CASE(settings_say_how_large_a_token_is) {
  const heddle::engine::Json settings = heddle::engine::parse_json(
      see(file(tensors_of("vision")), config("vision"), "tall", 252, 56).text("model.settings"),
      "settings");
  BOOST_TEST(heddle::engine::write_json(*settings.find("unit")) == "28");
  BOOST_TEST(heddle::engine::write_json(*settings.find("width")) == "32");
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const auto refusal = [&](const std::vector<FileTensor>& tensors, const std::string& config,
                           std::int64_t height = 252) {
    return engine_refusal([&] { see(file(tensors), config, "tall", height, 56); });
  };
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  const std::vector<FileTensor> all = tensors_of("vision");
  std::vector<FileTensor> lacking = all;
  std::erase_if(lacking, [](const FileTensor& tensor) {
    return tensor.name == "visual.blocks.2.mlp.up_proj.bias";
  });
  says(refusal(lacking, config("vision")),
       {"model.safetensors", "'visual.blocks.2.mlp.up_proj.bias'", "layer.2", "missing"});
  says(refusal(all, R"({"num_heads": 3})"), {"width 32", "3 heads", "config.json"});
  says(refusal(all, R"({"num_heads": 2, "window_size": 20})"), {"windows of 20"});
  says(refusal(all, config("vision"), 250), {"multiples of 28"});
}

BOOST_AUTO_TEST_SUITE_END()
