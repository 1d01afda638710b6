// What Gemma 3 sees pictures with, on tiny models whose weights follow from their names, against
// transformers (make_gemma3_picture_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// As in vision_model_test.cpp.
constexpr double kGemma3Seen = 5e-6;

struct Gemma3VisionFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  TensorFile expected{tests_folder() / "plugins/goldens/gemma3_pictures/expected.safetensors"};

  static std::vector<FileTensor> tensors_of(const std::string& model) {
    return seeded_model(model, false, "gemma3_pictures");
  }
  heddle::Results see(const std::vector<FileTensor>& tensors, const std::string& name,
                      std::int64_t side, const std::string& config = "") {
    FileTensor picture = seeded_tensor(name + ".picture", {side * side * 3});
    picture.shape = {1, side, side, 3};
    write_safetensors(temporary / "model.safetensors", tensors);
    write_safetensors(temporary / "pictures.safetensors", {picture});
    const std::string prefix = name + ".";
    return probe.call({temporary / "model.safetensors", "vision_encoder", config,
                       temporary / "pictures.safetensors", prefix.c_str()});
  }
  double error(const std::vector<FileTensor>& tensors, const std::string& name, std::int64_t side) {
    const double found =
        relative_error(see(tensors, name, side).floats("model.outputs", "tokens.0"),
                       expected.floats(name + ".tokens"));
    BOOST_TEST_MESSAGE(name << ": relative error " << found);
    return found;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(gemma3_vision, Gemma3VisionFixture)

BOOST_AUTO_TEST_CASE(tokens_equal_those_of_transformers) {
  BOOST_TEST(error(tensors_of("seeing"), "seeing", 112) < kGemma3Seen);
  BOOST_TEST(error(tensors_of("larger"), "larger", 168) < kGemma3Seen);
}

BOOST_AUTO_TEST_CASE(nothing_of_a_file_is_without_effect) {
  for (const char* part : {"mm_soft_emb_norm.weight", "mm_input_projection_weight",
                           "position_embedding.weight", "post_layernorm.bias"}) {
    std::vector<FileTensor> tensors = tensors_of("larger");
    for (FileTensor& tensor : tensors)
      if (tensor.name.ends_with(part)) {
        std::vector<float> numbers(tensor.bytes.size() / 4);
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i % 2 == 0 ? 0.5f : -0.25f;
        tensor.bytes = bytes_of_floats(numbers);
      }
    BOOST_TEST(error(tensors, "larger", 168) > 1e-3, part);
  }
}

BOOST_AUTO_TEST_CASE(transformers_names_are_known_too) {
  for (const char* before : {"", "model."}) {
    std::vector<FileTensor> tensors = tensors_of("larger");
    for (FileTensor& tensor : tensors) {
      const bool is_of_tower = tensor.name.starts_with("vision_model.");
      tensor.name = before + std::string(is_of_tower ? "vision_tower." : "") + tensor.name;
    }
    BOOST_TEST(error(tensors, "larger", 168) < kGemma3Seen);
  }
}

BOOST_AUTO_TEST_CASE(settings_say_how_large_the_square_and_a_token_are) {
  const auto settings = [&](const std::string& config) {
    return heddle::engine::parse_json(
        see(tensors_of("larger"), "larger", 168, config).text("model.settings"), "settings");
  };
  const auto is = [](const heddle::engine::Json& all, const char* key, const char* value) {
    BOOST_TEST(heddle::engine::write_json(*all.find(key)) == value, key);
  };
  const heddle::engine::Json plain = settings("");
  is(plain, "side", "168");
  is(plain, "unit", "56");
  is(plain, "width", "24");
  is(settings(R"({"mm_tokens_per_image": 16})"), "unit", "42");
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const auto says = [&](auto&& change, std::initializer_list<const char*> words,
                        const std::string& config = "", std::int64_t side = 168) {
    std::vector<FileTensor> tensors = tensors_of("larger");
    change(tensors);
    const std::string text = engine_refusal([&] { see(tensors, "larger", side, config); });
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  const auto without = [](const char* part) {
    return [part](std::vector<FileTensor>& tensors) {
      std::erase_if(tensors, [&](const FileTensor& t) { return t.name.find(part) != t.name.npos; });
    };
  };
  const auto nothing = [](std::vector<FileTensor>&) {};
  says(without("mm_soft_emb_norm"), {"mm_soft_emb_norm.weight"});
  says(without("layers.1.mlp.fc2.bias"), {"layers.1.mlp.fc2.bias"});
  says(nothing, {"mm_tokens_per_image", "12 x 12", "25"}, R"({"mm_tokens_per_image": 25})");
  says(nothing, {"144", "64"}, "", 112);
  says(
      [](std::vector<FileTensor>& tensors) {
        for (FileTensor& tensor : tensors)
          if (tensor.name.ends_with("mm_input_projection_weight"))
            tensor.shape = {71, 24}, tensor.bytes.resize(4 * 71 * 24);
      },
      {"mm_input_projection_weight", "71"});
}

BOOST_AUTO_TEST_SUITE_END()
