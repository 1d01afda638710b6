// Nodes that read files of the input folder judge their names: what ComfyUI's server answers to one
// that is not there, and what people are told.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using engine::cat;
using engine::Json;

namespace {

struct Reader {
  const char *name, *input, *said;
};
std::ostream& operator<<(std::ostream& out, const Reader& reader) { return out << reader.name; }

const std::vector<Reader> kReaders{{"LoadImage", "image", "Invalid image file: "},
                                   {"LoadImageMask", "image", "Invalid image file: "},
                                   {"LoadImageOutput", "image", "Invalid image file: "},
                                   {"WebcamCapture", "image", "Invalid image file: "},
                                   {"LoadLatent", "latent", "Invalid latent file: "},
                                   {"LoadAudio", "audio", "Invalid audio file: "},
                                   {"LoadVideo", "file", "Invalid video file: "}};

std::string reading(const Reader& reader, const std::string& file) {
  const std::string camera = std::string_view(reader.name) == "WebcamCapture"
                                 ? R"(, "width": 0, "height": 0, "capture_on_queue": true)"
                                 : "";
  return cat(R"({"1": {"class_type": ")", reader.name, R"(", "inputs": {")", reader.input,
             R"(": ")", file, "\"", camera,
             R"(}}, "2": {"class_type": "PreviewAny", "inputs": {"source": ["1", 0]}}})");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(file_validators)

BOOST_DATA_TEST_CASE(a_file_that_is_not_there_is_refused_in_comfyui_s_words, kReaders, reader) {
  const test::TemporaryFolder top;
  std::filesystem::create_directories(top / "in");
  std::filesystem::create_directories(top / "out");
  top.write("in/here.png", "x");
  top.write("out/saved.png", "x");
  EngineOptions options = test::engine_options();
  options.input_dir = top / "in";
  options.output_dir = top / "out";
  const Engine engine(options);
  const std::vector<std::string> known = engine.node_types();
  if (std::ranges::find(known, reader.name) == known.end()) return;  // built without video
  const auto problems = [&](const std::string& file) {
    return engine.check(engine.parse(reading(reader, file), "w.json"));
  };
  for (const char* file : {"here.png", "saved.png [output]"})
    BOOST_TEST(problems(file).errors.empty(), file);
  for (const std::string file : {"gone.png", "saved.png", "here.png [output]"}) {
    const Engine::Problems found = problems(file);
    BOOST_REQUIRE(found.errors.size() == 1u);
    const Json answer = engine::parse_json(found.answer, "answer");
    const Json& error = answer.at("node_errors").at("1").at("errors").at(std::size_t{0});
    BOOST_TEST(error.at("type").as_string() == "custom_validation_failed");
    BOOST_TEST(error.at("message").as_string() == "Custom validation failed for node");
    BOOST_TEST(error.at("details").as_string() == cat(reader.input, " - ", reader.said, file));
    BOOST_TEST(error.at("extra_info").at("input_name").as_string() == reader.input);
  }
}

BOOST_AUTO_TEST_CASE(people_are_told_where_it_was_looked_for) {
  const test::TemporaryFolder top;
  EngineOptions options = test::engine_options();
  options.input_dir = top.path();
  const Engine engine(options);
  const Engine::Problems found =
      engine.check(engine.parse(reading(kReaders[0], "gone.png"), "w.json"));
  BOOST_REQUIRE(found.errors.size() == 1u);
  BOOST_TEST(found.errors[0].find("there is no file 'gone.png' in 'input'. Looked in") !=
             std::string::npos);
  BOOST_TEST(found.lacking == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
