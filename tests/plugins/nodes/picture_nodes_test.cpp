// Nodes of pictures, masks and latents against PyTorch, kornia and Pillow
// (make_picture_goldens.py).
#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "engine/base/json.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_file.h"

using namespace heddle::test;
using heddle::engine::Json;

namespace {

struct Pictures {
  std::filesystem::path path = tests_folder() / "plugins/nodes/picture_goldens.safetensors";
  TensorFile goldens{path};
  TemporaryFolder folder;
  heddle::Engine engine{options()};

  heddle::EngineOptions options() const {
    heddle::EngineOptions options = engine_options();
    options.output_dir = folder.path();
    return options;
  }

  // What makes the tensor "in.NAME": a mask has three axes, a latent five or a name of its own.
  std::string given(const std::string& name) const {
    const std::size_t rank = goldens.at("in." + name).shape.size();
    const std::string type = name.starts_with("latent") ? "latent" : rank == 3 ? "mask" : "image";
    return R"({"class_type": "test.)" + type + R"(", "inputs": {"path": ")" + path.string() +
           R"(", "name": "in.)" + name + "\"}}";
  }

  std::string flow(const Json& record) const {
    std::string nodes = R"({"out": {"class_type": ")" + record.at("class").as_string() +
                        R"(", "inputs": )" + heddle::engine::write_json(record.at("inputs")) + "}";
    for (const auto& more : record.at("more").members())
      nodes += ", \"" + more.key + "\": " + heddle::engine::write_json(more.value);
    const std::string used = heddle::engine::write_json(record);
    for (const auto& [name, entry] : goldens.entries()) {
      if (!name.starts_with("in.")) continue;
      const std::string id = name.substr(3);
      if (used.find("[\"" + id + "\",0]") != std::string::npos)
        nodes += ", \"" + id + "\": " + given(id);
    }
    const std::size_t outputs = record.at("outputs").as_array().size();
    for (std::size_t i = 0; i < outputs; ++i)
      nodes += ", \"look" + std::to_string(i) +
               R"(": {"class_type": "test.look", "inputs": {"value": ["out", )" +
               std::to_string(i) + "]}}";
    return nodes + "}";
  }

  heddle::Results run(const std::string& text, std::vector<std::string> keep) {
    return engine.start(engine.parse(text), {{}, std::move(keep)}).wait();
  }
};

// The inputs as they are declared, without what is told to people.
Json without_tooltips(const Json& inputs) {
  Json plain = Json::object();
  for (const auto& part : inputs.members()) {
    const auto& section = part.key;
    const Json& ports = part.value;
    Json named = Json::object();
    for (const auto& port : ports.members()) {
      const auto& name = port.key;
      const Json& spec = port.value;
      if (section == "hidden") {
        named.set(name, spec);
        continue;
      }
      Json options = Json::object();
      for (const auto& option : spec.at(std::size_t{1}).members())
        if (option.key != "tooltip") options.set(option.key, option.value);
      Json pair = Json::array();
      pair.push(spec.at(std::size_t{0}));
      pair.push(std::move(options));
      named.set(name, std::move(pair));
    }
    plain.set(section, std::move(named));
  }
  return plain;
}

double greatest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::isnan(a[i]) ? INFINITY : std::fabs(double(a[i]) - double(b[i])));
  return most;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(picture_nodes, Pictures)

BOOST_AUTO_TEST_CASE(nodes_make_what_pytorch_kornia_and_pillow_make) {
  const Json cases = heddle::engine::parse_json(
      read_text(tests_folder() / "plugins/nodes/picture_cases.json"), "picture_cases.json");
  for (const Json& record : cases.as_array()) {
    std::vector<std::string> keep;
    for (const Json& output : record.at("outputs").as_array())
      keep.push_back("out." + output.at(std::size_t{0}).as_string());
    BOOST_TEST_CONTEXT(heddle::engine::write_json(record)) {
      const heddle::Results results = run(flow(record), keep);
      for (const Json& output : record.at("outputs").as_array()) {
        const std::string name = output.at(std::size_t{0}).as_string();
        const std::string field = name == "LATENT" ? "samples" : "";
        const std::string golden = output.at(std::size_t{1}).as_string();
        BOOST_TEST((results.shape("out." + name, field) == goldens.at(golden).shape));
        const double difference =
            greatest_difference(results.floats("out." + name, field), goldens.floats(golden));
        BOOST_TEST(difference <= output.at(std::size_t{2}).as_double());
      }
    }
  }
  BOOST_TEST(cases.as_array().size() == 138u);
}

// Names, order, types, defaults, limits, choices, outputs, category and flags; what else the engine
// tells (descriptions) is its own.
BOOST_AUTO_TEST_CASE(definitions_are_comfyuis) {
  const Json expected = heddle::engine::parse_json(
      read_text(tests_folder() / "golden/object_info/pictures.json"), "pictures.json");
  for (const auto& node : expected.members()) {
    const std::string type = node.key;
    const Json& golden = node.value;
    const Json info = heddle::engine::parse_json(engine.object_info(type.c_str()), type).at(type);
    for (const auto& member : golden.members()) {
      const std::string key = member.key;
      const Json& value = member.value;
      const Json* found = info.find(key);
      BOOST_REQUIRE_MESSAGE(found != nullptr, type << " has no " << key);
      Json plain = *found;
      if (key == "input") plain = without_tooltips(plain);
      BOOST_TEST((plain == value), type << "." << key << " is " << heddle::engine::write_json(plain)
                                        << "\nnot " << heddle::engine::write_json(value));
    }
    for (const char* flag : {"deprecated", "experimental"})
      BOOST_TEST((info.find(flag) != nullptr) == (golden.find(flag) != nullptr),
                 type << "." << flag);
  }
  BOOST_TEST(expected.members().size() == 77u);
}

BOOST_AUTO_TEST_SUITE_END()
