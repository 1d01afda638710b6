// PhotoMaker: a person of a picture in a text, against PyTorch
// (../goldens/make_photo_maker_goldens.py).
#include "engine/base/text.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/unet_fixture.h"
#include "tests/support/pytorch_writer.h"

namespace heddle::test {
namespace {

using engine::cat;

struct PhotoMakerWorkflow : UnetWorkflow {
  heddle::Engine shown{photo_options()};  // finds the picture

  PhotoMakerWorkflow() {
    expected = TensorFile(tests_folder() / "plugins/goldens/photo_maker/expected.safetensors");
    write("sdxl");
    write_file("photomaker/person", photo_maker());
  }
  heddle::EngineOptions photo_options() const {
    heddle::EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs.push_back(folder / "models");
    options.input_dir = tests_folder() / "plugins/goldens/edit";
    options.output_dir = folder / "out";
    return options;
  }
  static std::vector<FileTensor> photo_maker() {
    return seeded_model("photomaker", false, "photo_maker");
  }
  static std::string person(const std::string& words, const char* file = "person.safetensors") {
    return loader() + node("load", "LoadImage", R"("image": "one.png")") +
           node("maker", "PhotoMakerLoader", cat(R"("photomaker_model_name": ")", file, "\"")) +
           node("named", "PhotoMakerEncode",
                cat(R"("photomaker": ["maker", 0], "image": ["load", 0], "clip": ["model", 1],
                       "text": ")",
                    words, "\"")) +
           text("plain", "a photo of a cat", R"(["model", 1])") +
           node("first", "test.first", R"("list": ["named", 0])") +
           node("second", "test.first", R"("list": ["plain", 0])") +
           node("look", "test.look", R"("value": ["first", 0])") +
           R"("look_b": {"class_type": "test.look", "inputs": {"value": ["second", 0]}})";
  }
  heddle::Results encode(const std::string& nodes) {
    return shown.start(shown.parse("{" + nodes + "}"), {{}, {"first.value", "second.value"}})
        .wait();
  }
  // All rows but this one are those of the text without the word.
  void check_person(const heddle::Results& results, std::int64_t row) {
    constexpr std::ptrdiff_t kWidth = 128;
    std::vector<float> named = results.floats("first.value", "cross_attn"),
                       plain = results.floats("second.value", "cross_attn");
    BOOST_TEST_REQUIRE(named.size() == std::size_t(77 * kWidth));
    const auto at = row * kWidth;
    same({plain.begin() + at, plain.begin() + at + kWidth}, cat("states.", row));
    same({named.begin() + at, named.begin() + at + kWidth}, cat("fused.", row));
    for (std::vector<float>* all : {&named, &plain})
      std::fill(all->begin() + at, all->begin() + at + kWidth, 0.0f);
    BOOST_TEST((named == plain));
    BOOST_TEST((results.floats("first.value", "pooled_output") ==
                results.floats("second.value", "pooled_output")));
  }
  std::string photo_refusal(const std::string& nodes) {
    return engine_refusal([&] { encode(nodes); });
  }
};

void photo_tells(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words)
    BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(photo_maker, PhotoMakerWorkflow)

BOOST_AUTO_TEST_CASE(a_person_stands_in_the_row_of_the_word_before) {
  const std::string flow = person("a photo of a cat photomaker");
  check_person(encode(flow), 5);
  heddle::Engine::Data other(photo_options());
  check_inference(other, "{" + flow + "}");
}

// The larger encoder wants 16 MB, or 15.5 when it is streamed.
BOOST_AUTO_TEST_CASE(a_person_has_the_same_bytes_wherever_it_is_encoded,
                     *boost::unit_test::label("long")) {
  same_where_placed(photo_options(), "{" + person("a photo of a cat photomaker") + "}",
                    "PhotoMakerEncode", 15 << 20, {{"first.value", "cross_attn"}});
}

// As published: a pickle, in which the model is one of several.
BOOST_AUTO_TEST_CASE(the_word_may_stand_among_others_and_the_file_may_be_pytorchs,
                     *boost::unit_test::label("long")) {
  write_pytorch(folder / "models/photomaker/photomaker-v1.bin", photo_maker(), "id_encoder");
  for (const char* file : {"person.safetensors", "photomaker-v1.bin"})
    check_person(encode(person("a photo photomaker of a cat", file)), 2);
}

BOOST_AUTO_TEST_CASE(a_text_without_the_word_stays_as_it_is) {
  for (const char* words : {"a photo of a cat", "a  photo of a cat"}) {
    const heddle::Results results = encode(person(words));
    BOOST_TEST((results.floats("first.value", "cross_attn") ==
                results.floats("second.value", "cross_attn")));
  }
}

BOOST_AUTO_TEST_CASE(what_it_does_not_take_is_refused_by_name) {
  std::vector<FileTensor> second = photo_maker();
  second.push_back(seeded_tensor("qformer_perceiver.token_proj.0.weight", {4, 4}));
  write_file("photomaker/second", second);
  photo_tells(photo_refusal(person("a cat photomaker", "second.safetensors")),
              {"second.safetensors", "version 2", "photomaker-v1.bin"});
  write_file("photomaker/tower", seeded_model("tower", false, "unclip"));
  photo_tells(photo_refusal(person("a cat photomaker", "tower.safetensors")),
              {"tower.safetensors", "a vision tower alone", "not PhotoMaker"});
  std::vector<FileTensor> damaged = photo_maker();
  std::erase_if(damaged, [](const FileTensor& tensor) {
    return tensor.name == "fuse_module.mlp2.fc2.weight";
  });
  write_file("photomaker/damaged", damaged);
  photo_tells(photo_refusal(person("a cat photomaker", "damaged.safetensors")),
              {"damaged.safetensors", "fuse_module.mlp2.fc2.weight"});
  std::string many = "a cat photomaker";
  for (int i = 0; i < 80; ++i) many += " cat";
  photo_tells(photo_refusal(person(many)), {"text", "154 tokens", "77"});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
