// Nodes of data sets of videos, and LTXVPreprocess against PyAV (make_compression_goldens.py).
#include "engine/base/json.h"
#include "tests/plugins/video/video_fixture.h"
#include "tests/support/lent_tensor.h"

namespace heddle::video {
namespace {

using namespace heddle::video::testing;

// What PreviewAny shows of an output of the node "x".
std::string shown_by(VideoFixture& fixture, const std::string& nodes, int output) {
  const Results results =
      fixture.run(nodes + R"(, "look": {"class_type": "PreviewAny", "inputs": {"source": ["x", )" +
                  std::to_string(output) + "]}}");
  return engine::write_json(engine::parse_json(results.ui(), "ui").at("look").at("text"));
}

// Where a text is in another one; texts that have to be there in an order.
bool are_in_order(const std::string& text, std::initializer_list<const char*> parts) {
  std::size_t at = 0;
  for (const char* part : parts) {
    at = text.find(part, at);
    if (at == text.npos) return false;
    at += 1;
  }
  return true;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(video_data_sets, VideoFixture)

BOOST_AUTO_TEST_CASE(all_videos_of_a_folder_are_listed) {
  for (const char* name : {"set/b.mp4", "set/a.MKV", "set/c.txt", "set/2_more/d.webm"}) {
    fs::create_directories((folder / "in" / name).parent_path());
    fs::copy_file(kTests / "data/many.mp4", folder / "in" / name);
  }
  folder.write("in/set/b.txt", "  a cat\n");
  const auto load = [&](const char* type, int output) {
    return shown_by(
        *this,
        R"("x": {"class_type": ")" + std::string(type) + R"(", "inputs": {"folder": "set"}})",
        output);
  };
  const std::string plain = load("LoadVideoDataSetFromFolder", 0);
  BOOST_TEST(are_in_order(plain, {"set/a.MKV", "set/b.mp4"}), plain);
  BOOST_TEST(!contains(plain, "c.txt"));
  BOOST_TEST(!contains(plain, "d.webm"));
  const std::string videos = load("LoadVideoTextDataSetFromFolder", 0);
  BOOST_TEST(are_in_order(videos, {"d.webm", "d.webm", "a.MKV", "b.mp4"}), videos);
  BOOST_TEST(load("LoadVideoTextDataSetFromFolder", 1) == R"(["","","","a cat"])");
  fs::create_directories(folder / "in/empty");
  BOOST_TEST(contains(refusal(R"("x": {"class_type": "LoadVideoDataSetFromFolder",
                                "inputs": {"folder": "empty"}},
                      "look": {"class_type": "PreviewAny", "inputs": {"source": ["x", 0]}})"),
                      "there is no video"));
}

BOOST_AUTO_TEST_CASE(videos_are_shuffled_as_numpy_does) {
  const std::string lists =
      R"("videos": {"class_type": "CreateList", "inputs": {"inputs.input0": ["v0", 0],
          "inputs.input1": ["v1", 0], "inputs.input2": ["v2", 0]}},
         "v0": {"class_type": "LoadVideo", "inputs": {"file": "many.mp4"}},
         "v1": {"class_type": "LoadVideo", "inputs": {"file": "turned.mov"}},
         "v2": {"class_type": "LoadVideo", "inputs": {"file": "vp9_odd.webm"}},
         "texts": {"class_type": "CreateList", "inputs": {"inputs.input0": "zero",
          "inputs.input1": "one", "inputs.input2": "two"}}, )";
  // numpy.random.RandomState(7).permutation(3)
  const std::string plain = shown_by(*this, lists + R"("x": {"class_type": "ShuffleVideoDataset",
                                        "inputs": {"videos": ["videos", 0], "seed": 7}})",
                                     0);
  const std::string pairs = lists + R"("x": {"class_type": "ShuffleVideoTextDataset", "inputs":
                                        {"videos": ["videos", 0], "texts": ["texts", 0],
                                         "seed": 7}})";
  BOOST_TEST(are_in_order(plain, {"vp9_odd.webm", "turned.mov", "many.mp4"}), plain);
  BOOST_TEST(are_in_order(shown_by(*this, pairs, 0), {"vp9_odd.webm", "turned.mov", "many.mp4"}));
  BOOST_TEST(are_in_order(shown_by(*this, pairs, 1), {"two", "one", "zero"}),
             shown_by(*this, pairs, 1));
  BOOST_TEST(contains(refusal(R"("v": {"class_type": "LoadVideo", "inputs": {"file": "many.mp4"}},
      "texts": {"class_type": "CreateList", "inputs": {"inputs.input0": "zero",
                "inputs.input1": "one"}},
      "x": {"class_type": "ShuffleVideoTextDataset", "inputs": {"videos": ["v", 0],
            "texts": ["texts", 0], "seed": 7}},
      "look": {"class_type": "PreviewAny", "inputs": {"source": ["x", 0]}})"),
                      "texts: there are 2, and 1 videos"));
}

BOOST_AUTO_TEST_CASE(pictures_are_coded_and_decoded) {
  const heddle::test::TensorFile goldens(kTests / "compression_goldens.safetensors");
  heddle::test::LentTensor pictures({2, 25, 35, 3}, goldens.floats("in"));
  const auto coded = [&](int crf) {
    const std::string flow =
        R"({"a": {"class_type": "EmptyImage", "inputs": {"width": 6, "height": 4}},
            "x": {"class_type": "LTXVPreprocess", "_meta": {"title": "x"},
                  "inputs": {"image": ["a", 0], "img_compression": )" +
        std::to_string(crf) + R"(}},
            "look": {"class_type": "test.look", "inputs": {"value": ["x", 0]}}})";
    return engine
        .start(engine.parse(flow),
               {.fetch = {"x.output_image"}, .inputs = {{"x.image", pictures.lend()}}})
        .wait();
  };
  for (const int crf : {10, 35, 60}) {
    const Results results = coded(crf);
    BOOST_TEST((results.shape("x.output_image") == std::vector<std::int64_t>{2, 24, 34, 3}));
    // Versions of x264 choose a block's coding differently here and there; without the compression,
    // or with another one of these, the mean is three times as large and more.
    const std::vector<float> made = results.floats("x.output_image"),
                             golden = goldens.floats("crf" + std::to_string(crf));
    BOOST_REQUIRE(made.size() == golden.size());
    double sum = 0;
    for (std::size_t i = 0; i < made.size(); ++i) sum += std::fabs(made[i] - golden[i]);
    BOOST_TEST(sum / double(made.size()) < 2e-3, "crf " << crf);
  }
  BOOST_TEST((coded(0).floats("x.output_image") == pictures.values));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::video
