// The gallery of graphs/: every workflow draws the picture that graphs/README.md shows, and the
// same bytes when its model is divided over two devices with memories of their own.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/fake_device/fake_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

// Numbers are cut off to 8 bits as ComfyUI does: half a step further they are 58.9 dB from what was
// drawn, on average. Other processors differ by less.
constexpr double kHalfStep = 0.5 / 255;
constexpr double kLeastOfBytes = 54;
constexpr double kLeastOfLossyFrames = 28;

struct Exhibit {
  const char* file;     // a workflow of graphs/
  const char* picture;  // in graphs/gallery/, as it is shown
  double least;         // decibels
  const char* output = "picture.IMAGE";
};
std::ostream& operator<<(std::ostream& out, const Exhibit& exhibit) { return out << exhibit.file; }

const std::vector<Exhibit> kExhibits{
    {"inpainting.json", "inpainting.png", kLeastOfBytes},
    {"outpainting.json", "outpainting.png", kLeastOfBytes},
    {"two_stages.json", "two_stages.png", kLeastOfBytes},
    {"lora.json", "lora.png", kLeastOfBytes},
    {"custom_sampling.json", "custom_sampling.png", kLeastOfBytes},
    {"tiled_decode.json", "tiled_decode.png", kLeastOfBytes},
    {"compositing.json", "compositing.png", kLeastOfBytes},
    {"batch.json", "batch.png", kLeastOfBytes},
    {"lists.json", "lists.png", kLeastOfBytes, "picture.images"},
    {"area_composition.json", "area_composition.png", kLeastOfBytes},
    {"animation.json", "animation.webp", kLeastOfLossyFrames},
    {"saved_form.json", "saved_form.png", kLeastOfBytes},
    {"gallery/two_stages.png", "two_stages.png", kLeastOfBytes},  // the workflow inside
};

struct Gallery {
  test::TemporaryFolder output;

  static std::filesystem::path graphs() {
    return std::filesystem::path(HEDDLE_SOURCE_DIR) / "graphs";
  }
  Engine engine(const std::vector<std::string>& devices) const {
    EngineOptions options = test::engine_options();
    options.plugin_dirs = {test::kFakePlugin};
    options.devices = devices;
    for (const std::string& device : devices) options.compute[device] = "f32";
    options.model_dirs = {graphs() / "models"};
    options.input_dir = graphs();
    options.output_dir = output.path();
    return Engine(options);
  }
  static std::vector<float> draw(Engine& engine, const Workflow& flow, const char* output) {
    return engine.start(flow, {{}, {output}}).wait().floats(output);
  }
  static std::vector<float> shown(Engine& engine, const std::string& picture) {
    const Workflow flow = engine.parse(R"({
      "picture": {"class_type": "LoadImage", "inputs": {"image": "gallery/)" +
                                       picture + R"("}},
      "look": {"class_type": "PreviewAny", "inputs": {"source": ["picture", 0]}}})");
    return draw(engine, flow, "picture.IMAGE");
  }
  static double decibels(const std::vector<float>& a, const std::vector<float>& b) {
    BOOST_TEST_REQUIRE(a.size() == b.size());
    double squares = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      squares += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
    return -10 * std::log10(squares / double(a.size()));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(gallery, Gallery)

BOOST_DATA_TEST_CASE(every_workflow_draws_what_is_shown, kExhibits, exhibit) {
  Engine alone = engine({"cpu:0"});
  const std::vector<float> picture =
      draw(alone, alone.load(graphs() / exhibit.file), exhibit.output);
  std::vector<float> there = shown(alone, exhibit.picture);
  if (exhibit.least == kLeastOfBytes)
    for (float& number : there) number = std::min(1.0f, number + float(kHalfStep));
  const double likeness = decibels(picture, there);
  BOOST_TEST(likeness > exhibit.least, exhibit << ": " << likeness << " dB");
}

BOOST_TEST_DECORATOR(*boost::unit_test::label("long"))
BOOST_DATA_TEST_CASE(every_workflow_draws_the_same_however_it_is_placed, kExhibits, exhibit) {
  Engine alone = engine({"cpu:0"});
  const std::vector<float> picture =
      draw(alone, alone.load(graphs() / exhibit.file), exhibit.output);
  Engine divided = engine({"fake:0", "fake:1"});
  Workflow flow = divided.load(graphs() / exhibit.file);
  flow.place("model", "fake:0,fake:1");
  BOOST_TEST((draw(divided, flow, exhibit.output) == picture));
}

BOOST_AUTO_TEST_CASE(the_page_shows_every_picture_with_its_workflow) {
  const std::string page = test::read_text(graphs() / "README.md");
  for (const Exhibit& exhibit : kExhibits)
    for (const std::string& named :
         {"graphs/" + std::string(exhibit.file), "gallery/" + std::string(exhibit.picture)})
      BOOST_TEST(page.find(named) != std::string::npos, named << " is not on it");
}

BOOST_AUTO_TEST_SUITE_END()
