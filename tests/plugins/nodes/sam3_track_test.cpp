// SAM3_VideoTrack, SAM3_TrackToMask and SAM3_TrackPreview with a small random SAM 3.1: things that
// masks or texts tell, frame by frame, against ComfyUI's steps in PyTorch
// (../goldens/make_sam3_track_node_goldens.py).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

struct TrackFixture {
  TemporaryFolder folder;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/sam3_track_nodes/expected.safetensors";
  TensorFile expected{golden};
  heddle::Engine engine{options()};

  heddle::EngineOptions options() const {
    heddle::EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs.push_back(folder / "models");
    const std::filesystem::path path = folder / "models/checkpoints/sam3.safetensors";
    if (std::filesystem::exists(path)) return options;
    std::filesystem::create_directories(folder / "models/checkpoints");
    std::vector<FileTensor> tensors = seeded_model("checkpoint", false, "sam3_track_nodes");
    for (FileTensor& tensor : tensors)
      if (expected.has("changed." + tensor.name))
        tensor.bytes = expected.at("changed." + tensor.name).bytes;
    write_safetensors(path, tensors);
    FileTensor one = numbers("first", 1.0f);
    one.name = "one";
    one.bytes.resize(one.bytes.size() / std::size_t(one.shape[0]));
    one.shape[0] = 1;
    write_safetensors(folder / "inputs.safetensors",
                      {numbers("frames", 255.0f), numbers("first", 1.0f), one});
    return options;
  }
  // Bytes as f32.
  FileTensor numbers(const std::string& name, float whole) const {
    const auto& from = expected.at(name);
    std::vector<float> made;
    for (const char byte : from.bytes)
      made.push_back(float(static_cast<unsigned char>(byte)) / whole);
    FileTensor tensor{name, "F32", {}, std::string(made.size() * sizeof(float), '\0')};
    for (const auto size : from.shape) tensor.shape.push_back(size);
    std::memcpy(tensor.bytes.data(), made.data(), tensor.bytes.size());
    return tensor;
  }
  std::string input(const std::string& type, const std::string& name) const {
    return R"({"class_type": "test.)" + type + R"(", "inputs": {"path": ")" +
           (folder / "inputs.safetensors").string() + R"(", "name": ")" + name + R"("}})";
  }
  // Of pictures and a mask, "drawn", whose sizes are known before a run. The size of what
  // SAM3_TrackToMask makes is known when it runs; `shown` stands in its place.
  std::string known(const std::string& texts, const std::string& inputs, const char* shown) const {
    std::string flow = nodes(texts, inputs);
    const std::size_t begin = flow.find(R"("pictures": {)"), end = flow.find("}}", begin) + 2;
    flow.replace(begin, end - begin, R"("pictures": {"class_type": "EmptyImage",
        "inputs": {"width": 40, "height": 24, "batch_size": 3, "color": 4000}},
        "drawn": {"class_type": "SolidMask", "inputs": {"value": 1, "width": 24, "height": 16}})");
    return flow.substr(0, flow.find(R"("mask": {)")) + R"("shown": {"class_type": )" + shown + "}}";
  }
  // texts: of the conditioning, none where empty. keys: of the node that follows.
  std::string nodes(const std::string& texts, const std::string& inputs,
                    const std::string& things = "", const std::string& keys = "") const {
    return R"({"file": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "sam3.safetensors"}},
            "text": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["file", 1], "text": ")" +
           texts + R"("}}, "pictures": )" + input("image", "frames") + R"(, "first": )" +
           input("mask", "first") + R"(, "one": )" + input("mask", "one") + R"(,
            "track": {)" +
           keys +
           R"("class_type": "SAM3_VideoTrack", "inputs": {"images": ["pictures", 0], "model": ["file", 0], )" +
           (texts.empty() ? "" : R"("conditioning": ["text", 0], )") + inputs + R"(}},
            "mask": {"class_type": "SAM3_TrackToMask", "inputs": {"track_data": ["track", 0], "object_indices": ")" +
           things + R"("}},
            "tell": {"class_type": "PreviewAny", "inputs": {"source": ["track", 0]}},
            "look": {"class_type": "test.look", "inputs": {"value": ["mask", 0]}}})";
  }
};

