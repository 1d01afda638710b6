// Nodes that choose, compute and change texts. What they give is what Python gives for the same
// expression or method.
#include "tests/plugins/nodes/node_fixture.h"

using heddle::Engine;
using heddle::test::engine_refusal;

namespace {

struct LogicFixture {
  Engine engine{heddle::test::engine_options()};

  // An output of the node "x", as Python writes it.
  std::string shown(const std::string& nodes, const std::string& output) {
    const std::string flow = "{" + nodes + R"(, "look": {"class_type": "PreviewAny", "inputs": )" +
                             R"({"source": ["x", ")" + output + "\"]}}}";
    const std::string ui = engine.start(engine.parse(flow)).wait().ui();
    const heddle::engine::Json json = heddle::engine::parse_json(ui, "ui");
    return json.at("look").at("text").at(std::size_t{0}).as_string();
  }
  static std::string node(const std::string& type, const std::string& inputs) {
    return R"("x": {"class_type": ")" + type + R"(", "inputs": {)" + inputs + "}}";
  }
  static std::string math_node(const std::string& expression) {
    return node("ComfyMathExpression",
                R"("expression": ")" + expression + R"(", "values.a": 7, "values.b": -2.5)");
  }
  std::string math(const std::string& expression) { return shown(math_node(expression), "FLOAT"); }
  std::string whole(const std::string& expression) { return shown(math_node(expression), "INT"); }
  std::string refused(const std::string& nodes) {
    return engine_refusal([&] { shown(nodes, "FLOAT"); });
  }
};

bool has_text(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(logic, LogicFixture)

BOOST_AUTO_TEST_CASE(expressions_give_what_python_gives) {
  const std::pair<const char*, const char*> cases[] = {
      {"a", "7.0"},
      {"a + b", "4.5"},
      {"a/2", "3.5"},
      {"-a // 2", "-4.0"},
      {"-a % 5", "3.0"},
      {"b % 2", "1.5"},
      {"b // 2", "-2.0"},
      {"2 ** 3 ** 2", "512.0"},
      {"-2 ** 2", "-4.0"},
      {"2 ** -1", "0.5"},
      {"a & -8", "0.0"},
      {"a & ~1", "6.0"},
      {"a ^ 2 | 8", "13.0"},
      {"-7 >> 1", "-4.0"},
      {"1 << 4", "16.0"},
      {"1 < a < 8", "1.0"},
      {"1 < a < 5", "0.0"},
      {"a > 2048", "0.0"},
      {"b if b > 0 else a", "7.0"},
      {"a / 0 if a < 0 else 3", "3.0"},
      {"0 and 1 / 0", "0.0"},
      {"a or 1 / 0", "7.0"},
      {"not a", "0.0"},
      {"(a % 4 == 3) and ((b - 1) % 4 == 0.5)", "1.0"},
      {"max(((a + 15) // 16) * 16, 256)", "256.0"},
      {"max(5, round(a * 24)) + (5 - (max(5, round(a * 24)) % 17)) % 17", "175.0"},
      {"ceil(1.5 * log2(max(a, b))) + 2", "7.0"},
      {"round (2.5)", "2.0"},
      {"round(2.675, 2)", "2.67"},
      {"round(1250, -2)", "1200.0"},
      {"sum(values) + min(values)", "2.0"},
      {"values[-1]", "-2.5"},
      {"sum(1, 2, 3)", "6.0"},
      {"pow(2, 10)", "1024.0"},
      {"abs(b) + int(b) + floor(b)", "-2.5"},
      {"sqrt(16) + log10(100) + log(8, 2) + sin(0) + cos(0) + tan(0)", "10.0"},
      {"1e3 + .5", "1000.5"},
      {"True + True", "2.0"},
  };
  for (const auto& [expression, expected] : cases)
    BOOST_TEST(math(expression) == expected, expression);
  BOOST_TEST(whole("a / 2") == "3");
  BOOST_TEST(whole("b") == "-2");
  BOOST_TEST(whole("2 ** 64 - 1") == "18446744073709551615");
  BOOST_TEST(whole("2 ** 100 // 2 ** 90") == "1024");
  BOOST_TEST(shown(math_node("a > 3"), "BOOL") == "True");
}

BOOST_AUTO_TEST_CASE(expressions_that_python_refuses_are_refused_with_the_column) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "nothing in it"},
      {"a +", "no value at column 4"},
      {"a b", "'b' at column 3"},
      {"(a", "no ')'"},
      {"1 / 0", "divides by zero (column 1)"},
      {"a + c", "uses 'c', and the linked values are a, b (column 5)"},
      {"2 ** 4001", "exponent above 4000"},
      {"(2 ** 4000) ** 4000", "too large a number"},
      {"10 ** 400", "too large for a FLOAT"},
      {"2 ** 64", "does not fit into an INT"},
      {"sqrt(-1)", "takes the sqrt of"},
      {"(-8) ** 0.5", "no real number"},
      {"b & 1", "not whole"},
      {"values", "takes a list for a number"},
      {"values[2]", "takes item 2 of 2"},
      {"exit(1)", "calls 'exit'"},
      {"1e308 * 10", "not finite"},
  };
  for (const auto& [expression, expected] : cases)
    BOOST_TEST(has_text(refused(math_node(expression)), expected),
               expression << ": " << refused(math_node(expression)));
  BOOST_TEST(has_text(refused(math_node(std::string(2000, '('))), "levels of terms"));
  BOOST_TEST(has_text(refused(math_node(std::string(5000, '1'))), "more than 4096"));
  BOOST_TEST(
      has_text(refused(node("ComfyMathExpression", R"("expression": "a", "values.a": "text")")),
               "'a' is text, which is no number"));
}

