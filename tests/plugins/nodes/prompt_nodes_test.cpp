// Nodes that compose texts: StringFormat against Python (make_format_goldens.py), CameraAngle,
// BuildJsonPromptIdeogram, Flux3LayoutPrompt, MergeTextLists, SaveText.
#include "tests/plugins/nodes/node_fixture.h"

namespace heddle::test {
namespace {

struct PromptNodes {
  TemporaryFolder folder;
  Engine engine{options()};

  EngineOptions options() const {
    EngineOptions options = engine_options();
    options.output_dir = folder.path();
    return options;
  }
  static std::string inputs_node(const std::string& type, const engine::Json& inputs) {
    return R"({"class_type": ")" + type + R"(", "inputs": )" + engine::write_json(inputs) + "}";
  }
  // What PreviewAny shows of an output of the node "x".
  std::string shown_value(const std::string& x, const std::string& output,
                          const std::string& more = "") {
    const std::string flow =
        R"({"x": )" + x + more +
        R"(, "look": {"class_type": "PreviewAny", "inputs": {"source": ["x", ")" + output +
        "\"]}}}";
    const engine::Json json =
        engine::parse_json(engine.start(engine.parse(flow)).wait().ui(), "ui");
    std::string all;
    for (const engine::Json& text : json.at("look").at("text").as_array())
      all += (all.empty() ? "" : "|") + text.as_string();
    return all;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(prompt_nodes, PromptNodes)

BOOST_AUTO_TEST_CASE(texts_are_formatted_as_python_formats_them) {
  const engine::Json golden =
      engine::parse_json(read_text(NodeFixture::here() / "format_cases.json"), "format_cases.json");
  int refused = 0;
  for (const engine::Json& one : golden.at("cases").as_array()) {
    engine::Json inputs = engine::Json::object();
    for (const engine::Json::Member& value : golden.at("values").members())
      inputs.set("values." + std::string(value.key), value.value);
    const std::string text = one.at(std::size_t{0}).as_string();
    inputs.set("f_string", engine::Json(text));
    const engine::Json& expected = one.at(std::size_t{1});
    std::string made;
    const std::string refusal =
        engine_refusal([&] { made = shown_value(inputs_node("StringFormat", inputs), "STRING"); });
    if (expected.is_string())
      BOOST_TEST(made == expected.as_string(), text << " gives '" << made << "', in Python '"
                                                    << expected.as_string() << "' " << refusal);
    else
      BOOST_TEST(refusal.find("f_string: ") != std::string::npos,
                 text << " gives '" << made << "', Python refuses it; " << refusal);
    refused += expected.is_string() ? 0 : 1;
  }
  BOOST_TEST(refused > 50);
}

BOOST_AUTO_TEST_CASE(a_format_may_not_fill_the_memory) {
  BOOST_TEST(engine_refusal([&] {
               shown_value(R"({"class_type": "StringFormat", "inputs": {"values.a": 1,
                               "f_string": "{a:100001}"}})",
                           "STRING");
             }).find("asks for more than 100000 characters") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(cameras_are_told_in_words_and_numbers) {
  const auto camera = [&](int around, int up, const std::string& zoom, const char* output) {
    return shown_value(R"({"class_type": "CameraAngle", "inputs": {"horizontal_angle": )" +
                           std::to_string(around) + R"(, "vertical_angle": )" + std::to_string(up) +
                           R"(, "zoom": )" + zoom + "}}",
                       output);
  };
  BOOST_TEST(camera(0, 0, "5.0", "prompt") == "front view eye-level shot medium shot");
  BOOST_TEST(camera(22, -15, "2.0", "prompt") == "front view eye-level shot medium shot");
  BOOST_TEST(camera(23, -16, "1.9", "prompt") ==
             "front-right quarter view low-angle shot wide shot");
  BOOST_TEST(camera(180, 15, "6.0", "prompt") == "back view elevated shot close-up");
  BOOST_TEST(camera(300, 45, "10", "prompt") == "front-left quarter view high-angle shot close-up");
  BOOST_TEST(camera(338, 0, "0", "prompt") == "front view eye-level shot wide shot");
  BOOST_TEST(camera(360, 0, "0", "prompt") == "front view eye-level shot wide shot");
  const engine::Json info = engine::parse_json(camera(90, 30, "10", "camera_info"), "camera");
  BOOST_TEST(std::fabs(info.at("position").at("x").as_double() - 6 * std::sqrt(0.75)) < 1e-12);
  BOOST_TEST(std::fabs(info.at("position").at("y").as_double() - 3.5) < 1e-12);
  BOOST_TEST(std::fabs(info.at("position").at("z").as_double()) < 1e-12);
  BOOST_TEST(info.at("target").at("y").as_double() == 0.5);
  BOOST_TEST(info.at("zoom").as_double() == 1.875);
  BOOST_TEST(info.at("fov").as_double() == 35);
}

BOOST_AUTO_TEST_CASE(prompts_of_ideogram_are_built) {
  const auto built = [&](const std::string& more) {
    return shown_value(R"({"class_type": "BuildJsonPromptIdeogram", "inputs": {"element":
                           ["boxes", 0], "background": "a wall")" +
                           more + "}}",
                       "prompt",
                       R"(, "boxes": {"class_type": "ComfyPassOrNoneNode", "inputs":
                            {"anything": {"__value__": [{"type": "obj"}]}}})");
  };
  BOOST_TEST(
      built(R"(, "style": "none", "color_palette": {"__value__": []})") ==
      R"({"compositional_deconstruction":{"background":"a wall","elements":[{"type":"obj"}]}})");
  BOOST_TEST(
      built(R"(, "style": "photo", "style.photo": "35mm", "medium": "photograph",
                       "aesthetics": "moody", "lighting": "dim", "high_level_description": "A cat.",
                       "color_palette": {"__value__": ["#ab00ff", "", 3]})") ==
      R"({"high_level_description":"A cat.","style_description":{"aesthetics":"moody",)"
      R"("lighting":"dim","photo":"35mm","medium":"photograph","color_palette":["#AB00FF"]},)"
      R"("compositional_deconstruction":{"background":"a wall","elements":[{"type":"obj"}]}})");
  BOOST_TEST(
      built(R"(, "style": "art_style", "style.art_style": "flat", "medium": "drawing",
                       "color_palette": {"__value__": []})") ==
      R"({"style_description":{"aesthetics":"","lighting":"","medium":"drawing",)"
      R"("art_style":"flat"},)"
      R"("compositional_deconstruction":{"background":"a wall","elements":[{"type":"obj"}]}})");
}

