// Conditionings as files, against one that the package safetensors wrote
// (make_conditioning_goldens.py).
#include "engine/base/text.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::engine::cat;
using heddle::engine::Json;
using namespace heddle::test;

namespace {

struct ConditioningFiles : NodeFixture {
  const std::filesystem::path golden = here() / "data/conditioning.safetensors";
  const std::filesystem::path given = folder / "models/embeddings/text.safetensors";

  ConditioningFiles() {
    std::filesystem::create_directories(given.parent_path());
    std::filesystem::copy_file(golden, given);
  }

  static std::string save(const std::string& from) {
    return cat(R"("save": {"class_type": "SaveConditioning", "inputs": {"conditioning": [")", from,
               R"(", 0], "filename_prefix": "kept/text"}})");
  }
  static constexpr const char* kLoad =
      R"("load": {"class_type": "ConditioningLoader", "inputs": {"conditioning_name": "text.safetensors"}})";

  // Where the one file of a run is.
  std::filesystem::path saved_by(const std::string& nodes) {
    const heddle::Results results = run(nodes, {});
    BOOST_REQUIRE(results.files().size() == 1u);
    return results.files()[0];
  }
  std::string refused(const std::string& nodes) {
    return engine_refusal([&] { run(nodes, {}); });
  }
  static Json header_of(const std::string& file) {
    std::uint64_t size = 0;
    std::memcpy(&size, file.data(), sizeof size);
    return heddle::engine::parse_json(file.substr(8, size), "header");
  }
  static Json options_of(const std::filesystem::path& path) {
    const Json header = header_of(read_text(path));
    return heddle::engine::parse_json(
        header.at("__metadata__").at("conditioning_options").as_string(), "options");
  }
  // Of each tensor its type and shape, and its bytes.
  static std::map<std::string, std::string> tensors_of(const std::filesystem::path& path) {
    const std::string file = read_text(path);
    std::uint64_t size = 0;
    std::memcpy(&size, file.data(), sizeof size);
    const Json header = header_of(file);
    std::map<std::string, std::string> tensors;
    for (const Json::Member& member : header.members()) {
      if (member.key == "__metadata__") continue;
      const Json& place = member.value.at("data_offsets");
      const auto begin = std::size_t(place.at(std::size_t{0}).as_int64());
      const auto end = std::size_t(place.at(std::size_t{1}).as_int64());
      tensors[std::string(member.key)] = cat(member.value.at("dtype").as_string(), " ",
                                             heddle::engine::write_json(member.value.at("shape")),
                                             file.substr(8 + size + begin, end - begin));
    }
    return tensors;
  }
};

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(conditioning_files, ConditioningFiles)

BOOST_AUTO_TEST_CASE(all_of_a_file_is_read_and_saved_again) {
  const std::filesystem::path file = saved_by(cat(kLoad, ", ", save("load")));
  BOOST_TEST(file.filename().string() == "text_00001_.safetensors");
  BOOST_TEST(file.parent_path().filename().string() == "kept");
  BOOST_TEST(tensors_of(golden).size() == 5u);
  BOOST_TEST((tensors_of(file) == tensors_of(golden)));
  BOOST_TEST(heddle::engine::write_json(options_of(file)) ==
             heddle::engine::write_json(options_of(golden)));
}

BOOST_AUTO_TEST_CASE(a_text_from_a_file_draws_the_same) {
  const std::filesystem::path file = saved_by(cat(
      R"("guided": {"class_type": "FluxGuidance", "inputs": {"conditioning": ["one", 0], "guidance": 2.5}}, )",
      save("guided")));
  BOOST_TEST(options_of(file).at("guidance").as_double() == 2.5);
  std::filesystem::copy_file(file, given, std::filesystem::copy_options::overwrite_existing);
  const auto drawn = [&](const std::string& text) {
    return run(cat(kLoad, ", \"out\": ", ksampler(cat(R"("positive": [")", text, "\", 0]")), ", ",
                   kLook),
               {"out.LATENT"})
        .floats("out.LATENT", "samples");
  };
  BOOST_TEST((drawn("load") == drawn("one")));
}

BOOST_AUTO_TEST_CASE(what_a_file_cannot_hold_is_named) {
  const std::string two =
      R"("both": {"class_type": "ConditioningCombine", "inputs": {"conditioning_1": ["one", 0], "conditioning_2": ["two", 0]}}, )";
  const std::string several = refused(two + save("both"));
  BOOST_TEST(says(several, "it has 2 entries, and a file holds one"), several);
  const std::string area =
      R"("part": {"class_type": "ConditioningSetArea", "inputs": {"conditioning": ["one", 0], "width": 64, "height": 64, "x": 0, "y": 0, "strength": 1}}, )";
  const std::string placed = refused(area + save("part"));
  BOOST_TEST(says(placed, "its 'area' cannot be saved"), placed);
}

BOOST_AUTO_TEST_CASE(damaged_files_are_refused) {
  const std::string whole = read_text(golden);
  const auto read = [&](const std::string& content) {
    folder.write("models/embeddings/text.safetensors", content);
    return refused(cat(kLoad, ", ", save("load")));
  };
  BOOST_TEST(read(whole) == "");
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{60}, whole.size() - 1})
    BOOST_TEST(says(read(whole.substr(0, size)), "text.safetensors: "), size);
  std::string renamed = whole;
  renamed.replace(renamed.find("\"conditioning\""), 14, "\"konditioning\"");
  BOOST_TEST(says(read(renamed), "it has no tensor 'conditioning'"), read(renamed));
  std::string lying = whole;
  lying.replace(lying.find("[1,5,8]"), 7, "[1,9,8]");
  BOOST_TEST(says(read(lying), "its numbers are not where its header says"), read(lying));
}

BOOST_AUTO_TEST_SUITE_END()