// By Workflow::set(), and for one run.
BOOST_AUTO_TEST_CASE(inputs_with_a_dot_in_their_names_are_set) {
  heddle::Workflow flow = engine.parse("{" + math_node("a * b") +
                                       R"(, "look": {"class_type": "PreviewAny", "inputs": )" +
                                       R"({"source": ["x", "INT"]}}})");
  const auto made = [&](heddle::StartOptions options) {
    const std::string ui = engine.start(flow, std::move(options)).wait().ui();
    return heddle::engine::parse_json(ui, "ui")
        .at("look")
        .at("text")
        .at(std::size_t{0})
        .as_string();
  };
  flow.set("x.values.a", "6");
  BOOST_TEST(made({}) == "-15");
  flow.set("ComfyMathExpression.values.b", "2");
  BOOST_TEST(made({}) == "12");
  heddle::StartOptions options;
  options.inputs["x.values.b"] = std::int64_t{4};
  BOOST_TEST(made(std::move(options)) == "24");
}

BOOST_AUTO_TEST_CASE(a_switch_makes_only_the_branch_that_it_takes) {
  const std::string bad = R"("bad": {"class_type": "test.fail", "inputs": {}}, )";
  const std::string good = R"("good": {"class_type": "PrimitiveInt", "inputs": {"value": 5}}, )";
  BOOST_TEST(shown(bad + good + node("ComfySwitchNode", R"("switch": true, "on_false": ["bad", 0],
                                     "on_true": ["good", 0])"),
                   "output") == "5");
  BOOST_TEST(shown(good + node("ComfySwitchNode", R"("switch": false, "on_true": ["good", 0])"),
                   "output") == "None");
  BOOST_TEST(
      has_text(engine_refusal([&] {
                 shown(bad + node("ComfySwitchNode", R"("switch": false, "on_false": ["bad", 0])"),
                       "output");
               }),
               "node 'bad'"));
}

// Of one picture, and of each of a list.
BOOST_AUTO_TEST_CASE(nothing_from_a_switch_is_no_optional_input) {
  const std::string pictures =
      R"("white": {"class_type": "EmptyImage",
                   "inputs": {"width": 8, "height": 8, "batch_size": 1, "color": 16777215}},
         "black": {"class_type": "EmptyImage",
                   "inputs": {"width": 4, "height": 4, "batch_size": 1, "color": 0}},
         "list": {"class_type": "RebatchImages", "inputs": {"images": ["white", 0], "batch_size": 1}},
         "none": {"class_type": "ComfySwitchNode", "inputs": {"switch": false, "on_true": ["white", 0]}},)";
  const auto composed = [&](const std::string& below, const std::string& mask) {
    return pictures + node("ImageCompositeMasked",
                           R"("source": ["black", 0], "x": 2, "y": 2, "resize_source": false,
                              "destination": [")" +
                               below + "\", 0]" + mask);
  };
  for (const char* below : {"white", "list"})
    BOOST_TEST(shown(composed(below, R"(, "mask": ["none", 0])"), "IMAGE") ==
               shown(composed(below, ""), "IMAGE"));
}

