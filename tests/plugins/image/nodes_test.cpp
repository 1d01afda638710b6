// The picture nodes in whole runs, through the facade and the plugins as they are loaded.
#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "plugins/image/exif_text.h"
#include "plugins/image/png.h"
#include "plugins/image/read_picture.h"
#include "tests/plugins/image/file_bytes.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/lent_tensor.h"
#include "tests/support/temporary_folder.h"

namespace heddle::image {
namespace {

namespace fs = std::filesystem;
using heddle::test::engine_refusal;
using heddle::test::workflow;

const fs::path kData = fs::path(HEDDLE_TESTS_DIR) / "plugins/image/data";

struct Fixture {
  heddle::test::TemporaryFolder folder;
  Engine engine{options()};

  EngineOptions options() const {
    EngineOptions options = heddle::test::engine_options();
    options.input_dir = kData;
    options.output_dir = folder / "out";
    return options;
  }
  Results run(const std::string& flow, std::vector<std::string> keep = {}) {
    return engine.start(engine.parse(flow), {{}, std::move(keep)}).wait();
  }
  std::vector<std::string> saved() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder / "out"))
      if (entry.is_regular_file())
        names.push_back(entry.path().lexically_relative(folder / "out").string());
    std::sort(names.begin(), names.end());
    return names;
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr const char* kRed =
    R"({"class_type": "EmptyImage", "inputs": {"width": 5, "height": 4, "batch_size": 2, "color": 16711808}})";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(image_nodes, Fixture)

BOOST_AUTO_TEST_CASE(a_batch_is_saved_under_rising_numbers_with_its_workflow) {
  const std::string flow = workflow(
      {{"1", kRed},
       {"2",
        R"({"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "a/%width%_%EmptyImage.color%"}})"}});
  const Results results = run(flow);
  BOOST_TEST(
      saved() == (std::vector<std::string>{"a/5_16711808_00001_.png", "a/5_16711808_00002_.png"}),
      boost::test_tools::per_element());
  BOOST_REQUIRE(results.files().size() == 2u);
  const auto file = testing::file_bytes(results.files()[0]);
  const PngContent content = read_png({file, "saved"});
  BOOST_TEST(content.picture.width == 5u);
  BOOST_TEST(content.picture.height == 4u);
  BOOST_TEST((content.picture.pixels[0] == 255 && content.picture.pixels[1] == 0 &&
              content.picture.pixels[2] == 128));
  const std::string bytes(file.begin(), file.end());
  BOOST_TEST(contains(bytes, std::string("tEXtprompt\0{\"1\": {", 18)));
  BOOST_TEST(contains(bytes, "\"class_type\": \"SaveImage\""));
}

BOOST_AUTO_TEST_CASE(the_workflow_in_a_file_says_which_input_was_given_a_tensor) {
  const std::string flow = workflow(
      {{"1", kRed},
       {"2",
        R"({"class_type": "SaveImage", "inputs": {"images": ["1", 0]}, "_meta": {"title": "end"}})"}});
  heddle::test::LentTensor picture({1, 2, 2, 3}, std::vector<float>(12, 0.5f));
  const Results results =
      engine.start(engine.parse(flow), {.inputs = {{"end.images", picture.lend()}}}).wait();
  BOOST_REQUIRE(results.files().size() == 1u);
  const auto file = testing::file_bytes(results.files()[0]);
  const std::string bytes(file.begin(), file.end());
  BOOST_TEST(contains(bytes, R"("inputs": {"images": ["1", 0]})"));
  BOOST_TEST(contains(bytes, R"("_meta": {"title": "end", "given": ["images"]})"));
}

BOOST_AUTO_TEST_CASE(a_second_run_goes_on_counting) {
  const auto flow = [](const char* colour) {
    return workflow(
        {{"1",
          (R"({"class_type": "EmptyImage", "inputs": {"width": 1, "height": 1, "batch_size": 1, "color": )" +
           std::string(colour) + "}}")
              .c_str()},
         {"2", R"({"class_type": "SaveImage", "inputs": {"images": ["1", 0]}})"}});
  };
  run(flow("1"));
  run(flow("2"));
  BOOST_TEST(saved() == (std::vector<std::string>{"ComfyUI_00001_.png", "ComfyUI_00002_.png"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_preview_goes_to_the_folder_of_previews) {
  run(workflow(
      {{"1", kRed}, {"2", R"({"class_type": "PreviewImage", "inputs": {"images": ["1", 0]}})"}}));
  BOOST_REQUIRE(saved().size() == 2u);
  BOOST_TEST(saved()[0].starts_with("temp/ComfyUI_temp_"));
  BOOST_TEST(saved()[1].ends_with("_00002_.png"));
}

BOOST_AUTO_TEST_CASE(a_picture_that_is_loaded_and_saved_stays_the_same) {
  const Results results = run(
      workflow({{"1", R"({"class_type": "LoadImage", "inputs": {"image": "colour2_depth8.png"}})"},
                {"2", R"({"class_type": "SaveImage", "inputs": {"images": ["1", 0]}})"}}));
  BOOST_REQUIRE(results.files().size() == 1u);
  const auto pixels = [](const fs::path& path) {
    return read_png({testing::file_bytes(path), "x"}).picture.pixels;
  };
  BOOST_TEST(pixels(results.files()[0]) == pixels(kData / "colour2_depth8.png"));
}

BOOST_AUTO_TEST_CASE(a_picture_may_come_from_the_folders_of_outputs_and_previews) {
  run(workflow({{"1", kRed},
                {"2", R"({"class_type": "SaveImage", "inputs": {"images": ["1", 0]}})"},
                {"3", R"({"class_type": "PreviewImage", "inputs": {"images": ["1", 0]}})"}}));
  BOOST_REQUIRE(saved().size() == 4u);
  const std::string preview = fs::path(saved()[2]).filename().string();
  const auto first = [&](const std::string& file) {
    return run(workflow(
                   {{"1", (R"({"class_type": "LoadImage", "inputs": {"image": ")" + file + R"("}})")
                              .c_str()},
                    {"k", R"({"class_type": "test.keep", "inputs": {"value": ["1", 0]}})"}}),
               {"1.IMAGE"})
        .floats("1.IMAGE");
  };
  BOOST_TEST(first("ComfyUI_00001_.png [output]").size() == 5u * 4u * 3u);
  BOOST_TEST(first("ComfyUI_00001_.png [output]") == first(preview + " [temp]"));
  BOOST_TEST(first("colour2_depth8.png [input]") == first("colour2_depth8.png"));
  const std::string reason = engine_refusal([&] { first("ComfyUI_00001_.png"); });
  BOOST_TEST(contains(reason, "there is no file 'ComfyUI_00001_.png' in 'input'"), reason);
}

BOOST_AUTO_TEST_CASE(masks_come_from_alpha_or_are_empty) {
  const std::string flow = workflow(
      {{"1", R"({"class_type": "LoadImage", "inputs": {"image": "orientation1.png"}})"},
       {"2", R"({"class_type": "LoadImage", "inputs": {"image": "rgb_key.png"}})"},
       {"3",
        R"({"class_type": "LoadImageMask", "inputs": {"image": "orientation1.png", "channel": "red"}})"},
       {"4", R"({"class_type": "LoadImageMask", "inputs": {"image": "colour2_depth8.png"}})"},
       {"5", R"({"class_type": "InvertMask", "inputs": {"mask": ["1", 1]}})"},
       {"k2", R"({"class_type": "test.keep", "inputs": {"value": ["2", 0]}})"},
       {"k3", R"({"class_type": "test.keep", "inputs": {"value": ["3", 0]}})"},
       {"k4", R"({"class_type": "test.keep", "inputs": {"value": ["4", 0]}})"},
       {"k5", R"({"class_type": "test.keep", "inputs": {"value": ["5", 0]}})"}});
  const std::vector<std::string> keep{"1.IMAGE", "1.MASK", "2.MASK", "3.MASK", "4.MASK", "5.MASK"};
  const Results results = run(flow, keep);
  BOOST_TEST((results.shape("1.IMAGE") == std::vector<std::int64_t>{1, 2, 3, 3}));
  BOOST_TEST((results.shape("1.MASK") == std::vector<std::int64_t>{1, 2, 3}));
  BOOST_TEST(results.floats("1.MASK")[0] == 1.0f - 0xac / 255.0f);
  BOOST_TEST((results.shape("2.MASK") == std::vector<std::int64_t>{1, 64, 64}));
  BOOST_TEST(results.floats("3.MASK")[0] == 0xf0 / 255.0f);
  BOOST_TEST((results.shape("4.MASK") == std::vector<std::int64_t>{1, 7, 13}));
  BOOST_TEST(results.floats("4.MASK")[0] == 0.0f);
  BOOST_TEST(results.floats("5.MASK")[0] == 1.0f - (1.0f - 0xac / 255.0f));
}

BOOST_AUTO_TEST_CASE(batches_are_joined_repeated_and_cut) {
  const std::string flow = workflow(
      {{"1", kRed},
       {"2", R"({"class_type": "ImageInvert", "inputs": {"image": ["1", 0]}})"},
       {"3", R"({"class_type": "ImageBatch", "inputs": {"image1": ["1", 0], "image2": ["2", 0]}})"},
       {"4", R"({"class_type": "RepeatImageBatch", "inputs": {"image": ["3", 0], "amount": 2}})"},
       {"5",
        R"({"class_type": "ImageFromBatch", "inputs": {"image": ["4", 0], "batch_index": 5, "length": 9}})"},
       {"k5", R"({"class_type": "test.keep", "inputs": {"value": ["5", 0]}})"}});
  const Results results = run(flow, {"3.IMAGE", "4.IMAGE", "5.IMAGE"});
  BOOST_TEST((results.shape("3.IMAGE") == std::vector<std::int64_t>{4, 4, 5, 3}));
  BOOST_TEST((results.shape("4.IMAGE") == std::vector<std::int64_t>{8, 4, 5, 3}));
  BOOST_TEST((results.shape("5.IMAGE") == std::vector<std::int64_t>{3, 4, 5, 3}));
  const auto channel = [&](const char* output, std::size_t picture) {
    return results.floats(output)[picture * 60];
  };
  for (const std::size_t picture : {0u, 1u, 4u, 5u})
    BOOST_TEST(channel("4.IMAGE", picture) == 1.0f);
  for (const std::size_t picture : {2u, 3u, 6u, 7u})
    BOOST_TEST(channel("4.IMAGE", picture) == 0.0f);
  BOOST_TEST(channel("5.IMAGE", 0) == 1.0f);
  BOOST_TEST(channel("5.IMAGE", 1) == 0.0f);
}

BOOST_AUTO_TEST_CASE(a_batch_of_two_sizes_is_planned_and_made_in_the_first) {
  const Results results = run(
      workflow(
          {{"1", kRed},
           {"2", R"({"class_type": "LoadImage", "inputs": {"image": "one_pixel.png"}})"},
           {"3",
            R"({"class_type": "ImageBatch", "inputs": {"image1": ["1", 0], "image2": ["2", 0]}})"},
           {"4", R"({"class_type": "SaveImage", "inputs": {"images": ["3", 0]}})"}}),
      {"2.IMAGE", "3.IMAGE"});
  BOOST_TEST((results.shape("3.IMAGE") == std::vector<std::int64_t>{3, 4, 5, 3}));
  const std::vector<float> pixel = results.floats("2.IMAGE"), all = results.floats("3.IMAGE");
  BOOST_REQUIRE(pixel.size() == 3u);
  for (std::size_t i = 2 * 60; i < all.size(); ++i) BOOST_TEST(all[i] == pixel[i % 3]);
}

BOOST_AUTO_TEST_CASE(a_prefix_that_leaves_the_output_folder_writes_nothing) {
  const std::string reason = engine_refusal([&] {
    run(workflow(
        {{"1", kRed},
         {"2",
          R"({"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "../x"}})"}}));
  });
  BOOST_TEST(contains(reason, "leaves the output folder"), reason);
  BOOST_TEST(contains(reason, "'2' (SaveImage)"), reason);
  BOOST_TEST(saved().empty());
  BOOST_TEST(!fs::exists(folder / "x_00001_.png"));
}

BOOST_AUTO_TEST_CASE(a_changed_file_is_read_again) {
  fs::create_directories(folder / "in");
  fs::copy_file(kData / "one_pixel.png", folder / "in/x.png");
  EngineOptions with_input = options();
  with_input.input_dir = folder / "in";
  Engine other(with_input);
  const auto first = [&] {
    const std::string flow =
        workflow({{"1", R"({"class_type": "LoadImage", "inputs": {"image": "x.png"}})"},
                  {"k1", R"({"class_type": "test.keep", "inputs": {"value": ["1", 0]}})"}});
    return other.start(other.parse(flow), {{}, {"1.IMAGE"}}).wait().floats("1.IMAGE")[0];
  };
  BOOST_TEST(first() == 1 / 255.0f);
  fs::copy_file(kData / "orientation1.png", folder / "in/x.png",
                fs::copy_options::overwrite_existing);
  BOOST_TEST(first() == 0xf0 / 255.0f);
}

// Two red pictures, then two of the opposite colour, saved as one animation by the node `type`.
std::string animation(const std::string& type, const std::string& settings) {
  return workflow(
      {{"1", kRed},
       {"2", R"({"class_type": "ImageInvert", "inputs": {"image": ["1", 0]}})"},
       {"3", R"({"class_type": "ImageBatch", "inputs": {"image1": ["1", 0], "image2": ["2", 0]}})"},
       {"4", (R"({"class_type": ")" + type +
              R"(", "inputs": {"images": ["3", 0], "filename_prefix": "m", "fps": 8, )" + settings +
              "}}")
                 .c_str()}});
}

BOOST_AUTO_TEST_CASE(a_batch_is_saved_as_an_animated_png_with_its_workflow) {
  const Results results = run(animation("SaveAnimatedPNG", R"("compress_level": 4)"));
  BOOST_TEST(saved() == std::vector<std::string>{"m_00001_.png"}, boost::test_tools::per_element());
  const auto file = testing::file_bytes(results.files().at(0));
  const std::vector<Frame> frames = read_pictures({file, "x"});
  BOOST_REQUIRE(frames.size() == 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    const Bytes& pixels = frames[i].picture.pixels;
    BOOST_TEST(pixels.size() == 60u);
    BOOST_TEST(int(pixels[0]) == (i < 2 ? 255 : 0));
    BOOST_TEST(int(pixels[2]) == (i < 2 ? 128 : 126));
  }
  const std::string bytes(file.begin(), file.end());
  BOOST_TEST(contains(bytes, std::string("comfprompt\0{\"1\": {", 18)));
  // A frame of 125 / 1000 seconds, put in the place of what was there.
  BOOST_TEST(contains(bytes, std::string("\0\x7d\x03\xe8\0\0", 6)));
  BOOST_TEST(bytes.find("acTL") < bytes.find("IDAT"));
  BOOST_TEST(bytes.find("comf") > bytes.rfind("fdAT"));
}

#ifdef HEDDLE_WITH_WEBP
BOOST_AUTO_TEST_CASE(a_batch_is_saved_as_an_animated_webp_with_its_workflow) {
  const Results results =
      run(animation("SaveAnimatedWEBP", R"("lossless": true, "quality": 80, "method": "default")"));
  BOOST_TEST(saved() == std::vector<std::string>{"m_00001_.webp"},
             boost::test_tools::per_element());
  const auto file = testing::file_bytes(results.files().at(0));
  const std::vector<Frame> frames = read_pictures({file, "x"});
  BOOST_REQUIRE(frames.size() == 2u);  // equal pictures are shown for longer
  BOOST_TEST(int(frames[0].picture.pixels[0]) == 255);
  BOOST_TEST(int(frames[1].picture.pixels[0]) == 0);
  BOOST_TEST(int(frames[1].picture.pixels[2]) == 126);
  const std::string bytes(file.begin(), file.end());
  BOOST_TEST(contains(bytes, "EXIF"));
  BOOST_TEST(contains(bytes, "prompt:{\"1\": {\"class_type\": \"EmptyImage\""));
}
#endif

BOOST_AUTO_TEST_CASE(the_workflow_in_exif_is_pillows_very_bytes) {
  const auto expected =
      testing::file_bytes(fs::path(HEDDLE_TESTS_DIR) / "plugins/image/formats/workflow.exif");
  BOOST_TEST(exif_of({{"prompt", "{\"1\": {}}"}, {"workflow", "{\"nodes\": []}"}, {"x", "1"}}) ==
             std::string(expected.begin(), expected.end()));
  BOOST_TEST(exif_of({}).empty());
}

BOOST_AUTO_TEST_CASE(an_animation_is_loaded_as_a_batch) {
  EngineOptions with_input = options();
  with_input.input_dir = fs::path(HEDDLE_TESTS_DIR) / "plugins/image/formats";
  Engine other(with_input);
  const auto load = [&](const std::string& file) {
    const std::string flow = workflow(
        {{"1", (R"({"class_type": "LoadImage", "inputs": {"image": ")" + file + R"("}})").c_str()},
         {"k", R"({"class_type": "test.keep", "inputs": {"value": ["1", 0]}})"}});
    return other.start(other.parse(flow), {{}, {"1.IMAGE", "1.MASK"}}).wait();
  };
  const Results moving = load("moving.png");
  BOOST_TEST((moving.shape("1.IMAGE") == std::vector<std::int64_t>{3, 9, 12, 3}));
  BOOST_TEST((moving.shape("1.MASK") == std::vector<std::int64_t>{3, 64, 64}));
  const Results clear = load("over0.png");
  BOOST_TEST((clear.shape("1.MASK") == std::vector<std::int64_t>{4, 9, 12}));
}

BOOST_AUTO_TEST_CASE(pictures_that_are_saved_or_shown_are_handed_on) {
  const Results results = run(
      workflow(
          {{"1", kRed},
           {"2",
            R"({"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "a"}})"},
           {"3", R"({"class_type": "PreviewImage", "inputs": {"images": ["2", 0]}})"},
           {"4",
            R"({"class_type": "ImageToMask", "inputs": {"image": ["3", 0], "channel": "red"}})"},
           {"5", R"({"class_type": "MaskPreview", "inputs": {"mask": ["4", 0]}})"},
           {"k", R"({"class_type": "test.keep", "inputs": {"value": ["5", 0]}})"}}),
      {"5.mask"});
  BOOST_TEST((results.floats("5.mask") == std::vector<float>(40, 1.0f)));
  BOOST_TEST(saved().size() == 6u);
}

BOOST_AUTO_TEST_CASE(the_environment_sets_how_many_pixels_are_read) {
  const auto refusal = [&](const char* limit) {
    ::setenv("HEDDLE_MOST_PIXELS", limit, 1);
    const std::string reason = engine_refusal([&] {
      run(workflow(
          {{"1", R"({"class_type": "LoadImage", "inputs": {"image": "colour2_depth8.png"}})"},
           {"k", R"({"class_type": "test.keep", "inputs": {"value": ["1", 0]}})"}}));
    });
    ::unsetenv("HEDDLE_MOST_PIXELS");
    return reason;
  };
  BOOST_TEST(contains(refusal("90"), "13 x 7 pixels are more than the 90 that are read"));
  BOOST_TEST(contains(refusal("many"), "HEDDLE_MOST_PIXELS is 'many'. Give a whole number"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::image
