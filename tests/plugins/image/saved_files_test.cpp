// Files that nodes save and read again: SaveImageAdvanced, SaveLatent, ImageCompare, Painter, and
// pictures of the folders that a name says.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <filesystem>

#include "plugins/image/latent_file.h"
#include "plugins/image/png.h"
#include "plugins/image/read_picture.h"
#include "tests/plugins/image/file_bytes.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/lent_tensor.h"
#include "tests/support/temporary_folder.h"

namespace heddle::image {
namespace {

namespace fs = std::filesystem;

const std::vector<float> kFour = {1, 2, 3, 4};

struct SavedFixture {
  heddle::test::TemporaryFolder folder;
  SavedFixture() {
    fs::create_directories(folder / "out");
    fs::create_directories(folder / "in/set");
  }
  Engine engine{options()};

  EngineOptions options() const {
    EngineOptions options = heddle::test::engine_options();
    options.input_dir = fs::path(HEDDLE_TESTS_DIR) / "plugins/image/data";
    options.output_dir = folder / "out";
    return options;
  }
  // Runs a node "save" whose input "images" is a picture of one grey.
  Results saved_grey(const std::string& inputs, float grey, const std::string& type) {
    const std::string flow =
        R"({"1": {"class_type": "EmptyImage", "inputs": {"width": 6, "height": 4}}, "save": )"
        R"({"class_type": ")" +
        type + R"(", "inputs": {"images": ["1", 0], )" + inputs +
        R"(}, "_meta": {"title": "save"}}})";
    heddle::test::LentTensor picture({1, 4, 6, 3}, std::vector<float>(72, grey));
    return engine.start(engine.parse(flow), {.inputs = {{"save.images", picture.lend()}}}).wait();
  }
  Results saved_as(const std::string& format, float grey) {
    return saved_grey(R"("filename_prefix": "a/b", )" + format, grey, "SaveImageAdvanced");
  }
  Results loaded_latent(const std::string& flow) {
    return engine.start(engine.parse(flow), {{}, {"1.LATENT"}}).wait();
  }
  static std::vector<std::uint8_t> bytes_in(const Results& results) {
    BOOST_REQUIRE(results.files().size() == 1u);
    return testing::file_bytes(results.files()[0]);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(saved_image_files, SavedFixture)

BOOST_AUTO_TEST_CASE(pictures_are_saved_with_16_bits) {
  const float grey = 0.3f;
  const Results results = saved_as(R"("format": "png", "format.bit_depth": "16-bit")", grey);
  const std::vector<std::uint8_t> file = bytes_in(results);
  BOOST_TEST(fs::path(results.files()[0]).filename().string() == "b_00001.png");
  BOOST_TEST(file[24] == 16);  // of the header: bits of a sample
  const PngContent content = read_png({file, "saved"});
  BOOST_TEST(content.picture.pixels[0] == unsigned(grey * 65535.0f) >> 8);
  BOOST_TEST(fs::path(saved_as(R"("format": "png")", grey).files()[0]).filename().string() ==
             "b_00002.png");
}

// Each picture whole, in order, again in every run, whether or not anybody wants previews.
BOOST_AUTO_TEST_CASE(pictures_are_sent_to_who_follows_the_run) {
  const Workflow flow = engine.parse(
      R"({"1": {"class_type": "EmptyImage", "inputs": {"width": 6, "height": 4}}, "send":
          {"class_type": "SaveImageWebsocket", "inputs": {"images": ["1", 0]}}})");
  for (int run = 0; run < 2; ++run) {
    std::vector<std::string> sent;
    std::vector<double> shares;
    heddle::test::LentTensor pictures({2, 2, 3, 4}, [] {
      std::vector<float> values(24, 0.2f);
      values.resize(48, 1.0f);
      return values;
    }());
    StartOptions start;
    start.inputs = {{"send.images", pictures.lend()}};
    start.observer = [&](const Event& e) {
      if (e.kind == Event::Kind::node_progress) shares.push_back(e.fraction);
      if (e.kind != Event::Kind::picture_sent) return;
      BOOST_TEST(e.node == "send");
      sent.emplace_back(e.text);
    };
    const Results results = engine.start(flow, std::move(start)).wait();
    BOOST_TEST(results.files().empty());
    BOOST_TEST((shares == std::vector{0.0, 0.5}));
    BOOST_TEST_REQUIRE(sent.size() == 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      const std::vector<std::uint8_t> file(sent[i].begin(), sent[i].end());
      const PngContent content = read_png({file, "sent"});
      BOOST_TEST(content.picture.width == 3);
      BOOST_TEST(content.picture.height == 2);
      BOOST_TEST(int(content.picture.pixels[0]) == (i == 0 ? 51 : 255));
      BOOST_TEST((content.alpha != Alpha::none));
    }
  }
}

#ifdef HEDDLE_WITH_AVIF
BOOST_AUTO_TEST_CASE(pictures_are_saved_as_avif) {
  for (const char* depth : {"8-bit YUV420", "10-bit YUV420"}) {
    const std::vector<std::uint8_t> file =
        bytes_in(saved_as(R"("format": "avif", "format.crf": 1, "format.save_mode": "still images",
                             "format.bit_depth": ")" +
                              std::string(depth) + "\"",
                          0.6f));
    const std::vector<Frame> frames = read_pictures({file, "saved"});
    BOOST_REQUIRE(frames.size() == 1u);
    BOOST_TEST(frames[0].picture.width == 6u);
    BOOST_TEST(std::abs(int(frames[0].picture.pixels[0]) - 153) <= 2);
    const std::string text(file.begin(), file.end());
    BOOST_TEST(text.find("prompt:{") != std::string::npos);
  }
}
#endif

#ifdef HEDDLE_WITH_EXR
BOOST_AUTO_TEST_CASE(pictures_are_saved_as_exr_in_linear_light) {
  const std::pair<const char*, float> spaces[] = {
      {"linear", 0.75f}, {"sRGB", 0.522521f}, {"HDR", 0.264963f}};
  for (const auto& [space, light] : spaces) {
    const std::vector<std::uint8_t> file = bytes_in(saved_as(
        R"("format": "exr", "format.input_color_space": ")" + std::string(space) + "\"", 0.75f));
    constexpr std::uint8_t kMagic[] = {0x76, 0x2f, 0x31, 0x01};
    BOOST_TEST(std::memcmp(file.data(), kMagic, sizeof kMagic) == 0);
    float last = 0;  // rows end the file: the last number is one of R
    std::memcpy(&last, file.data() + file.size() - sizeof last, sizeof last);
    BOOST_TEST(std::fabs(last - light) < 1e-5f, space << ": " << last);
  }
}
#endif

BOOST_AUTO_TEST_CASE(formats_say_what_they_do_not_take) {
  const auto refused = [&](const std::string& format) {
    return heddle::test::engine_refusal([&] { saved_as(format, 0); });
  };
  BOOST_TEST(
      refused(R"("format": "gif")").find("there is no variant 'gif'. There: png, exr, avif") !=
      std::string::npos);
  BOOST_TEST(refused(R"("format": "png", "format.bit_depth": "9-bit")")
                 .find("input 'format.bit_depth': '9-bit' is not one of the choices.") !=
             std::string::npos);
  BOOST_TEST(refused(R"("format": "avif", "format.crf": 64)")
                 .find("input 'format.crf': 64 is above the greatest value 63") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(latents_are_saved_and_loaded) {
  const std::string flow =
      R"({"1": {"class_type": "LoadLatent", "inputs": {"latent": "a.latent [output]"}},
          "2": {"class_type": "SaveLatent", "inputs": {"samples": ["1", 0]}}})";
  folder.write("out/a.latent", latent_file({1, 1, 2, 2}, kFour, {{"prompt", "{}"}}));
  const Results results = loaded_latent(flow);
  BOOST_TEST((results.shape("1.LATENT", "samples") == std::vector<std::int64_t>{1, 1, 2, 2}));
  BOOST_TEST(results.floats("1.LATENT", "samples") == kFour, boost::test_tools::per_element());
  const std::vector<std::uint8_t> file = bytes_in(results);
  BOOST_TEST(fs::path(results.files()[0]).filename().string() == "ComfyUI_00001_.latent");
  BOOST_TEST(std::memcmp(file.data() + file.size() - 16, kFour.data(), 16) == 0);
}

BOOST_AUTO_TEST_CASE(damaged_latents_are_refused) {
  const std::string flow =
      R"({"1": {"class_type": "LoadLatent", "inputs": {"latent": "a.latent [output]"}},
          "2": {"class_type": "SaveLatent", "inputs": {"samples": ["1", 0]}}})";
  const std::string whole = latent_file({1, 1, 2, 2}, kFour, {{"prompt", "{}"}});
  const auto read = [&](const std::string& file) {
    folder.write("out/a.latent", file);
    return heddle::test::engine_refusal([&] { loaded_latent(flow); });
  };
  BOOST_TEST(read(whole) == "");
  // Of before the format had a version.
  std::string old = whole;
  old.replace(old.find("latent_format_version_0"), 6, "unused");
  BOOST_TEST(read(old) == "");
  BOOST_TEST(loaded_latent(flow).floats("1.LATENT", "samples")[0] == float(1.0 / 0.18215));
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{40}, whole.size() - 1})
    BOOST_TEST(read(whole.substr(0, size)) != "");
  std::string lying = whole;
  lying.replace(lying.find("[1, 1, 2, 2]"), 12, "[1, 1, 9, 2]");
  BOOST_TEST(read(lying).find("its numbers are not where its header says") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(two_batches_are_shown_side_by_side) {
  const std::string flow =
      R"({"1": {"class_type": "EmptyImage", "inputs": {"width": 6, "height": 4}},
          "2": {"class_type": "ImageCompare", "inputs": {"compare_view": {}, "image_a": ["1", 0]}}})";
  const Results results = engine.start(engine.parse(flow), {}).wait();
  BOOST_TEST(results.ui().find(R"("b_images":[])") != std::string::npos, results.ui());
  BOOST_TEST(results.ui().find("comfy.compare.a_00001_.png") != std::string::npos, results.ui());
}

