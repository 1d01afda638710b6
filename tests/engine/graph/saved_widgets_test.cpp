// Values of widgets, which the saved form has by position.
#include <boost/test/unit_test.hpp>

#include "tests/engine/graph/saved_form_fixture.h"

namespace heddle::engine {
namespace {

using test::convert_nodes;
using test::inputs_of;
using test::refusal_of_nodes;

// The inputs of a node of this class with these values.
std::string with_values(const std::string& type, const std::string& values,
                        const std::string& rest = "") {
  return inputs_of(convert_nodes("{\"id\": 1, \"type\": \"" + type +
                                 "\", \"widgets_values\": " + values + rest + "}"),
                   "1");
}

BOOST_AUTO_TEST_SUITE(saved_widgets)

BOOST_AUTO_TEST_CASE(values_stand_in_the_order_of_the_definition_with_a_control_behind_seeds) {
  BOOST_TEST(with_values("Sample", "[5, \"randomize\", 30, 7.0, \"heun\", true]") ==
             R"({"seed":5,"steps":30,"cfg":7.0,"sampler":"heun","tiled":true})");
  // Of old interfaces; and of those that had none.
  BOOST_TEST(with_values("Sample", "[5, true, 30, 7, \"heun\"]") ==
             R"({"seed":5,"steps":30,"cfg":7,"sampler":"heun","tiled":false})");
  BOOST_TEST(with_values("Sample", "[5, 30, 7, \"heun\"]") ==
             R"({"seed":5,"steps":30,"cfg":7,"sampler":"heun","tiled":false})");
  BOOST_TEST(with_values("Old", "[5, \"fixed\", 9]") == R"({"noise_seed":5,"size":9})");
}

BOOST_AUTO_TEST_CASE(numbers_stay_what_they_are) {
  BOOST_TEST(
      with_values("Sample", "[18446744073709551615, \"fixed\", 5, 5.0, \"euler\", false]") ==
      R"({"seed":18446744073709551615,"steps":5,"cfg":5.0,"sampler":"euler","tiled":false})");
}

BOOST_AUTO_TEST_CASE(what_is_not_saved_is_the_class_s_default) {
  for (const char* values : {"[]", "null"})
    BOOST_TEST(with_values("Sample", values) ==
               R"({"seed":0,"steps":20,"cfg":8.0,"sampler":"euler","tiled":false})");
  BOOST_TEST(with_values("Model", "[null]") == R"({"name":"a.safetensors","dtype":"default"})");
}

BOOST_AUTO_TEST_CASE(an_object_names_its_values) {
  BOOST_TEST(with_values("Sample", R"({"cfg": 2, "seed": 1, "videopreview": {}})") ==
             R"({"seed":1,"steps":20,"cfg":2,"sampler":"euler","tiled":false})");
}

BOOST_AUTO_TEST_CASE(entries_of_sockets_and_of_buttons_are_passed_over) {
  // As many values as there are widgets and forced inputs, the control of noise_seed not counted.
  BOOST_TEST(with_values("Old", "[5, 6, 9]") == R"({"noise_seed":5,"size":9})");
  BOOST_TEST(with_values("Model", "[\"b.safetensors\", \"fp8\", \"image\", null]") ==
             R"({"name":"b.safetensors","dtype":"fp8"})");
}

BOOST_AUTO_TEST_CASE(the_control_of_a_choice_has_a_filter) {
  BOOST_TEST(with_values("Pick", "[\"y\", \"increment-wrap\", \"\", 4]") ==
             R"({"item":"y","count":4})");
}

BOOST_AUTO_TEST_CASE(a_mode_decides_which_values_follow_it) {
  BOOST_TEST(with_values("Resize", "[\"by size\", 64, \"lanczos\"]") ==
             R"({"mode":"by size","mode.width":64,"method":"lanczos"})");
  BOOST_TEST(with_values("Resize", "[\"by area\", 2.5, \"h264\", 20, 8, \"lanczos\"]") ==
             R"({"mode":"by area","mode.area":2.5,"mode.codec":"h264","mode.codec.crf":20,)"
             R"("mode.codec.multiple":8,"method":"lanczos"})");
  BOOST_TEST(with_values("Resize", "[\"nobody\", \"lanczos\"]") ==
             R"({"mode":"nobody","method":"lanczos"})");
}

BOOST_AUTO_TEST_CASE(a_mode_may_have_got_another_value_since) {
  BOOST_TEST(with_values("Resize", "[\"by area\", 2.5, \"h264\", 20, \"lanczos\"]") ==
             R"({"mode":"by area","mode.area":2.5,"mode.codec":"h264","mode.codec.crf":20,)"
             R"("mode.codec.multiple":1,"method":"lanczos"})");
}

BOOST_AUTO_TEST_CASE(rows_are_counted_in_front_of_their_values) {
  BOOST_TEST(with_values("Stack", "[2, \"a\", 0.5, \"b\", 2, \"end\"]") ==
             R"({"rows.0.name":"a","rows.0.strength":0.5,"rows.1.name":"b","rows.1.strength":2,)"
             R"("end":"end"})");
  BOOST_TEST(with_values("Stack", "[]") == R"({"rows.0.name":"","rows.0.strength":1.0,"end":""})");
}

BOOST_AUTO_TEST_CASE(lists_and_curves_are_wrapped) {
  BOOST_TEST(with_values("Compare", "[3, {\"points\": [[0, 1]]}, [\"#fff\"]]") ==
             R"({"view":{"__value__":["",""]},"scale":3,"curve":{"__type__":"CURVE","__value__":)"
             R"({"points":[[0,1]]}},"list":{"__value__":["#fff"]}})");
}

BOOST_AUTO_TEST_CASE(a_custom_choice_brings_its_own_options) {
  BOOST_TEST(with_values("CustomCombo", "[\"b\", 0, \"a\", \"b\", \"\"]") ==
             R"({"choice":"b","index":1,"option1":"a","option2":"b","option3":""})");
}

BOOST_AUTO_TEST_CASE(values_that_do_not_fit_are_told) {
  const std::string said = refusal_of_nodes(R"({"id": 3, "type": "Sample", "title": "Second pass",
                           "widgets_values": [1, "fixed", "euler", 8]})");
  BOOST_TEST(said ==
             "w.json:1:12: node '3' 'Second pass' (Sample): its 4 saved widget values do not fit "
             "the class: 'steps' (INT) would be \"euler\". It was saved by another version of the "
             "node; open it in ComfyUI, set its values and save it again.");
  // A link counts instead of such a value.
  BOOST_TEST(
      inputs_of(convert_nodes(R"({"id": 3, "type": "Old", "widgets_values": [1, "fixed", "?"],
                                         "inputs": [{"name": "size", "type": "INT", "link": 4}]},
                                        {"id": 5, "type": "Old"})",
                              R"([4, 5, 0, 3, 0, "INT"])"),
                "3") == R"({"noise_seed":1,"size":["5",0]})");
}

BOOST_AUTO_TEST_CASE(texts_are_those_that_a_server_gets) {
  BOOST_TEST(with_values("Text", R"(["a {red|blue {x|y}} cat // no\n/* no */\\{b\\}"])") ==
             R"({"text":"a red cat \n{b}"})");
  BOOST_TEST(with_values("Pick", R"(["{a|b} // c"])") == R"({"item":"{a|b} // c","count":1})");
  const Json nodes = convert_nodes(
      R"({"id": 1, "type": "Sample", "title": "Run", "widgets_values": [7, "fixed", 4, 2.0],
          "properties": {"Node name for S&R": "Sample"}},
         {"id": 2, "type": "SaveImage", "widgets_values": ["a/%Sample.seed%_%Run.cfg%_%no.x%_%%"]},
         {"id": 3, "type": "SaveImage", "widgets_values": ["%date:yyyy-MM-dd%/%date:yy%/%width%"]})");
  BOOST_TEST(inputs_of(nodes, "2") == R"({"filename_prefix":"a/7_2_%no.x%_%%"})");
  BOOST_TEST(inputs_of(nodes, "3") ==
             R"({"filename_prefix":"%year%-%month%-%day%/%date:yy%/%width%"})");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::engine