BOOST_AUTO_TEST_CASE(what_a_switch_gives_fits_every_input) {
  const std::string nodes =
      R"("number": {"class_type": "PrimitiveInt", "inputs": {"value": 64}},
         "chosen": {"class_type": "ComfySwitchNode", "inputs": {"switch": true, "on_true": ["number", 0]}}, )";
  BOOST_TEST(shown(nodes + node("SeedNode", R"("seed": ["chosen", 0])"), "seed") == "64");
}

BOOST_AUTO_TEST_CASE(truth_is_python_s) {
  const auto negated = [&](const std::string& value) {
    return shown(node("ComfyNotNode", "\"value\": " + value), "BOOLEAN");
  };
  for (const char* value : {"0", "0.0", "\"\"", "false", R"({"__value__": []})"})
    BOOST_TEST(negated(value) == "True", value);
  for (const char* value : {"1", "-0.5", "\"false\"", "true"})
    BOOST_TEST(negated(value) == "False", value);
  const auto combined = [&](const char* type, const std::string& inputs) {
    return shown(node(type, inputs), "BOOLEAN");
  };
  BOOST_TEST(combined("ComfyAndNode", R"("values.value0": 1, "values.value1": "x")") == "True");
  BOOST_TEST(combined("ComfyAndNode", R"("values.value0": 1, "values.value1": 0)") == "False");
  BOOST_TEST(combined("ComfyOrNode", R"("values.value0": 0, "values.value1": 2.5)") == "True");
  BOOST_TEST(combined("ComfyOrNode", R"("values.value0": 0)") == "False");
  for (const char* type : {"ComfyAndNode", "ComfyOrNode"})  // the first one has to be there
    BOOST_TEST(has_text(refused(node(type, R"("values.value1": 1)")),
                        "input 'values.value0': it is required"));
}

BOOST_AUTO_TEST_CASE(the_first_value_that_is_there_is_passed) {
  const std::string five = R"("five": {"class_type": "PrimitiveInt", "inputs": {"value": 5}}, )";
  const std::string none = R"("none": {"class_type": "ComfyPassOrNoneNode", "inputs": {}}, )";
  const std::string passed =
      none + five +
      node("ComfyPassOrNoneNode", R"("anything": ["none", 0], "default": ["five", 0])");
  BOOST_TEST(shown(passed, "COMFY_MATCHTYPE_V3") == "5");
  BOOST_TEST(shown(passed, "is_none") == "False");
  BOOST_TEST(shown(node("ComfyPassOrNoneNode", ""), "is_none") == "True");
}

BOOST_AUTO_TEST_CASE(numbers_are_read_out_of_anything) {
  const auto converted = [&](const std::string& value) {
    const std::string x = node("ComfyNumberConvert", "\"value\": " + value);
    return shown(x, "FLOAT") + " " + shown(x, "INT");
  };
  BOOST_TEST(converted("true") == "1.0 1");
  BOOST_TEST(converted("-3") == "-3.0 -3");
  BOOST_TEST(converted("-2.75") == "-2.75 -2");
  BOOST_TEST(converted("\" 12 \"") == "12.0 12");
  BOOST_TEST(converted("\"1e3\"") == "1000.0 1000");
  for (const char* value : {"\"\"", "\"12a\"", "\"inf\""})
    BOOST_TEST(has_text(refused(node("ComfyNumberConvert", std::string("\"value\": ") + value)),
                        "is no finite number"),
               value);
}

BOOST_AUTO_TEST_CASE(resolutions_are_whole_multiples) {
  const std::string x =
      node("ResolutionSelector", R"x("aspect_ratio": "16:9 (Widescreen)", "megapixels": 1.0)x");
  BOOST_TEST(shown(x, "width") == "1368");
  BOOST_TEST(shown(x, "height") == "768");
}

BOOST_AUTO_TEST_CASE(a_custom_choice_comes_with_its_position) {
  const std::string x = node("CustomCombo", R"("choice": "b", "index": 1, "option1": "a")");
  BOOST_TEST(shown(x, "STRING") == "b");
  BOOST_TEST(shown(x, "INDEX") == "1");
  BOOST_TEST(shown(node("CustomCombo", R"("choice": "b")"), "INDEX") == "0");
}

