// Workflows of Qwen-Image Edit and Edit-Plus from the pictures to the picture, with ComfyUI's nodes
// and the file names of its examples, over models whose weights follow from their names, against
// PyTorch (../goldens/make_edit_goldens.py).
#include <cmath>

#include "tests/plugins/nodes/edit_fixture.h"
#include "tests/plugins/nodes/infer_check.h"

using heddle::Engine;
using heddle::Results;
using heddle::engine::cat;
using namespace heddle::test;

namespace {

// As that of NodeFixture.
constexpr double kEditTolerance = 1e-4;

struct EditGoldens : EditFixture {
  TensorFile expected{edit_folder() / "expected.safetensors"};

  void compare(const std::vector<float>& got, const std::string& golden) const {
    const double error = relative_error(got, expected.floats(golden));
    BOOST_TEST_MESSAGE(golden << ": relative error " << error);
    BOOST_TEST(error < kEditTolerance, golden << ": relative error " << error);
  }
  // Every 16th of the texts' states (1, T, W).
  void compare_states(const Results& results, const std::string& golden) const {
    const std::vector<float> all = results.floats("edit_first.value", "cross_attn");
    const std::vector<std::int64_t> shape = results.shape("edit_first.value", "cross_attn");
    std::vector<float> some;
    for (std::int64_t row = 0; row < shape[1]; row += 16)
      some.insert(some.end(), all.begin() + row * shape[2], all.begin() + (row + 1) * shape[2]);
    compare(some, golden);
  }
  // Every 16th row and column of the latent that is shown at a place of the list.
  void compare_shown(const Results& results, int place, const std::string& golden) const {
    const std::string path = cat("reference_latents.", place, ".samples");
    const std::vector<float> all = results.floats("edit_first.value", path);
    const std::vector<std::int64_t> shape = results.shape("edit_first.value", path);
    std::vector<float> some;
    for (std::int64_t channel = 0; channel < shape[1]; ++channel)
      for (std::int64_t row = 0; row < shape[2]; row += 16)
        for (std::int64_t column = 0; column < shape[3]; column += 16)
          some.push_back(all[std::size_t((channel * shape[2] + row) * shape[3] + column)]);
    compare(some, golden);
  }
  double psnr(const std::vector<float>& got, const std::string& golden) const {
    const std::vector<float> wanted = expected.floats(golden);
    BOOST_TEST_REQUIRE(got.size() == wanted.size());
    double sum = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      sum += double(got[i] - wanted[i]) * double(got[i] - wanted[i]);
    return -10 * std::log10(sum / double(got.size()));
  }
};

void says(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words)
    BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(edit_workflows, EditGoldens)

BOOST_AUTO_TEST_CASE(a_picture_is_changed_as_pytorch_changes_it, *boost::unit_test::label("long")) {
  add_models("qwen_image_edit_fp8_e4m3fn");
  const Results results =
      run(flow(edit("edit", kEditPrompt) + edit("without", " ") + look("edit", "edit") +
               drawn("qwen_image_edit_fp8_e4m3fn",
                     R"("cfg": 2.5, "positive": ["edit", 0], "negative": ["without", 0])")),
          {"edit_first.value", "drawn.LATENT", "picture.IMAGE"});
  BOOST_TEST(warnings.empty());
  compare_states(results, "edit.cross_attn");
  compare_shown(results, 0, "edit.shown");
  compare(results.floats("drawn.LATENT", "samples"), "edit.latent");
  const double decibels = psnr(results.floats("picture.IMAGE"), "edit.picture");
  BOOST_TEST_MESSAGE(decibels << " dB");
  BOOST_TEST(decibels >= 70, decibels << " dB");
}

BOOST_AUTO_TEST_CASE(two_pictures_are_read_and_shown_each_at_its_place,
                     *boost::unit_test::label("long")) {
  const std::string name = "qwen_image_edit_2509_fp8_e4m3fn";
  add_models(name);
  const auto latent = [&](const std::string& method) {
    const std::string more = R"("cfg": 1.0, "positive": ["timed", 0], "negative": ["edit", 0])";
    return run(flow(plus("edit") + look("edit", "edit") +
                    node("timed", "FluxKontextMultiReferenceLatentMethod",
                         cat(R"("conditioning": ["edit", 0], "reference_latents_method": ")",
                             method, "\"")) +
                    drawn(name, more)),
               {"edit_first.value", "drawn.LATENT"});
  };
  const Results results = latent("index");
  compare_states(results, "plus.cross_attn");
  compare_shown(results, 1, "plus.shown");
  compare(results.floats("drawn.LATENT", "samples"), "plus.latent");
  compare(latent("index_timestep_zero").floats("drawn.LATENT", "samples"), "timed.latent");
}

BOOST_AUTO_TEST_CASE(without_a_picture_the_text_is_that_of_a_drawing,
                     *boost::unit_test::label("long")) {
  add_models("any");
  using Shape = std::vector<std::int64_t>;
  // Of the template behind the text five tokens are kept.
  BOOST_TEST(states_shape(edit("edit", "fox", "")) == (Shape{1, 6, 24}));
  BOOST_TEST(states_shape(plus("edit", "")) == (Shape{1, 23, 24}));
}

BOOST_AUTO_TEST_CASE(a_text_of_its_own_chat_shows_a_picture_where_it_says,
                     *boost::unit_test::label("long")) {
  add_models("any");
  const std::string turn = "<|im_start|>user\\n", image = R"(, "image": ["one", 0])";
  using Shape = std::vector<std::int64_t>;
  // 1024 x 1024 pixels of 50 x 36 are 1207 x 869, in tokens 43 x 31.
  BOOST_TEST(states_shape(edit("edit", turn + "see <|image_pad|> and <|image_pad|>", image)) ==
             (Shape{1, 43 * 31 + 5, 24}));
  BOOST_TEST(states_shape(edit("edit", turn + "see nothing", image)) == (Shape{1, 2, 24}));
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run, *boost::unit_test::label("long")) {
  add_models("any");
  Engine::Data engine(options());
  check_inference(
      engine,
      flow(plus("edit") +
           drawn("any", R"("cfg": 2.0, "positive": ["edit", 0], "negative": ["edit", 0])")));
}

BOOST_AUTO_TEST_CASE(what_cannot_see_a_picture_is_refused_before_anything_is_loaded) {
  const auto refusal = [&](const std::string& nodes, const std::string& type = "qwen_image") {
    Engine engine(options());
    return engine_refusal(
        [&] { engine.plan(engine.parse(flow(nodes + look("edit", "edit"), type))); });
  };
  std::erase_if(text, [](const FileTensor& tensor) { return tensor.name.starts_with("visual."); });
  add_models("any");
  says(refusal(edit("edit", "a fox")),
       {"qwen_2.5_vl_7b_fp8_scaled.safetensors", "no vision tower", "visual.*", "Load a file"});
  BOOST_TEST(refusal(edit("edit", "a fox", "")) == "");
  add(cat("text_encoders/", kTextEncoder), seeded_model("z_image.text"));
  says(refusal(plus("edit"), "lumina2"), {"no vision tower", "picture"});
  text = seeded_model("text", false, "edit");
  std::erase_if(text, [](const FileTensor& t) { return t.name == "visual.merger.mlp.0.bias"; });
  add(cat("text_encoders/", kTextEncoder), text);
  says(refusal(edit("edit", "a fox")), {"'visual.merger.mlp.0.bias'", "missing"});
}

BOOST_AUTO_TEST_SUITE_END()
