// Data sets of pictures and texts: what nodes make that ask for encoders, against the encoders
// asked one by one.
#include "engine/base/text.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::engine::cat;
using namespace heddle::test;

namespace {

namespace fs = std::filesystem;

struct TrainingSets {
  NodeFixture nodes;  // its folder of models
  heddle::Engine engine{options()};

  heddle::EngineOptions options() const {
    heddle::EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs.push_back(nodes.folder / "models");
    options.input_dir = nodes.folder / "in";
    options.output_dir = nodes.folder / "out";
    for (const char* name : {"set/b.png", "set/2_cats/a.png"}) {
      fs::create_directories((nodes.folder / "in" / name).parent_path());
      fs::copy_file(tests_folder() / "plugins/image/data/colour2_depth8.png",
                    nodes.folder / "in" / name);
    }
    nodes.folder.write("in/set/2_cats/a.txt", " a cat\n");
    return options;
  }

  heddle::Results run(const std::string& text, std::vector<std::string> keep) {
    const std::string loader =
        R"({"models": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}}, )";
    return engine.start(engine.parse(loader + text + "}"), {{}, std::move(keep)}).wait();
  }
  static std::string look(const std::string& of, int output) {
    return cat(", \"look", of, output, R"(": {"class_type": "test.look", "inputs": {"value": [")",
               of, "\", ", output, "]}}");
  }
  // Two pictures, and the latents and conditionings of them, of "a cat" and of "".
  static std::string encoded() {
    std::string text;
    for (const char* colour : {"255", "65280"})
      text += cat(
          "\"p", colour,
          R"(": {"class_type": "EmptyImage", "inputs": {"width": 32, "height": 16, "batch_size": 1, "color": )",
          colour, "}}, \"e", colour, R"(": {"class_type": "VAEEncode", "inputs": {"pixels": ["p)",
          colour, R"(", 0], "vae": ["models", 2]}}, )");
    return text +
           R"("cat": {"class_type": "CLIPTextEncode", "inputs": {"text": "a cat", "clip": ["models", 1]}},
              "none": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": ["models", 1]}},
              "pictures": {"class_type": "CreateList", "inputs": {"inputs.input0": ["p255", 0], "inputs.input1": ["p65280", 0]}},
              "words": {"class_type": "CreateList", "inputs": {"inputs.input0": "a cat", "inputs.input1": ""}},
              "three": {"class_type": "CreateList", "inputs": {"inputs.input0": "a", "inputs.input1": "b", "inputs.input2": "c"}})" +
           look("e255", 0) + look("e65280", 0) + look("cat", 0) + look("none", 0);
  }
  static std::string dataset(const std::string& texts) {
    return cat(
        R"(, "set": {"class_type": "MakeTrainingDataset", "inputs": {"images": ["pictures", 0],
                  "vae": ["models", 2], "clip": ["models", 1])",
        texts, "}}", look("set", 0), look("set", 1));
  }
  static constexpr const char* kLatents = "set.latents";
  static constexpr const char* kTexts = "set.conditioning";
  heddle::Results made(const std::string& texts) {
    return run(encoded() + dataset(texts), {kLatents, kTexts, "e255.LATENT", "e65280.LATENT",
                                            "cat.CONDITIONING", "none.CONDITIONING"});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(training_sets, TrainingSets)

BOOST_AUTO_TEST_CASE(each_picture_and_each_text_is_encoded) {
  const heddle::Results pairs = made(R"(, "texts": ["words", 0])");
  BOOST_TEST(pairs.floats(kLatents, "0.samples") == pairs.floats("e255.LATENT", "samples"));
  BOOST_TEST(pairs.floats(kLatents, "1.samples") == pairs.floats("e65280.LATENT", "samples"));
  BOOST_TEST(pairs.floats(kTexts, "0.0.cross_attn") ==
             pairs.floats("cat.CONDITIONING", "0.cross_attn"));
  BOOST_TEST(pairs.floats(kTexts, "1.0.pooled_output") ==
             pairs.floats("none.CONDITIONING", "0.pooled_output"));
  BOOST_TEST(pairs.floats(kTexts, "0.0.cross_attn") != pairs.floats(kTexts, "1.0.cross_attn"));
}

BOOST_AUTO_TEST_CASE(one_text_or_none_is_for_all_pictures) {
  const heddle::Results one = made(R"(, "texts": "a cat")"), none = made("");
  for (const char* field : {"0.0.cross_attn", "1.0.cross_attn"}) {
    BOOST_TEST(one.floats(kTexts, field) == one.floats("cat.CONDITIONING", "0.cross_attn"));
    BOOST_TEST(none.floats(kTexts, field) == none.floats("none.CONDITIONING", "0.cross_attn"));
  }
  const std::string text = engine_refusal([&] { made(R"(, "texts": ["three", 0])"); });
  BOOST_TEST(text.find("there are 3 for 2 pictures") != text.npos, text);
}

BOOST_AUTO_TEST_CASE(a_folder_is_a_batch_with_an_entry_for_each_picture) {
  const auto folder = [&](const std::string& more) {
    return run(cat(R"("set": {"class_type": "LoadImageTextSetFromFolderNode", "inputs":
                      {"folder": "set", "clip": ["models", 1])",
                   more, R"(}},
                   "single": {"class_type": "LoadImageTextDataSetFromFolder", "inputs": {"folder": "set"}},
                   "crop": {"class_type": "ImageCrop", "inputs": {"image": ["single", 0], "width": 3, "height": 2, "x": 0, "y": 0}},
                   "cat": {"class_type": "CLIPTextEncode", "inputs": {"text": "a cat", "clip": ["models", 1]}},
                   "none": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": ["models", 1]}})",
                   look("set", 0), look("set", 1), look("single", 0), look("crop", 0),
                   look("cat", 0), look("none", 0)),
               {"set.IMAGE", "set.CONDITIONING", "single.images", "crop.IMAGE", "cat.CONDITIONING",
                "none.CONDITIONING"});
  };
  const heddle::Results whole = folder("");
  const std::vector<std::int64_t> shape = whole.shape("single.images", "0");
  BOOST_TEST(
      (whole.shape("set.IMAGE") == std::vector<std::int64_t>{3, shape[1], shape[2], shape[3]}));
  std::vector<float> all;
  for (const char* index : {"0", "1", "2"}) {
    const std::vector<float> one = whole.floats("single.images", index);
    all.insert(all.end(), one.begin(), one.end());
  }
  BOOST_TEST(whole.floats("set.IMAGE") == all);
  // The folder of cats stands in front, and counts twice.
  const char* const texts[] = {"cat.CONDITIONING", "cat.CONDITIONING", "none.CONDITIONING"};
  for (std::size_t i = 0; i < 3; ++i)
    BOOST_TEST(whole.floats("set.CONDITIONING", cat(i, ".cross_attn")) ==
               whole.floats(texts[i], "0.cross_attn"));
  const heddle::Results cut = folder(R"(, "resize_method": "Crop", "width": 3, "height": 2)");
  BOOST_TEST((cut.shape("set.IMAGE") == std::vector<std::int64_t>{3, 2, 3, 3}));
  const std::vector<float> batch = cut.floats("set.IMAGE");
  BOOST_TEST(std::vector<float>(batch.begin(), batch.begin() + 18) ==
             cut.floats("crop.IMAGE", "0"));
  const std::string text = engine_refusal([&] { folder(R"(, "width": 3)"); });
  BOOST_TEST(text.find("another size than was asked for") != text.npos, text);
}

BOOST_AUTO_TEST_SUITE_END()