// As the publisher writes such tables: docs.bfl.ai, FLUX 3, "Bounding boxes".
BOOST_AUTO_TEST_CASE(boxes_stand_in_a_table_behind_a_prompt_of_flux_3) {
  const auto built = [&](const std::string& prompt, const std::string& elements) {
    return shown_value(R"({"class_type": "Flux3LayoutPrompt", "inputs": {"element":
                           ["boxes", 0], "prompt": ")" +
                           prompt + R"("}})",
                       "prompt",
                       R"(, "boxes": {"class_type": "ComfyPassOrNoneNode", "inputs":
                            {"anything": {"__value__": )" +
                           elements + "}}}");
  };
  BOOST_TEST(built("A dome <obj_1>.", "[]") == "A dome <obj_1>.");
  BOOST_TEST(
      built("A dome <obj_1> and <obj_2>.",
            R"([{"type": "obj", "bbox": [250, 150, 650, 850], "desc": " a \"pale\" dome ä "},
                {"type": "text", "bbox": [0, 0, 100, 1000], "text": "OPEN", "desc": "red letters",
                 "color_palette": ["#FF0000"]},
                {"type": "text", "bbox": [1, 2, 3, 4], "text": "LATE", "desc": ""}])") ==
      R"(A dome <obj_1> and <obj_2>. [{"id": "obj_1", "bbox": [250, 150, 650, 850], "desc": "a \"pale\" dome ä"}, )"
      R"({"id": "obj_2", "bbox": [0, 0, 100, 1000], "desc": "red letters, text reading \"OPEN\""}, )"
      R"({"id": "obj_3", "bbox": [1, 2, 3, 4], "desc": "text reading \"LATE\""}])");
  BOOST_TEST(built("", R"([{"bbox": [1, 2, 3, 4]}])") ==
             R"([{"id": "obj_1", "bbox": [1, 2, 3, 4], "desc": ""}])");
  for (const char* wrong :
       {R"([{"desc": "a"}])", R"([{"bbox": [1, 2, 3]}])", "[7]", R"([{"bbox": [1, 2, 3, "4"]}])"})
    BOOST_TEST(engine_refusal([&] {
                 built("a", wrong);
               }).find("element: number 1 has no bbox of four numbers") != std::string::npos,
               wrong);
}

