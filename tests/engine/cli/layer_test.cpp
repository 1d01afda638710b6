#include "engine/cli/layer.h"

#include <boost/test/unit_test.hpp>
#include <map>

#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace heddle::cli {
BOOST_AUTO_TEST_SUITE(layer)

namespace {

using Texts = std::vector<std::string>;

Lookup variables(std::map<std::string, std::string> map) {
  return [map = std::move(map)](const std::string& name) -> std::optional<std::string> {
    const auto found = map.find(name);
    return found == map.end() ? std::nullopt : std::optional(found->second);
  };
}

Texts texts(const Layer& layer, std::string_view option) {
  Texts all;
  for (const Given& given : layer.of(option)) all.push_back(given.text);
  return all;
}

Layer configuration(std::string_view text) {
  return read_configuration(text, "/flows/heddle.json");
}

std::string refusal(std::string_view text) {
  const engine::Error error = test::refusal_of([&] { configuration(text); });
  BOOST_TEST((error.code() == engine::Code::invalid_argument));
  return error.what();
}

Layer command_line(std::string_view option, const Texts& values) {
  Layer layer;
  for (const std::string& value : values)
    layer.add(*find_option(option), {value, Origin::command_line, "--x"});
  return layer;
}

BOOST_AUTO_TEST_CASE(every_option_is_a_variable) {
  for (const OptionSpec& option : all_options()) {
    const Layer layer = read_environment(variables({{environment_name(option), "a=b"}}));
    BOOST_TEST_CONTEXT(option.name) BOOST_TEST(texts(layer, option.name) == Texts{"a=b"});
  }
  BOOST_TEST(environment_name(*find_option("models")) == "HEDDLE_MODELS");
}

BOOST_AUTO_TEST_CASE(variables_separate_lists_paths_and_pairs_but_not_assignments) {
  const Layer layer = read_environment(variables({{"HEDDLE_MODELS", "/a:/b"},
                                                  {"HEDDLE_DEVICES", "cpu:0,cpu:1"},
                                                  {"HEDDLE_PLACE", "1=cpu:0,2=cpu:1,cpu:2,3=cpu:3"},
                                                  {"HEDDLE_SET", "text.text=one, two"},
                                                  {"HEDDLE_THREADS", ""}}));
  BOOST_TEST(texts(layer, "models") == (Texts{"/a", "/b"}));
  BOOST_TEST(texts(layer, "devices") == (Texts{"cpu:0", "cpu:1"}));
  BOOST_TEST(texts(layer, "place") == (Texts{"1=cpu:0", "2=cpu:1,cpu:2", "3=cpu:3"}));
  BOOST_TEST(texts(layer, "set") == Texts{"text.text=one, two"});
  BOOST_TEST(texts(layer, "threads") == Texts{});
  BOOST_TEST(layer.of("set").front().where == "HEDDLE_SET");
}

BOOST_AUTO_TEST_CASE(variables_may_be_json_where_an_option_is_repeated) {
  const Layer layer = read_environment(variables(
      {{"HEDDLE_SET", R"({"a.text": "x", "b.seed": 5})"}, {"HEDDLE_MODELS", R"(["/a:b"])"}}));
  BOOST_TEST(texts(layer, "set") == (Texts{"a.text=x", "b.seed=5"}));
  BOOST_TEST(texts(layer, "models") == Texts{"/a:b"});
}

BOOST_AUTO_TEST_CASE(a_configuration_takes_every_form_of_a_value) {
  const Layer layer = configuration(R"({
    "models": "/one", "devices": ["cpu:0", "cpu:1"], "threads": 3, "json": true,
    "set": {"KSampler.seed": 7, "text.text": "a house"}, "place": ["1=cpu"], "budget": {"cpu": 4096}
  })");
  BOOST_TEST(texts(layer, "models") == Texts{"/one"});
  BOOST_TEST(texts(layer, "devices") == (Texts{"cpu:0", "cpu:1"}));
  BOOST_TEST(texts(layer, "threads") == Texts{"3"});
  BOOST_TEST(texts(layer, "json") == Texts{"true"});
  BOOST_TEST(texts(layer, "set") == (Texts{"KSampler.seed=7", "text.text=a house"}));
  BOOST_TEST(texts(layer, "place") == Texts{"1=cpu"});
  BOOST_TEST(texts(layer, "budget") == Texts{"cpu=4096"});
  BOOST_TEST(layer.of("models").front().where == "/flows/heddle.json:2:15");
}