// What looks at the tracks.
constexpr const char* kShown = R"("PreviewAny", "inputs": {"source": ["track", 0]})";
constexpr double kScoreTolerance = 1e-5;
constexpr std::uint64_t kKnownFrames = 3, kKnownHeight = 24, kKnownWidth = 40;

// What is told of things: bits of their masks, by frames; none where nothing was found.
struct ToldTracks {
  std::vector<std::int64_t> shape;
  std::string bits;
  std::vector<double> scores;
};

ToldTracks told_tracks(heddle::Engine& engine, const std::string& flow) {
  const heddle::Results made = engine.start(engine.parse(flow), {{}, {"track.track_data"}}).wait();
  const heddle::engine::Json shown = heddle::engine::parse_json(made.ui(), "ui"),
                             record = heddle::engine::parse_json(
                                 shown.at("tell").at("text").at(std::size_t{0}).as_string(), "it");
  ToldTracks told;
  for (const heddle::engine::Json& score : record.at("scores").as_array())
    told.scores.push_back(score.as_double());
  if (record.find("packed_masks") == nullptr) return told;
  told.shape = made.shape("track.track_data", "packed_masks");
  DLManagedTensor* const tensor = made.tensor("track.track_data", "packed_masks");
  std::size_t count = 1;
  for (const std::int64_t side : told.shape) count *= std::size_t(side);
  told.bits.assign(static_cast<const char*>(tensor->dl_tensor.data), count);
  tensor->deleter(tensor);
  return told;
}

std::string track_inputs(double threshold, int most, int interval, const std::string& more = "") {
  return R"("detection_threshold": )" + std::to_string(threshold) + R"(, "max_objects": )" +
         std::to_string(most) + R"(, "detect_interval": )" + std::to_string(interval) + more;
}
const std::string kOfFirst = R"(, "initial_mask": ["first", 0])",
                  kOfOne = R"(, "initial_mask": ["one", 0])";

void compare_tracks(TrackFixture& fixture, const std::string& name, const std::string& texts,
                    const std::string& inputs) {
  const ToldTracks made = told_tracks(fixture.engine, fixture.nodes(texts, inputs));
  const auto& wanted = fixture.expected.at(name + ".masks");
  const std::vector<float> scores = fixture.expected.floats(name + ".scores");
  BOOST_TEST_REQUIRE(made.scores.size() == scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i)
    BOOST_TEST(std::abs(made.scores[i] - double(scores[i])) < kScoreTolerance, name << ", " << i);
  if (scores.empty()) {
    BOOST_TEST(made.bits.empty(), name);
    return;
  }
  BOOST_TEST(made.shape == wanted.shape, boost::test_tools::per_element());
  BOOST_TEST_REQUIRE(made.bits.size() == wanted.bytes.size());
  std::set<std::int32_t> unsure;
  for (const std::int32_t pixel : fixture.expected.integers(name + ".unsure")) unsure.insert(pixel);
  std::size_t others = 0;
  for (std::size_t i = 0; i < made.bits.size(); ++i)
    for (int bit = 0; bit < 8; ++bit)
      if (((made.bits[i] ^ wanted.bytes[i]) >> bit) & 1)
        others += unsure.count(std::int32_t(8 * i) + bit) == 0 ? 1 : 0;
  BOOST_TEST_MESSAGE(name << ": " << others << " of " << 8 * made.bits.size() << " pixels differ, "
                          << unsure.size() << " may");
  BOOST_TEST(others == 0u, name);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sam3_track, TrackFixture)

BOOST_AUTO_TEST_CASE(things_of_masks_are_followed_as_comfyui_does) {
  compare_tracks(*this, "five", "", track_inputs(0.5, 4, 1, kOfFirst));
}

BOOST_AUTO_TEST_CASE(things_of_texts_are_found_and_followed_as_comfyui_does) {
  compare_tracks(*this, "text", "cat", track_inputs(0.3, 4, 1));
  compare_tracks(*this, "texts", "photo, cat", track_inputs(0.35, 0, 2));
  compare_tracks(*this, "one", "cat", track_inputs(0.25, 1, 1));
  compare_tracks(*this, "none", "cat", track_inputs(0.95, 0, 1));
}

BOOST_AUTO_TEST_CASE(texts_add_things_to_those_of_masks) {
  compare_tracks(*this, "both", "cat", track_inputs(0.25, 3, 3, kOfOne));
}