BOOST_AUTO_TEST_CASE(lists_of_texts_become_one_value) {
  BOOST_TEST(shown_value(R"({"class_type": "MergeTextLists", "inputs": {"texts": ["list", 0]}})",
                         "texts",
                         R"(, "list": {"class_type": "CreateList", "inputs": {"inputs.input0": "a",
                              "inputs.input1": "b"}})") == R"(["a","b"])");
}

BOOST_AUTO_TEST_CASE(latents_of_one_size_are_put_together) {
  const auto latent = [](int width, int count) {
    return R"({"class_type": "EmptyLatentImage", "inputs": {"width": )" + std::to_string(width) +
           R"(, "height": 32, "batch_size": )" + std::to_string(count) + "}}";
  };
  // Three values stand for conditionings of one entry each, or of several.
  const auto flow = [&](const std::string& second) {
    return R"({"a": )" + latent(64, 1) + R"(, "b": )" + latent(32, 2) + R"(, "c": )" +
           latent(64, 1) +
           R"(, "latents": {"class_type": "CreateList", "inputs": {"inputs.input0": ["a", 0],
                "inputs.input1": ["b", 0], "inputs.input2": ["c", 0]}},
              "texts": {"class_type": "CreateList", "inputs": {"inputs.input0":
                {"__value__": ["one"]}, "inputs.input1": {"__value__": )" +
           second +
           R"(}, "inputs.input2": {"__value__": ["four"]}}},
              "x": {"class_type": "ResolutionBucket", "inputs": {"latents": ["latents", 0],
                "conditioning": ["texts", 0]}},
              "look": {"class_type": "PreviewAny", "inputs": {"source": ["x", 1]}},
              "see": {"class_type": "PreviewAny", "inputs": {"source": ["x", 0]}}})";
  };
  const Results results =
      engine.start(engine.parse(flow(R"(["two", "three"])")), {{}, {"x.latents"}}).wait();
  BOOST_TEST((results.shape("x.latents", "0.samples") == std::vector<std::int64_t>{2, 4, 4, 8}));
  BOOST_TEST((results.shape("x.latents", "1.samples") == std::vector<std::int64_t>{2, 4, 4, 4}));
  const engine::Json ui = engine::parse_json(results.ui(), "ui");
  BOOST_TEST(engine::write_json(ui.at("look").at("text")) ==
             R"(["[\"one\",\"four\"]","[\"two\",\"three\"]"])");
  BOOST_TEST(engine_refusal([&] {
               engine.start(engine.parse(flow(R"(["two"])"))).wait();
             }).find("for a latent of 2 items there are 1 entries") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(texts_are_saved_under_rising_numbers) {
  const auto saved = [&](const std::string& text, const std::string& format) {
    return engine
        .start(engine.parse(
            R"({"1": {"class_type": "SaveText", "inputs": {"text": ["2", 0], "format": ")" +
            format +
            R"(", "filename_prefix": "a/b"}}, "2": {"class_type": "PrimitiveString", "inputs":
                {"value": )" +
            engine::write_json(engine::Json(text)) + "}}}"))
        .wait();
  };
  const Results first = saved("one", "txt"), second = saved("{\"é\": [1, 2.0]}", "json"),
                third = saved("{no", "json");
  BOOST_TEST(read_text(folder / "a/b_00001.txt") == "one");
  BOOST_TEST(read_text(folder / "a/b_00002.json") == "{\n  \"é\": [\n    1,\n    2.0\n  ]\n}");
  BOOST_TEST(read_text(folder / "a/b_00003.json") == "{no");
  BOOST_TEST(first.ui().find(R"("text":["one"])") != std::string::npos, first.ui());
  BOOST_TEST(
      first.ui().find(R"("files":[{"filename":"b_00001.txt","subfolder":"a","type":"output"}])") !=
          std::string::npos,
      first.ui());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