BOOST_AUTO_TEST_CASE(paths_in_a_configuration_are_relative_to_its_folder_but_not_those_of_plugins) {
  const Layer layer =
      configuration(R"({"models": ["m", "/m"], "output": "out", "plugins": "extra"})");
  BOOST_TEST(texts(layer, "models") == (Texts{"/flows/m", "/m"}));
  BOOST_TEST(texts(layer, "output") == Texts{"/flows/out"});
  BOOST_TEST(texts(layer, "plugins") == Texts{"extra"});
}

BOOST_AUTO_TEST_CASE(an_unknown_key_is_refused_with_the_nearest_option) {
  const std::string message = refusal("{\n  \"modles\": \"/m\"}");
  BOOST_TEST(message.find("/flows/heddle.json:2:3: there is no option 'modles'.") == 0u);
  BOOST_TEST(message.find("Did you mean 'models'?") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_object_under_the_name_of_a_kind_of_device_is_options_of_its_own) {
  const Layer layer =
      configuration(R"({"fake": {"count": 4}, "options": {"cpu": {"threads": 2}}})");
  BOOST_TEST(texts(layer, "options") == (Texts{R"(fake={"count":4})", R"(cpu={"threads":2})"}));
  BOOST_TEST(layer.of("options").front().where == "/flows/heddle.json:1:2");
  // No text is such options, and no object under what is nearly an option's name.
  BOOST_TEST(refusal(R"({"fake": "4"})").find("there is no option 'fake'") != std::string::npos);
  BOOST_TEST(refusal(R"({"budgt": {"cpu": 1}})").find("Did you mean 'budget'?") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_value_of_the_wrong_kind_is_refused_with_its_place) {
  BOOST_TEST(refusal(R"({"threads": "3"})") ==
             "/flows/heddle.json:1:13: 'threads' expects a whole number, got the text '3'.");
  BOOST_TEST(refusal(R"({"json": 1})").find("'json' expects true or false") != std::string::npos);
  BOOST_TEST(refusal(R"({"models": [1]})").find("'models' expects a string") != std::string::npos);
  BOOST_TEST(refusal(R"({"place": 5})").find("an object, a string or an array") !=
             std::string::npos);
  BOOST_TEST(refusal(R"({"place": {"a": 5}})").find("expects a string") != std::string::npos);
  BOOST_TEST(refusal("[]").find("a configuration is an object") != std::string::npos);
  BOOST_TEST(refusal("{").find("/flows/heddle.json:1:2") == 0u);
}

BOOST_AUTO_TEST_CASE(of_single_values_and_lists_the_first_layer_counts) {
  const Layer all = lay_over(
      {command_line("threads", {"1"}),
       read_environment(variables({{"HEDDLE_THREADS", "2"}, {"HEDDLE_DEVICES", "cpu:0,cpu:1"}})),
       configuration(R"({"threads": 3, "devices": "cuda", "models": "/m"})")});
  BOOST_TEST(texts(all, "threads") == Texts{"1"});
  BOOST_TEST(texts(all, "devices") == (Texts{"cpu:0", "cpu:1"}));
  BOOST_TEST(texts(all, "models") == Texts{"/m"});
}

BOOST_AUTO_TEST_CASE(pairs_add_up_with_the_highest_precedence_last) {
  const Layer all = lay_over({command_line("set", {"a.x=1"}),
                              read_environment(variables({{"HEDDLE_SET", "a.x=2"}})),
                              configuration(R"({"set": {"a.x": 3, "a.y": 4}})")});
  BOOST_TEST(texts(all, "set") == (Texts{"a.x=3", "a.y=4", "a.x=2", "a.x=1"}));
}

BOOST_AUTO_TEST_CASE(configuration_files_are_looked_for_beside_the_workflow_and_then_at_home) {
  const test::TemporaryFolder folder;
  const auto xdg = folder / "xdg/heddle", home = folder / "home/.config/heddle";
  std::filesystem::create_directories(xdg);
  std::filesystem::create_directories(home);
  std::filesystem::create_directories(folder / "flows");
  using Paths = std::vector<std::filesystem::path>;
  const Lookup both = variables(
      {{"XDG_CONFIG_HOME", (folder / "xdg").string()}, {"HOME", (folder / "home").string()}});
  const Lookup only_home = variables({{"HOME", (folder / "home").string()}});
  BOOST_TEST((configuration_files(folder / "flows/a.json", both) == Paths{}));
  folder.write("flows/heddle.json", "{}");
  folder.write("xdg/heddle/config.json", "{}");
  folder.write("home/.config/heddle/config.json", "{}");
  BOOST_TEST((configuration_files(folder / "flows/a.json", both) ==
              Paths{folder / "flows/heddle.json", xdg / "config.json"}));
  BOOST_TEST((configuration_files("", only_home) == Paths{home / "config.json"}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::cli
