// The definitions of the nodes that ship, against ComfyUI's: names, order, types, defaults, limits,
// choices, outputs, category, name for people and flags of every class that both have. What is
// compared are hashes (tests/golden/object_info/make_digest.py, which with --show prints what they
// were made of); files that can be chosen are only compared in that there are some.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <sstream>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/facade/data.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden_files.h"

namespace heddle::test {
namespace {

using engine::cat;
using engine::Json;

// Parts that differ, as they are named in the digest. One that does not differ any more has to go.
struct Exception {
  const char *node, *part, *reason;
};
const std::vector<Exception> kExceptions = {
    {"TrimAudioDuration", "r:start_index", "its least whole number has more than 64 bits"},
};

// Classes that ComfyUI itself has not.
const std::set<std::string_view> kOwn = {"Discard",
                                         "RandomConditioning",
                                         "RandomLatent",  // of heddle
                                         "heddle.LoopOutputs",
                                         "SaveImageWebsocket",  // its sample of a custom node
                                         "UnetLoaderGGUF",
                                         "CLIPLoaderGGUF",  // of the extension ComfyUI-GGUF
                                         "DualCLIPLoaderGGUF",
                                         "IPAdapter",
                                         "IPAdapterAdvanced",
                                         "IPAdapterBatch",
                                         "IPAdapterCombineEmbeds",
                                         "IPAdapterEmbeds",
                                         "IPAdapterEmbedsBatch",
                                         "IPAdapterEncoder",
                                         "IPAdapterModelLoader",
                                         "IPAdapterStyleComposition",
                                         "IPAdapterUnifiedLoader"};  // of ComfyUI_IPAdapter_plus

// Of the classes that the core of ComfyUI had when the older of the two lists was made.
constexpr int kLeastOfCore = 299;

// The same text for equal JSON, as in make_digest.py.
void add_canonical(const Json& json, std::string& text) {
  const auto add_text = [&](const std::string& s) { text += cat("s", s.size(), ":", s); };
  switch (json.kind()) {
    case Json::Kind::null:
      text += 'n';
      return;
    case Json::Kind::boolean:
      text += json.as_bool() ? 't' : 'f';
      return;
    case Json::Kind::integer:
      text += cat("i", json.as_int64(), ";");
      return;
    case Json::Kind::unsigned_integer:
      text += cat("i", json.as_uint64(), ";");
      return;
    case Json::Kind::real: {
      const double number = json.as_double();
      std::uint64_t bits = 0;
      std::memcpy(&bits, &number, sizeof bits);
      char hex[20];
      std::snprintf(hex, sizeof hex, "d%016llx", static_cast<unsigned long long>(bits));
      text += hex;
      return;
    }
    case Json::Kind::string:
      return add_text(json.as_string());
    case Json::Kind::array:
      text += '[';
      for (const Json& item : json.as_array()) add_canonical(item, text);
      text += ']';
      return;
    case Json::Kind::object: {
      std::map<std::string, const Json*> sorted;
      for (const Json::Member& member : json.members())
        sorted.emplace(std::string(member.key), &member.value);
      text += '{';
      for (const auto& [key, value] : sorted) {
        add_text(key);
        add_canonical(*value, text);
      }
      text += '}';
      return;
    }
  }
}

std::string short_hash(const Json& json) {
  std::string text;
  add_canonical(json, text);
  std::uint64_t number = 0xCBF29CE484222325ull;
  for (const char byte : text) number = (number ^ static_cast<unsigned char>(byte)) * 0x100000001B3;
  char hex[8];
  std::snprintf(hex, sizeof hex, "%06llx",
                static_cast<unsigned long long>((number ^ number >> 24 ^ number >> 48) & 0xFFFFFF));
  return hex;
}

// A class as the digest describes it: its parts, each with what it says.
struct Definition {
  std::string category, title, flags;
  std::vector<std::pair<std::string, std::string>> parts;  // name, hash; in the order of inputs
  bool is_core = false, is_certain = false;
};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line)
    if (c == '\t')
      fields.emplace_back();
    else
      fields.back() += c;
  return fields;
}

std::map<std::string, Definition> digest() {
  std::map<std::string, Definition> all;
  std::istringstream file(read_text(tests_folder() / "golden/object_info/definitions.txt"));
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> fields = split(line);
    Definition& one = all[fields.at(0)];
    one.is_core = !fields.at(1).empty();
    one.is_certain = !fields.at(2).empty();
    one.category = fields.at(3);
    one.title = fields.at(4);
    one.flags = fields.at(5);
    for (std::size_t i = 6; i < fields.size(); ++i) {
      const std::size_t at = fields[i].rfind('=');
      one.parts.emplace_back(fields[i].substr(0, at), fields[i].substr(at + 1));
    }
  }
  return all;
}

// Without what is told to people, and without the files' names.
Json plain_input(const Json& spec, bool is_of_files) {
  const Json files("files");
  const auto names = [&](const Json& list) {
    return is_of_files || (list.is_array() && list.size() == 0) ? files : list;
  };
  const Json& type = spec.at(std::size_t{0});
  Json options = Json::object();
  for (const Json::Member& option : spec.at(std::size_t{1}).members())
    if (option.key != "tooltip")
      options.set(option.key, option.key == "options" ? names(option.value) : option.value);
  Json plain = Json::array();
  plain.push(type.is_array() ? names(type) : type);
  plain.push(std::move(options));
  return plain;
}