BOOST_AUTO_TEST_CASE(texts_are_changed_by_characters) {
  const auto text = [&](const char* type, const std::string& inputs) {
    return shown(node(type, inputs), "STRING");
  };
  BOOST_TEST(text("StringConcatenate", R"("string_a": "a", "string_b": "b", "delimiter": ", ")") ==
             "a, b");
  const auto part = [&](const std::string& start, const std::string& end) {
    return text("StringSubstring",
                R"("string": "häuser", "start": )" + start + ", \"end\": " + end);
  };
  BOOST_TEST(part("0", "2") == "hä");
  BOOST_TEST(part("-3", "6") == "ser");
  BOOST_TEST(part("1", "-1") == "äuse");
  BOOST_TEST(part("-99", "99") == "häuser");
  BOOST_TEST(part("4", "2") == "");
  BOOST_TEST(shown(node("StringLength", R"("string": "häuser")"), "length") == "6");
  const auto cased = [&](const std::string& mode) {
    return text("CaseConverter", R"("string": "they're in ÄPFEL straße", "mode": ")" + mode + "\"");
  };
  BOOST_TEST(cased("UPPERCASE") == "THEY'RE IN ÄPFEL STRASSE");
  BOOST_TEST(cased("lowercase") == "they're in äpfel straße");
  BOOST_TEST(cased("Capitalize") == "They're in äpfel straße");
  BOOST_TEST(cased("Title Case") == "They'Re In Äpfel Straße");
  const auto trimmed = [&](const std::string& mode) {
    return "[" + text("StringTrim", R"("string": " \t a b\n\u00a0", "mode": ")" + mode + "\"") +
           "]";
  };
  BOOST_TEST(trimmed("Both") == "[a b]");
  BOOST_TEST(trimmed("Left") == "[a b\n\u00a0]");
  BOOST_TEST(trimmed("Right") == "[ \t a b]");
  const auto replaced = [&](const std::string& find) {
    return text("StringReplace", R"("string": "aäa", "replace": "-", "find": ")" + find + "\"");
  };
  BOOST_TEST(replaced("a") == "-ä-");
  BOOST_TEST(replaced("") == "-a-ä-a-");
  BOOST_TEST(replaced("x") == "aäa");
}

BOOST_AUTO_TEST_CASE(texts_are_compared_with_and_without_case) {
  const auto compared = [&](const std::string& mode, const char* sensitive) {
    return shown(node("StringCompare", R"("string_a": "Äpfel", "string_b": "äp", "mode": ")" +
                                           mode + "\", \"case_sensitive\": " + sensitive),
                 "BOOLEAN");
  };
  BOOST_TEST(compared("Starts With", "true") == "False");
  BOOST_TEST(compared("Starts With", "false") == "True");
  BOOST_TEST(compared("Ends With", "false") == "False");
  BOOST_TEST(compared("Equal", "false") == "False");
  const auto contained = [&](const char* sensitive) {
    return shown(
        node("StringContains", R"("string": "one TWO", "substring": "two", "case_sensitive": )" +
                                   std::string(sensitive)),
        "contains");
  };
  BOOST_TEST(contained("true") == "False");
  BOOST_TEST(contained("false") == "True");
}

BOOST_AUTO_TEST_CASE(a_member_of_json_is_given_as_python_writes_it) {
  const auto member = [&](const std::string& json) {
    return shown(node("JsonExtractString", R"("key": "k", "json_string": ")" + json + "\""),
                 "STRING");
  };
  BOOST_TEST(member(R"({\"k\": \"v\"})") == "v");
  BOOST_TEST(member(R"({\"k\": true})") == "True");
  BOOST_TEST(member(R"({\"k\": 1.50})") == "1.5");
  BOOST_TEST(member(R"({\"k\": {\"a\": [1, \"b\", null]}})") == "{'a': [1, 'b', None]}");
  for (const char* json : {R"({\"k\": null})", R"({\"x\": 1})", "[1]", "nothing"})
    BOOST_TEST(member(json) == "", json);
}

BOOST_AUTO_TEST_SUITE_END()
