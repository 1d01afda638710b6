// Nodes of regular expressions, lists and small values. What they give is what Python gives for the
// same call of re, json or str.
#include "tests/plugins/nodes/node_fixture.h"

namespace heddle::test {
namespace {

struct TextNodes {
  Engine engine{engine_options()};

  // What PreviewAny shows of an output of the node "x": a text for each call.
  std::string shown(const std::string& nodes, const std::string& output) {
    const std::string flow = "{" + nodes + R"(, "look": {"class_type": "PreviewAny", "inputs": )" +
                             R"({"source": ["x", ")" + output + "\"]}}}";
    const engine::Json json =
        engine::parse_json(engine.start(engine.parse(flow)).wait().ui(), "ui");
    std::string all;
    for (const engine::Json& text : json.at("look").at("text").as_array())
      all += (all.empty() ? "" : "|") + text.as_string();
    return all;
  }
  static std::string node(const std::string& type, const std::string& inputs) {
    return R"("x": {"class_type": ")" + type + R"(", "inputs": {)" + inputs + "}}";
  }
  std::string refused(const std::string& nodes, const std::string& output) {
    return engine_refusal([&] { shown(nodes, output); });
  }
  std::string extracted(const std::string& text, const std::string& pattern,
                        const std::string& more) {
    return shown(node("RegexExtract", R"("string": ")" + text + R"(", "regex_pattern": ")" +
                                          pattern + "\", " + more),
                 "STRING");
  }
  std::string replaced(const std::string& text, const std::string& pattern, const std::string& by,
                       const std::string& more = "") {
    return shown(node("RegexReplace", R"("string": ")" + text + R"(", "regex_pattern": ")" +
                                          pattern + R"(", "replace": ")" + by + "\"" + more),
                 "STRING");
  }
  std::string matches(const std::string& text, const std::string& pattern,
                      const std::string& more = "") {
    return shown(node("RegexMatch",
                      R"("string": ")" + text + R"(", "regex_pattern": ")" + pattern + "\"" + more),
                 "matches");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(text_nodes, TextNodes)

BOOST_AUTO_TEST_CASE(patterns_match_with_the_flags_of_python) {
  BOOST_TEST(matches("One two", "TWO") == "True");
  BOOST_TEST(matches("One two", "TWO", R"(, "case_insensitive": false)") == "False");
  BOOST_TEST(matches("one\\ntwo", "^two$") == "False");
  BOOST_TEST(matches("one\\ntwo", "^two$", R"(, "multiline": true)") == "True");
  BOOST_TEST(matches("a\\nb", "a.b") == "False");
  BOOST_TEST(matches("a\\nb", "a.b", R"(, "dotall": true)") == "True");
  BOOST_TEST(matches("Straße", "\\\\w{6}$") == "True");
  BOOST_TEST(matches("one", "(") == "False");  // re.error
}

BOOST_AUTO_TEST_CASE(matches_and_groups_are_extracted) {
  BOOST_TEST(extracted("a1 b2 c", "(\\\\w)(\\\\d)", R"("mode": "First Match")") == "a1");
  BOOST_TEST(extracted("a1 b2 c", "(\\\\w)(\\\\d)", R"("mode": "All Matches")") == "a\nb");
  BOOST_TEST(extracted("a1 b2 c", "\\\\w\\\\d", R"("mode": "All Matches")") == "a1\nb2");
  BOOST_TEST(extracted("axb", "x*", R"("mode": "All Matches")") == "\nx\n\n");
  BOOST_TEST(extracted("a1 b2 c", "(\\\\w)(\\\\d)", R"("mode": "First Group", "group_index": 2)") ==
             "1");
  BOOST_TEST(extracted("a1 b2 c", "(\\\\w)(\\\\d)", R"("mode": "All Groups", "group_index": 2)") ==
             "1\n2");
  BOOST_TEST(extracted("a1", "\\\\w", R"("mode": "All Groups", "group_index": 1)") == "");
  BOOST_TEST(extracted("a1", "(b)?a", R"("mode": "First Group")") == "");
  BOOST_TEST(extracted("a1", "(", R"("mode": "First Match")") == "");
}