BOOST_AUTO_TEST_CASE(masks_of_chosen_things_have_the_size_of_the_video) {
  const auto masks = [&](const std::string& things, double threshold = 0.3) {
    return engine
        .start(engine.parse(nodes("cat", track_inputs(threshold, 4, 1), things)),
               {{}, {"mask.masks"}})
        .wait();
  };
  const heddle::Results all = masks("");
  const std::vector<std::int64_t> size{10, 48, 64};
  BOOST_TEST(all.shape("mask.masks") == size, boost::test_tools::per_element());
  const std::vector<float> each = all.floats("mask.masks"),
                           last = masks("3, 7,x").floats("mask.masks"),
                           first = masks(" 0,1 ,2").floats("mask.masks");
  BOOST_TEST(std::ranges::any_of(last, [](float n) { return n > 0; }));
  BOOST_TEST(std::ranges::any_of(first, [](float n) { return n > 0; }));
  for (std::size_t i = 0; i < each.size(); ++i)
    BOOST_TEST_REQUIRE(each[i] <= first[i] + last[i] + 1e-6f);
  BOOST_TEST(std::ranges::count(masks("9").floats("mask.masks"), 0.0f) ==
             std::ptrdiff_t(each.size()));
  const heddle::Results none = masks("", 0.95);
  BOOST_TEST(none.shape("mask.masks") == size, boost::test_tools::per_element());
  BOOST_TEST(std::ranges::count(none.floats("mask.masks"), 0.0f) == std::ptrdiff_t(each.size()));
}

// Pixels on an edge of which a bit is unsure may differ.
BOOST_AUTO_TEST_CASE(masks_of_chosen_things_equal_pytorch) {
  constexpr std::size_t kEach = 3, kFrames = 4, kPixels = 48 * 64;
  const std::vector<float> made =
      engine
          .start(engine.parse(nodes("cat", track_inputs(0.25, 3, 3, kOfOne), "0,1")),
                 {{}, {"mask.masks"}})
          .wait()
          .floats("mask.masks");
  const std::vector<float> wanted = expected.floats("both.united");
  BOOST_TEST_REQUIRE(wanted.size() == kFrames * kPixels);
  std::size_t others = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (std::abs(made[i / kPixels * kEach * kPixels + i % kPixels] - wanted[i]) > 1e-5f) ++others;
  BOOST_TEST_MESSAGE(others << " of " << wanted.size() << " pixels differ");
  BOOST_TEST(others <= expected.integers("both.unsure").size());
}

BOOST_AUTO_TEST_CASE(a_preview_is_a_video) {
  if (!heddle::Engine::Data{options()}.plugins.catalog->find("SAM3_TrackPreview")) return;
  std::string flow = nodes("cat", track_inputs(0.3, 2, 4));
  flow.back() = ',';
  flow += R"("shown": {"class_type": "SAM3_TrackPreview", "inputs": {"track_data": ["track", 0],
      "images": ["pictures", 0], "opacity": 0.5, "fps": 12}}})";
  const heddle::Results made = engine.start(engine.parse(flow), {}).wait();
  const heddle::engine::Json shown = heddle::engine::parse_json(made.ui(), "ui").at("shown");
  const std::string file = shown.at("images").at(std::size_t{0}).at("filename").as_string();
  BOOST_TEST(file.ends_with(".mp4"), file);
}

BOOST_AUTO_TEST_CASE(the_memory_of_a_preview_is_told) {
  if (!heddle::Engine::Data{options()}.plugins.catalog->find("SAM3_TrackPreview")) return;
  heddle::Engine::Data data{options()};
  const std::uint64_t told =
      infer_and_run(data, known("", track_inputs(0.5, 4, 1, R"(, "initial_mask": ["drawn", 0])"),
                                R"("SAM3_TrackPreview", "inputs": {"track_data": ["track", 0],
                                   "images": ["pictures", 0], "opacity": 0.5, "fps": 12})"))
          .inferred.host_scratch.at("shown");
  constexpr std::uint64_t kPixels = kKnownHeight * kKnownWidth;
  BOOST_TEST(told >= (3 * sizeof(float) * kKnownFrames + 1) * kPixels);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_followed_is_refused) {
  const auto says = [&](const std::string& texts, const std::string& more, const char* word) {
    const std::string said =
        engine_refusal([&] { told_tracks(engine, nodes(texts, track_inputs(0.5, 1, 1, more))); });
    BOOST_TEST(said.find(word) != std::string::npos, word << " is not in: " << said);
  };
  says("", "", "nothing to follow");
}