BOOST_AUTO_TEST_CASE(drawings_are_saved_with_the_workflow_in_them) {
  const std::string flow =
      R"({"1": {"class_type": "SaveSVGNode", "inputs": {"svg": ["2", 0]}},
          "2": {"class_type": "test.raw", "inputs": {"text": "s:<svg a='b'><g/></svg>]]>"}}})";
  const std::vector<std::uint8_t> file = bytes_in(engine.start(engine.parse(flow), {}).wait());
  const std::string text(file.begin(), file.end());
  BOOST_TEST(text.starts_with("<svg a='b'>\n  <metadata>\n<![CDATA[\n{\"prompt\": {"), text);
  BOOST_TEST(text.ends_with("\n]]>\n</metadata>\n<g/></svg>]]>"), text);
  BOOST_TEST(text.find("]]\\u003e") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(all_pictures_of_a_folder_are_read) {
  const auto write = [&](const char* name, std::uint32_t width, std::uint8_t grey) {
    Picture picture{width, 2, 1, Bytes(std::size_t{width} * 2, grey)};
    const Bytes file = write_png(picture, {}, 1, [] { return false; });
    fs::create_directories((folder / "in/set" / name).parent_path());
    folder.write(fs::path("in/set") / name,
                 {reinterpret_cast<const char*>(file.data()), file.size()});
  };
  write("b.png", 3, 51);
  write("a.PNG", 3, 255);
  write("2_more/c.png", 4, 0);
  folder.write("in/set/b.txt", " a house\n");
  EngineOptions there = options();
  there.input_dir = folder / "in";
  Engine other{there};
  const auto run = [&](const std::string& type, const std::string& more) {
    return other
        .start(other.parse(
                   R"({"1": {"class_type": ")" + type + R"(", "inputs": {"folder": "set")" + more +
                   R"(}}, "2": {"class_type": "PreviewImage", "inputs": {"images": ["1", 0]}}})"),
               {{}, {type == "LoadImageSetFromFolderNode" ? "1.IMAGE" : "1.images"}})
        .wait();
  };
  const Results plain = run("LoadImageDataSetFromFolder", "");
  BOOST_TEST(plain.floats("1.images", "0")[0] == 1.0f);
  BOOST_TEST(plain.floats("1.images", "1")[0] == 0.2f);
  BOOST_CHECK_THROW(plain.shape("1.images", "2"), EngineError);
  const Results paired = run("LoadImageTextDataSetFromFolder", "");
  BOOST_TEST((paired.shape("1.images", "0") == std::vector<std::int64_t>{1, 2, 4, 3}));
  BOOST_TEST((paired.shape("1.images", "1") == std::vector<std::int64_t>{1, 2, 4, 3}));
  BOOST_TEST(paired.floats("1.images", "3")[0] == 0.2f);
  const Results batch = run("LoadImageSetFromFolderNode", "");
  BOOST_TEST((batch.shape("1.IMAGE") == std::vector<std::int64_t>{2, 2, 3, 3}));
  write("d.png", 5, 102);
  BOOST_TEST(heddle::test::engine_refusal([&] {
               run("LoadImageSetFromFolderNode", "");
             }).find("it has another size than the first picture") != std::string::npos);
  const Results cut = run("LoadImageSetFromFolderNode", R"(, "resize_method": "Crop")");
  BOOST_TEST((cut.shape("1.IMAGE") == std::vector<std::int64_t>{3, 2, 3, 3}));
  BOOST_TEST(cut.floats("1.IMAGE").back() == 0.4f);
}

BOOST_AUTO_TEST_CASE(data_sets_are_saved_in_folders_of_their_own) {
  const auto save = [&](const std::string& more, const char* colour, const std::string& type) {
    return engine
        .start(engine.parse(
            R"({"a": {"class_type": "EmptyImage", "inputs": {"width": 3, "height": 2, "batch_size": 2,
                       "color": )" +
            std::string(colour) + R"(}},
                "b": {"class_type": "EmptyImage", "inputs": {"width": 4, "height": 2}},
                "list": {"class_type": "CreateList", "inputs": {"inputs.input0": ["a", 0],
                         "inputs.input1": ["b", 0]}},
                "texts": {"class_type": "CreateList", "inputs": {"inputs.input0": "one",
                          "inputs.input1": "two"}},
                "save": {"class_type": ")" +
            type + R"(", "inputs": {"images": ["list", 0],
                         "folder_name": "d/set")" +
            more + "}}}"))
        .wait();
  };
  const auto picture_in = [&](const char* name) {
    return read_png({testing::file_bytes((folder / "out/d/set" / name).string()), name}).picture;
  };
  const auto text_in = [&](const char* name) {
    const std::vector<std::uint8_t> file =
        testing::file_bytes((folder / "out/d/set" / name).string());
    return std::string(file.begin(), file.end());
  };
  const Results plain = save("", "16711680", "SaveImageDataSetToFolder");
  BOOST_TEST(plain.files().size() == 3u);
  BOOST_TEST(picture_in("image_00000.png").pixels[0] == 255);
  BOOST_TEST(picture_in("image_00002.png").width == 4u);
  BOOST_TEST(!fs::exists(folder / "out/d/set/image_00000.txt"));
  save(R"(, "texts": ["texts", 0])", "0", "SaveImageTextDataSetToFolder");
  BOOST_TEST(picture_in("image_00000.png").pixels[0] == 0);
  BOOST_TEST(text_in("image_00001.txt") == "two");
  BOOST_TEST(!fs::exists(folder / "out/d/set/image_00002.txt"));
  const std::string counted = R"(, "texts": ["texts", 0], "mode": "increment",
                                 "filename_prefix": "p%width%")";
  save(counted, "0", "SaveImageTextDataSetToFolder");
  save(counted, "255", "SaveImageTextDataSetToFolder");
  BOOST_TEST(text_in("p3_00002_00001.txt") == "two");
  BOOST_TEST(picture_in("p3_00003_00002.png").width == 4u);
  BOOST_TEST(picture_in("p3_00004_00000.png").pixels[2] == 255);
  BOOST_TEST(text_in("p3_00004_00000.txt") == "one");
  BOOST_TEST(heddle::test::engine_refusal([&] {
               save(R"(, "filename_prefix": "../../../x")", "0", "SaveImageDataSetToFolder");
             }).find("leaves the output folder") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_was_painted_covers_a_picture) {
  const std::string flow =
      R"({"out": {"class_type": "Painter", "inputs": {"mask": "colour6_depth8.png", "width": 64,
                  "height": 64, "bg_color": "#ff0000"}},
          "load": {"class_type": "LoadImage", "inputs": {"image": "colour6_depth8.png"}},
          "same": {"class_type": "Painter", "inputs": {"mask": "colour6_depth8.png",
                   "image": ["load", 0]}},
          "plain": {"class_type": "Painter", "inputs": {"mask": "", "bg_color": "#00ff00"}},
          "a": {"class_type": "PreviewImage", "inputs": {"images": ["out", 0]}},
          "b": {"class_type": "PreviewImage", "inputs": {"images": ["same", 0]}},
          "c": {"class_type": "PreviewImage", "inputs": {"images": ["plain", 0]}}})";
  const Results results =
      engine
          .start(engine.parse(flow), {{},
                                      {"out.IMAGE", "out.MASK", "same.MASK", "same.IMAGE",
                                       "load.MASK", "load.IMAGE", "plain.MASK", "plain.IMAGE"}})
          .wait();
  BOOST_TEST((results.shape("out.IMAGE") == std::vector<std::int64_t>{1, 64, 64, 3}));
  const std::vector<float> alpha = results.floats("same.MASK"), clear = results.floats("load.MASK"),
                           mixed = results.floats("same.IMAGE"),
                           below = results.floats("load.IMAGE");
  BOOST_REQUIRE(alpha.size() == clear.size());
  for (std::size_t i = 0; i < alpha.size(); ++i) {
    BOOST_TEST(std::fabs(alpha[i] - (1 - clear[i])) < 1e-6f);
    // The colours of the file are what is painted, over themselves.
    for (std::size_t c = 0; c < 3; ++c)
      BOOST_TEST(std::fabs(mixed[3 * i + c] - below[3 * i + c]) < 1e-6f);
  }
  for (const float x : results.floats("plain.MASK")) BOOST_TEST(x == 0);
  const std::vector<float> plain = results.floats("plain.IMAGE");
  BOOST_TEST((plain[0] == 0 && plain[1] == 1 && plain[2] == 0));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::image