BOOST_AUTO_TEST_CASE(matches_are_replaced_by_templates) {
  BOOST_TEST(replaced("abxd", "x*", "-") == "-a-b--d-");
  BOOST_TEST(replaced("Ada Lovelace and Alan Turing", "(?P<first>\\\\w+) (\\\\w+)",
                      "\\\\g<2>, \\\\g<first>!\\\\n") == "Lovelace, Ada!\n Alan, and!\n Turing");
  BOOST_TEST(replaced("one\\ntwo", "^", "> ", R"(, "multiline": true)") == "> one\n> two");
  BOOST_TEST(replaced("A\\nb a-b", "a.b", "-", R"(, "dotall": true, "count": 1)") == "- a-b");
  BOOST_TEST(replaced("ab", "(a)(c)?", "[\\\\2\\\\1]") == "[a]b");
  BOOST_TEST(
      refused(node("RegexReplace", R"x("string": "a", "regex_pattern": "(a)", "replace": "\\2")x"),
              "STRING")
          .find("has no group 2") != std::string::npos);
  BOOST_TEST(
      refused(node("RegexReplace", R"("string": "a", "regex_pattern": "a", "replace": "\\q")"),
              "STRING")
          .find("there is no escape \\q") != std::string::npos);
  BOOST_TEST(refused(node("RegexReplace", R"("string": "a", "regex_pattern": "(", "replace": "b")"),
                     "STRING")
                 .find("'(' cannot be read") != std::string::npos);
  BOOST_TEST(refused(node("RegexMatch",
                          R"("string": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",
                             "regex_pattern": "^(a|aa|a*)*$")"),
                     "matches")
                 .find("backtracks less") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(texts_of_data_sets_change_one_by_one) {
  const auto one = [&](const std::string& type, const std::string& inputs) {
    return shown(node(type, R"("texts": " Ab c ")" + inputs), "texts");
  };
  BOOST_TEST(one("AddTextPrefix", R"(, "prefix": "x")") == "x Ab c ");
  BOOST_TEST(one("AddTextSuffix", R"(, "suffix": "x")") == " Ab c x");
  BOOST_TEST(one("ReplaceText", R"(, "find": " ", "replace": "_")") == "_Ab_c_");
  BOOST_TEST(one("StripWhitespace", "") == "Ab c");
  BOOST_TEST(one("TextToLowercase", "") == " ab c ");
  BOOST_TEST(one("TextToUppercase", "") == " AB C ");
  BOOST_TEST(one("TruncateText", R"(, "max_length": 3)") == " Ab");
}

BOOST_AUTO_TEST_CASE(lists_are_made_and_read) {
  const std::string three =
      R"("list": {"class_type": "CreateList", "inputs": {"inputs.input0": "a",
         "inputs.input1": "b", "inputs.input3": "c"}}, )";
  BOOST_TEST(shown(three + node("AddTextPrefix", R"("texts": ["list", 0], "prefix": "-")"),
                   "texts") == "-a|-b|-c");
  const auto item = [&](const std::string& index) {
    return three + node("GetItemFromList", R"("list": ["list", 0], "index": )" + index);
  };
  BOOST_TEST(shown(item("1"), "*") == "b");
  BOOST_TEST(shown(item("-1"), "*") == "c");
  BOOST_TEST(refused(item("3"), "*").find("outside of the list of 3 items") != std::string::npos);
  BOOST_TEST(
      refused(node("CreateList", ""), "list").find("input 'inputs.input0': it is required") !=
      std::string::npos);
}

BOOST_AUTO_TEST_CASE(colours_boxes_and_curves_are_values) {
  const auto colour = [&](const std::string& text, const std::string& output) {
    return shown(node("ColorToRGBInt", R"("color": ")" + text + "\""), output);
  };
  BOOST_TEST(colour("#0A0b0c", "rgb_int") == "658188");
  BOOST_TEST(colour("#0A0b0c80", "rgb_int") == "658188");
  BOOST_TEST(colour("#0A0b0c80", "hex") == "#0A0b0c");
  BOOST_TEST(colour("#0A0b0c33", "alpha") == "0.2");
  BOOST_TEST(colour("#0A0b0c", "alpha") == "1.0");
  BOOST_TEST(refused(node("ColorToRGBInt", R"("color": "red")"), "alpha").find("#rrggbb") !=
             std::string::npos);
  BOOST_TEST(shown(node("PrimitiveBoundingBox", R"("x": 1, "y": 2, "width": 3, "height": 4)"),
                   "BOUNDING_BOX") == R"({"x":1,"y":2,"width":3,"height":4})");
  BOOST_TEST(shown(node("CurveEditor", R"("curve": {"__type__": "CURVE", "__value__": {"points":
                   [[0, 1]], "interpolation": "linear"}})"),
                   "curve") == R"({"points":[[0,1]],"interpolation":"linear"})");
}

BOOST_AUTO_TEST_CASE(values_are_written_as_json) {
  const std::string box =
      R"("box": {"class_type": "PrimitiveBoundingBox", "inputs": {"x": 1, "y": 2}}, )";
  const auto written = [&](const std::string& indent) {
    return shown(
        box + R"("any": {"class_type": "GetItemFromList", "inputs": {"list": ["box", 0],
                          "index": 0}}, )" +
            node("ConvertDictionaryToString", R"("dictionary": ["any", 0], "indent": )" + indent),
        "STRING");
  };
  BOOST_TEST(written("0") == R"({"x": 1, "y": 2, "width": 512, "height": 512})");
  BOOST_TEST(written("2") ==
             "{\n  \"x\": 1,\n  \"y\": 2,\n  \"width\": 512,\n  \"height\": 512\n}");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