// Of SAM 3's own tracker the tensor is missing that 3.1's is known by.
BOOST_AUTO_TEST_CASE(a_file_that_cannot_follow_is_refused) {
  const auto says = [&](const std::string& file, const char* word) {
    std::string flow = nodes("cat", track_inputs(0.5, 1, 1));
    const std::string name = "sam3.safetensors";
    flow.replace(flow.find(name), name.size(), file + ".safetensors");
    const std::string said = engine_refusal([&] { told_tracks(engine, flow); });
    BOOST_TEST(said.find(word) != std::string::npos, word << " is not in: " << said);
  };
  std::vector<FileTensor> tensors = seeded_model("checkpoint", false, "sam3_track_nodes");
  std::vector<FileTensor> odd = tensors;  // of a table of 5 x 5 places, and one more
  for (FileTensor& tensor : odd)
    if (tensor.name.ends_with("trunk.pos_embed"))
      tensor = seeded_tensor(tensor.name, {1, 26, tensor.shape.back()});
  write_safetensors(folder / "models/checkpoints/odd.safetensors", odd);
  BOOST_TEST(std::erase_if(tensors, [](const FileTensor& tensor) {
               return tensor.name.ends_with("output_valid_embed");
             }) == 1u);
  write_safetensors(folder / "models/checkpoints/first.safetensors", tensors);
  says("first", "the tracker of SAM 3 is not supported");
  says("odd", "210 pixels a side");
}

BOOST_AUTO_TEST_CASE(what_a_plan_tells_is_what_a_run_makes) {
  heddle::Engine::Data data{options()};
  check_inference(data,
                  known("", track_inputs(0.5, 4, 1, R"(, "initial_mask": ["drawn", 0])"), kShown));
}

BOOST_AUTO_TEST_CASE(the_memory_of_all_things_that_texts_may_find_is_told) {
  const auto told = [&](int most) {
    heddle::Engine::Data data{options()};
    return infer_and_run(data, known("cat", track_inputs(0.95, most, 1), kShown))
        .inferred.host_scratch.at("track");
  };
  const auto side = std::uint64_t(expected.at("five.masks").shape[2]),
             each = kKnownFrames * side * side / 8;
  const std::uint64_t one = told(1);
  BOOST_TEST(told(64) >= one + 63 * each);
  BOOST_TEST(told(0) == told(64));
}

BOOST_AUTO_TEST_CASE(divided_by_layers_masks_have_the_same_bytes) {
  const std::string inputs = track_inputs(0.3, 2, 2);
  const ToldTracks whole = told_tracks(engine, nodes("cat", inputs));
  heddle::EngineOptions two = options();
  two.devices = {"cpu:0", "cpu:1"};
  heddle::Engine divided{two};
  const std::string keys = R"("parallel": "layers", "device": "cpu:0,cpu:1", )";
  BOOST_TEST((told_tracks(divided, nodes("cat", inputs, "", keys)).bits == whole.bits));
}

// Down to budgets that are too little for any way to run it.
BOOST_AUTO_TEST_CASE(in_less_memory_masks_have_the_same_bytes) {
  const std::string inputs = track_inputs(0.3, 2, 2);
  const ToldTracks whole = told_tracks(engine, nodes("cat", inputs));
  int done = 0;
  for (std::uint64_t budget = 64 << 20; budget > 0; budget /= 2) {
    heddle::EngineOptions small = options();
    small.plugin_dirs.push_back(HEDDLE_FAKE_DEVICE_DIR);
    small.devices = {"fake:0"};
    small.compute = {{"fake", "f32"}};
    small.budgets["fake:0"] = budget;
    heddle::Engine narrow{small};
    try {
      BOOST_TEST((told_tracks(narrow, nodes("cat", inputs)).bits == whole.bits), budget);
    } catch (const heddle::EngineError&) {
      break;
    }
    ++done;
  }
  BOOST_TEST(done > 1);
}

BOOST_AUTO_TEST_SUITE_END()