bool offers_files(const heddle_widget* widget) {
  return widget != nullptr &&
         (widget->kind == HEDDLE_WIDGET_FILE || widget->kind == HEDDLE_WIDGET_FOLDER);
}

// What heddle says of a class, part by part; `shown`: the JSON of each.
Definition definition_of(const engine::NodeType& type, const engine::Catalog& catalog,
                         std::map<std::string, std::string>& shown) {
  const std::string name(type.name());
  const Json info = engine::object_info(type, catalog).at(name);
  Definition one;
  one.category = info.at("category").as_string();
  one.title = info.at("display_name").as_string();
  for (const char* flag : {"deprecated", "dev_only", "experimental", "has_intermediate_output",
                           "is_input_list", "output_node"})
    if (const Json* is_set = info.find(flag); is_set != nullptr && is_set->as_bool())
      one.flags += (one.flags.empty() ? "" : ",") + std::string(flag);
  const auto add = [&](const std::string& part, const Json& json) {
    one.parts.emplace_back(part, short_hash(json));
    shown[part] = engine::write_json(json);
  };
  Json outputs = Json::array(), all = Json::array();
  for (std::size_t o = 0; o < info.at("output").size(); ++o) {
    Json output = Json::array();
    for (const char* what : {"output", "output_name", "output_is_list"})
      output.push(info.at(what).at(o));
    outputs.push(std::move(output));
  }
  const Json* matches = info.find("output_matchtypes");
  all.push(std::move(outputs));
  all.push(matches == nullptr ? Json::array() : *matches);
  add("outputs", all);
  for (const char* section : {"required", "optional", "hidden"}) {
    const Json* inputs = info.at("input").find(section);
    if (inputs == nullptr) continue;
    for (const Json::Member& input : inputs->members()) {
      const std::string key(input.key);
      const heddle_port& port = type.input(*type.find_input(key));
      add(std::string(1, *section) + ":" + key,
          input.value.is_string() ? input.value
                                  : plain_input(input.value, offers_files(port.widget)));
    }
  }
  return one;
}

std::vector<std::string> names_of(const Definition& one) {
  std::vector<std::string> names;
  for (const auto& part : one.parts) names.push_back(part.first);
  return names;
}

struct Definitions {
  std::map<std::string, Definition> expected = digest();
  Engine::Data engine{shipped_options()};

  // Without any folder of models, and without the nodes of tests.
  static EngineOptions shipped_options() {
    EngineOptions options = engine_options();
    options.plugin_dirs.clear();
    return options;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(definitions, Definitions)

BOOST_AUTO_TEST_CASE(every_class_is_defined_as_comfyui_defines_it) {
  const engine::Catalog& catalog = *engine.plugins.catalog;
  std::set<std::string> unused;
  for (const Exception& one : kExceptions) unused.insert(cat(one.node, " ", one.part));
  for (const std::string_view name : catalog.type_names()) {
    const engine::NodeTypeRef type = catalog.find(name);
    const auto found = expected.find(std::string(name));
    if (type->has(HEDDLE_NODE_BLOCK)) continue;
    BOOST_TEST((found == expected.end()) == kOwn.contains(name),
               name << " is a class of ComfyUI's and of heddle's own, or of neither");
    if (found == expected.end()) continue;
    const Definition& wanted = found->second;
    std::map<std::string, std::string> shown;
    const Definition have = definition_of(*type, catalog, shown);
    BOOST_TEST(have.category == wanted.category, name << ": category");
    BOOST_TEST(have.title == wanted.title, name << ": name for people");
    BOOST_TEST(have.flags == wanted.flags, name << ": flags");
    BOOST_TEST((names_of(have) == names_of(wanted)),
               name << " has (" << engine::join(names_of(have), ", ") << "), ComfyUI ("
                    << engine::join(names_of(wanted), ", ") << ")");
    const std::map<std::string, std::string> hashes(wanted.parts.begin(), wanted.parts.end());
    for (const auto& [part, hash] : have.parts) {
      const auto other = hashes.find(part);
      if (other == hashes.end() || other->second == hash) continue;
      const bool is_excepted = unused.erase(cat(name, " ", part)) > 0;
      BOOST_TEST(is_excepted, name << ": " << part << " is " << shown[part]
                                   << ", ComfyUI has something else: make_digest.py --show");
    }
  }
  for (const std::string& one : unused)
    BOOST_ERROR(one << " does not differ any more: take it off the list of exceptions");
}

BOOST_AUTO_TEST_CASE(as_many_classes_are_there_as_ever_were) {
  int core = 0, of_core = 0, certain = 0, of_certain = 0;
  std::string lacking;
  for (const auto& [name, one] : expected) {
    const bool is_there = engine.plugins.catalog->find(name) != nullptr;
    of_core += one.is_core ? 1 : 0;
    of_certain += one.is_certain ? 1 : 0;
    core += one.is_core && is_there ? 1 : 0;
    certain += one.is_certain && is_there ? 1 : 0;
    if (one.is_core && !is_there) lacking += (lacking.empty() ? "" : ", ") + name;
  }
  BOOST_TEST_MESSAGE("classes of the core: " << core << " of " << of_core
                                             << "; certain later ones: " << certain << " of "
                                             << of_certain << "; lacking of the core: " << lacking);
  BOOST_TEST(of_core == 382);
  BOOST_TEST(core >= kLeastOfCore, "lacking: " << lacking);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
