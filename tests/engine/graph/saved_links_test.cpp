// Links of the saved form: both spellings, and what they are followed through.
#include <boost/test/unit_test.hpp>

#include "tests/engine/graph/saved_form_fixture.h"

namespace heddle::engine {
namespace {

using test::convert_nodes;
using test::inputs_of;
using test::refusal_of_nodes;

const std::string kModel = R"({"id": 1, "type": "Model", "outputs": [
  {"name": "MODEL", "type": "MODEL", "links": [1]}, {"name": "VAE", "type": "VAE", "links": []}]})";

std::string sample(const std::string& id, const std::string& inputs, const std::string& rest = "") {
  return R"({"id": )" + id + R"(, "type": "Sample", "widgets_values": [0, "fixed"], "inputs": [)" +
         inputs + R"(], "outputs": [{"name": "IMAGE", "type": "IMAGE"}])" + rest + "}";
}

std::string input(const std::string& name, const std::string& type, const std::string& link) {
  return R"({"name": ")" + name + R"(", "type": ")" + type + R"(", "link": )" + link + "}";
}

// What the input "images" of node 9, which reads link 5, gets.
std::string saved_image(const std::string& nodes, const std::string& links) {
  const std::string reader =
      R"({"id": 9, "type": "SaveImage", "inputs": [)" + input("images", "IMAGE", "5") + "]}";
  return inputs_of(convert_nodes(nodes + ", " + reader, links), "9");
}
const std::string kNone = R"({"filename_prefix":"ComfyUI"})";

BOOST_AUTO_TEST_SUITE(saved_links)

BOOST_AUTO_TEST_CASE(links_are_lists_or_objects_and_count_before_values) {
  for (const char* link :
       {R"([1, 1, 0, 2, 0, "MODEL"])",
        R"({"id": 1, "origin_id": 1, "origin_slot": 0, "target_id": 2, "target_slot": 0})"}) {
    const Json nodes = convert_nodes(
        kModel + ", " +
            sample("2", input("model", "MODEL", "1") + ", " + input("seed", "INT", "null")),
        link);
    BOOST_TEST(inputs_of(nodes, "2").find(R"("model":["1",0])") != std::string::npos);
    BOOST_TEST(write_json(nodes.at("1")) ==
               R"({"inputs":{"name":"a.safetensors","dtype":"default"},"class_type":"Model",)"
               R"("_meta":{"title":"Load Model"}})");
  }
}

BOOST_AUTO_TEST_CASE(ids_may_be_texts_and_nodes_keep_their_titles_and_packages) {
  const Json nodes = convert_nodes(
      R"({"id": "x y", "type": "Text", "title": "Mine", "properties": {"cnr_id": "core",
          "ver": "1.2", "aux_id": 5}})");
  BOOST_TEST(write_json(nodes.at("x y").at("_meta")) ==
             R"({"title":"Mine","cnr_id":"core","ver":"1.2"})");
}

BOOST_AUTO_TEST_CASE(a_reroute_passes_on_and_notes_are_gone) {
  const std::string reroute = R"({"id": 4, "type": "Reroute", "inputs": [)" + input("", "*", "4") +
                              R"(], "outputs": [{"name": "", "type": "IMAGE", "links": [5]}]})";
  const std::string notes = R"({"id": 6, "type": "Note", "widgets_values": ["?"]},
                               {"id": 7, "type": "MarkdownNote"})";
  const Json nodes = convert_nodes(sample("2", "") + "," + reroute + "," + notes);
  BOOST_TEST(nodes.size() == 1u);
  BOOST_TEST(saved_image(sample("2", "") + "," + reroute,
                         R"([4, 2, 0, 4, 0, "IMAGE"], [5, 4, 0, 9, 0, "IMAGE"])") ==
             R"({"filename_prefix":"ComfyUI","images":["2",0]})");
}

BOOST_AUTO_TEST_CASE(native_reroutes_have_no_meaning) {
  BOOST_TEST(inputs_of(convert_nodes(kModel + ", " + sample("2", input("model", "MODEL", "1")),
                                     R"([1, 1, 0, 2, 0, "MODEL"])",
                                     R"(, "extra": {"reroutes": [{"id": 1, "linkIds": [1]}],
                                         "linkExtensions": [{"id": 1, "parentId": 1}]})"),
                       "2")
                 .find(R"("model":["1",0])") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_muted_node_is_gone_with_what_it_gives) {
  BOOST_TEST(saved_image(sample("2", "", R"(, "mode": 2)"), R"([5, 2, 0, 9, 0, "IMAGE"])") ==
             kNone);
}

BOOST_AUTO_TEST_CASE(a_bypassed_node_passes_on_the_first_input_of_the_type) {
  const std::string links = R"([3, 8, 0, 2, 2, "IMAGE"], [4, 1, 0, 2, 0, "MODEL"],
                               [5, 2, 0, 9, 0, "IMAGE"])";
  const std::string inputs = input("model", "MODEL", "4") + ", " + input("other", "IMAGE", "null") +
                             ", " + input("image", "IMAGE", "3");
  const std::string source = kModel + ", " + sample("8", "");
  // "image" is the first of its type in the class, whatever the order in the file.
  BOOST_TEST(saved_image(source + ", " + sample("2", inputs, R"(, "mode": 4)"), links) ==
             R"({"filename_prefix":"ComfyUI","images":["8",0]})");
  BOOST_TEST(
      saved_image(source + ", " + sample("2", input("model", "MODEL", "4"), R"(, "mode": 4)"),
                  links) == kNone);
}

