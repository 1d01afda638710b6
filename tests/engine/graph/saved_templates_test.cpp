// ComfyUI's own templates, converted, against what its front end exports: hashes in
// golden/saved_form/exports.txt, made by saved_form/export_with_front_end.py. The templates and the
// definitions of classes are in no repository of ours: where they are not beside the checkout (or
// in HEDDLE_COMPAT), there is nothing to compare.
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cstdlib>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/graph/saved_form.h"
#include "tests/support/golden_files.h"

namespace heddle::engine {
namespace {

namespace fs = std::filesystem;

fs::path compat_folder() {
  const char* given = std::getenv("HEDDLE_COMPAT");
  if (given != nullptr) return given;
  return test::tests_folder().parent_path().parent_path() / "shared" / "compat";
}

// As the script writes it: numbers as doubles (JavaScript has no others), members by name.
void write_canonical(const Json& json, std::string& out) {
  const auto text = [&](const std::string& t) { out += cat("s", t.size(), ":", t); };
  if (json.is_null()) {
    out += 'n';
  } else if (json.is_bool()) {
    out += json.as_bool() ? 't' : 'f';
  } else if (json.is_number()) {
    const auto bits = std::bit_cast<std::uint64_t>(json.as_double());
    for (int digit = 60; digit >= 0; digit -= 4) out += "0123456789abcdef"[bits >> digit & 15];
  } else if (json.is_string()) {
    text(json.as_string());
  } else if (json.is_array()) {
    out += '[';
    for (const Json& element : json.as_array()) write_canonical(element, out);
    out += ']';
  } else {
    std::map<std::string, const Json*> members;
    for (const Json::Member& member : json.members()) members.emplace(member.key, &member.value);
    out += '{';
    for (const auto& [key, value] : members) {
      text(key);
      write_canonical(*value, out);
    }
    out += '}';
  }
}

std::string hash_of(const Json& json) {
  std::string text;
  write_canonical(json, text);
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::string digits;
  for (int digit = 60; digit >= 0; digit -= 4) digits += "0123456789abcdef"[hash >> digit & 15];
  return digits;
}

// The front end reads a node of an older version by position, and sends a text where a whole number
// belongs. Here the values are read in the order that they were saved in.
void as_the_front_end(const std::string& name, Json& nodes) {
  if (name != "image_qwen_Image_2512_controlnet.json") return;
  Json node = nodes.at("123");
  Json inputs = node.at("inputs");
  BOOST_TEST(write_json(inputs.at("resize_type.multiple")) == "1");
  inputs.set("resize_type.multiple", inputs.at("scale_method"));
  nodes.set("123", node.set("inputs", std::move(inputs)));
}

boost::test_tools::assertion_result has_templates(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(fs::is_directory(compat_folder() / "templates"));
  result.message() << "there is no folder of ComfyUI's templates (HEDDLE_COMPAT)";
  return result;
}

BOOST_AUTO_TEST_SUITE(saved_templates)

BOOST_AUTO_TEST_CASE(every_template_becomes_what_the_front_end_exports,
                     *boost::unit_test::precondition(has_templates)) {
  ObjectInfo classes;
  for (const char* file : {"object_info_core.json", "object_info_2026.json"})
    classes.add(parse_json(test::read_text(compat_folder() / file), file));
  std::istringstream lines(test::read_text(test::tests_folder() / "golden/saved_form/exports.txt"));
  std::size_t count = 0;
  for (std::string name, expected; lines >> name >> expected; ++count) {
    try {
      const std::string text = test::read_text(compat_folder() / "templates" / name);
      Json nodes =
          convert_saved_form(*read_saved_form(text, name), classes, name, UnknownClasses::refuse);
      as_the_front_end(name, nodes);
      BOOST_TEST(hash_of(nodes) == expected, name << " is not what the front end exports");
    } catch (const Error& error) {
      BOOST_ERROR(error.full());
    }
  }
  BOOST_TEST(count == 76u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::engine
