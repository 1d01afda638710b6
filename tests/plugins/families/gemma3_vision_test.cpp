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

  static std::vector<FileTensor> file(const std::string& model) {
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
  double error(const std::vector<FileTensor>& tensors, const std::string& name, std::int64_t side,
               const std::string& config = "") {
    return relative_error(see(tensors, name, side, config).floats("model.outputs", "tokens.0"),
                          expected.floats(name + ".tokens"));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(gemma3_vision, Gemma3VisionFixture)

BOOST_AUTO_TEST_CASE(tokens_equal_those_of_transformers) {
  for (const auto& [name, side] : {std::pair{"seeing", 112}, {"larger", 168}}) {
    const double found = error(file(name), name, side);
    BOOST_TEST_MESSAGE(name << ": relative error " << found);
    BOOST_TEST(found < kGemma3Seen, name << ": relative error " << found);
  }
}

BOOST_AUTO_TEST_CASE(transformers_names_are_known_too) {
  std::vector<FileTensor> tensors = file("larger");
  for (FileTensor& tensor : tensors)
    tensor.name = "model." +
                  std::string(tensor.name.starts_with("vision_model.") ? "vision_tower." : "") +
                  tensor.name;
  BOOST_TEST(error(tensors, "larger", 168) < kGemma3Seen);
}

BOOST_AUTO_TEST_CASE(nothing_of_a_file_is_without_effect) {
  for (const char* part :
       {"embeddings.position_embedding.weight", "1.self_attn.out_proj.bias",
        "post_layernorm.weight", "mm_soft_emb_norm.weight", "mm_input_projection_weight"}) {
    std::vector<FileTensor> tensors = file("larger");
    for (FileTensor& tensor : tensors)
      if (tensor.name.ends_with(part))
        for (std::size_t i = 0; i < tensor.bytes.size() / 8; ++i)
          std::swap_ranges(&tensor.bytes[4 * i], &tensor.bytes[4 * i] + 4,
                           &tensor.bytes[tensor.bytes.size() - 4 * (i + 1)]);
    BOOST_TEST(error(tensors, "larger", 168) > 1e-3, part);
  }
}

BOOST_AUTO_TEST_CASE(settings_say_which_picture_it_sees_and_how_many_tokens_there_are) {
  const heddle::Results seen = see(file("larger"), "larger", 168);
  const heddle::engine::Json settings =
      heddle::engine::parse_json(seen.text("model.settings"), "settings");
  for (const auto& [key, value] : {std::pair{"side", "168"}, {"unit", "56"}, {"width", "24"}})
    BOOST_TEST(heddle::engine::write_json(*settings.find(key)) == value, key);
  BOOST_TEST(seen.shape("model.outputs", "tokens.0") == (std::vector<std::int64_t>{1, 9, 24}),
             boost::test_tools::per_element());
  // As the config says it: squares of 6 x 6 patches.
  BOOST_TEST(see(file("larger"), "larger", 168, R"({"mm_tokens_per_image": 4})")
                 .shape("model.outputs", "tokens.0")[1] == 4);
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const auto says = [&](auto&& change, const char* word, const std::string& config = "") {
    std::vector<FileTensor> tensors = file("larger");
    change(tensors);
    const std::string text = engine_refusal([&] { see(tensors, "larger", 168, config); });
    BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  const auto without = [](const char* part) {
    return [part](std::vector<FileTensor>& tensors) {
      std::erase_if(tensors, [&](const FileTensor& t) { return t.name.find(part) != t.name.npos; });
    };
  };
  says(without("mm_soft_emb_norm"), "mm_soft_emb_norm.weight");
  says(without("layers.1.mlp.fc1.weight"), "layers.1.mlp.fc1.weight");
  says([](std::vector<FileTensor>&) {}, "cannot make 5 tokens", R"({"mm_tokens_per_image": 5})");
  says(
      [](std::vector<FileTensor>& tensors) {
        for (FileTensor& tensor : tensors)
          if (tensor.name.ends_with("mm_input_projection_weight"))
            tensor.shape = {71, 24}, tensor.bytes.resize(4 * 71 * 24);
      },
      "mm_input_projection_weight");
}

BOOST_AUTO_TEST_SUITE_END()