BOOST_AUTO_TEST_CASE(a_primitive_gives_its_value_to_the_widget) {
  const Json nodes = convert_nodes(
      R"({"id": 4, "type": "PrimitiveNode", "widgets_values": [18446744073709551615, "randomize"],
          "outputs": [{"name": "INT", "type": "INT", "links": [1]}]},)" +
          sample("2", R"({"name": "seed", "type": "INT", "widget": {"name": "seed"}, "link": 1})"),
      R"([1, 4, 0, 2, 0, "INT"])");
  BOOST_TEST(nodes.size() == 1u);
  BOOST_TEST(inputs_of(nodes, "2").starts_with(R"({"seed":18446744073709551615,)"));
}

BOOST_AUTO_TEST_CASE(sockets_of_dynamic_inputs_keep_their_names) {
  const std::string batch = R"({"id": 3, "type": "Batch", "widgets_values": ["m"], "inputs": [)" +
                            input("images.image10", "IMAGE", "1") + ", " +
                            input("images.image2", "IMAGE", "2") + "]}";
  BOOST_TEST(inputs_of(convert_nodes(sample("1", "") + ", " + sample("2", "") + ", " + batch,
                                     R"([1, 1, 0, 3, 0, "IMAGE"], [2, 2, 0, 3, 1, "IMAGE"])"),
                       "3") == R"({"mode":"m","images.image10":["1",0],"images.image2":["2",0]})");
}

BOOST_AUTO_TEST_CASE(circles_of_reroutes_are_told) {
  const std::string reroutes = R"({"id": 3, "type": "Reroute", "inputs": [)" + input("", "*", "1") +
                               "]}," + R"({"id": 4, "type": "Reroute", "inputs": [)" +
                               input("", "*", "2") + "]}";
  BOOST_TEST(refusal_of_nodes(reroutes + ", " + sample("9", input("image", "IMAGE", "5")),
                              R"([1, 4, 0, 3, 0, "*"], [2, 3, 0, 4, 0, "*"], [5, 3, 0, 9, 0, "*"])")
                 .find("node '9' (Sample): what is linked to its input 'image' leads round in a "
                       "circle") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(all_that_cannot_be_converted_is_told_at_once) {
  const std::string said = refusal_of_nodes(
      R"({"id": 1, "type": "Nobody", "title": "Mystery"}, {"id": 2},
         {"id": 3, "type": "Gone", "mode": 4}, {"id": 4, "type": "Sample",
          "widgets_values": [1, "fixed", "?"]},
         {"id": 5, "type": "01234567-89ab-cdef-0123-456789abcdef"})",
      R"([1, 2])");
  for (const char* part :
       {"node '1' 'Mystery' (Nobody): nobody knows this class", "a node needs an \"id\"",
        "node '4' (Sample): its 3 saved widget values do not fit",
        "node '5' (01234567-89ab-cdef-0123-456789abcdef): the file has no definition",
        "a link is [id, node, output, node, input, type]"})
    BOOST_TEST(said.find(part) != std::string::npos, part << " in\n" << said);
  BOOST_TEST(said.find("Gone") == std::string::npos);  // nothing of it is left
}

BOOST_AUTO_TEST_CASE(unknown_classes_may_be_kept_with_what_they_name_themselves) {
  const Json nodes = test::convert_saved(
      R"({"nodes": [{"id": 1, "type": "Nobody", "widgets_values": [5],
                     "widgets_values_named": {"steps": 5}}], "links": []})",
      UnknownClasses::keep);
  BOOST_TEST(write_json(nodes) ==
             R"({"1":{"inputs":{"steps":5},"class_type":"Nobody","_meta":{"title":"Nobody"}}})");
}

BOOST_AUTO_TEST_CASE(nodes_keep_their_places_in_the_text) {
  const Json nodes = convert_nodes("\n  {\"id\": 1, \"type\": \"Text\"}");
  BOOST_TEST(nodes.members().front().line == 2u);
  BOOST_TEST(nodes.members().front().column == 3u);
}

BOOST_AUTO_TEST_CASE(both_forms_are_told_apart_by_content) {
  BOOST_TEST(read_saved_form(R"({"nodes": [], "links": []})", "w").has_value());
  BOOST_TEST(read_saved_form(R"({"workflow": {"nodes": [], "version": 0.4, "links": []}})", "w")
                 .has_value());
  BOOST_TEST(!read_saved_form(R"({"nodes": {"class_type": "Text", "inputs": {}}})", "w"));
  BOOST_TEST(!read_saved_form(R"({"1": {"class_type": "Text", "inputs": {}}})", "w"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::engine
