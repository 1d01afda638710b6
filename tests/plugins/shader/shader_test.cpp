// GLSLShader in whole runs, against what its shaders are in plain arithmetic.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdlib>

#include "engine/base/json.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/lent_tensor.h"

namespace heddle::test {
namespace {

using engine::Json;

constexpr const char* kHead = R"(#version 300 es
precision highp float;
uniform sampler2D u_image0, u_image1;
uniform vec2 u_resolution;
in vec2 v_texCoord;
layout(location = 0) out vec4 fragColor0;
)";

struct Shaders {
  // Two RGB pictures of 5 x 3 with numbers beyond 0 to 1.
  LentTensor pictures{{2, 3, 5, 3}, numbers(90)};
  Engine engine{engine_options()};

  static std::vector<float> numbers(std::size_t count) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i)
      values[i] = float((i * 37) % 101) / 100.0f * 1.5f - 0.25f;
    return values;
  }
  // `inputs`: JSON of the inputs besides the text and the first picture.
  Results drawn(const std::string& text,
                const std::string& inputs = R"("size_mode": "from_input")") {
    const std::string flow =
        R"({"given": {"class_type": "EmptyImage", "inputs": {"width": 5, "height": 3}},
            "a": {"class_type": "RepeatImageBatch", "inputs": {"image": ["given", 0], "amount": 1},
                  "_meta": {"title": "a"}},
            "b": {"class_type": "EmptyImage", "inputs": {"width": 4, "height": 2,
                  "color": 16711680}},
            "x": {"class_type": "GLSLShader", "inputs": {"images.image0": ["a", 0],
                  "fragment_shader": )" +
        engine::write_json(Json(text)) + ", " + inputs + R"(}},
            "save": {"class_type": "PreviewImage", "inputs": {"images": ["x", 0]}}})";
    return engine
        .start(engine.parse(flow), {.fetch = {"x.IMAGE0", "x.IMAGE1", "x.IMAGE2", "x.IMAGE3"},
                                    .inputs = {{"a.image", pictures.lend()}}})
        .wait();
  }
  float given(std::size_t picture, std::size_t y, std::size_t x, std::size_t c) const {
    return pictures.values[((picture * 3 + y) * 5 + x) * 3 + c];
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(shaders, Shaders)

BOOST_AUTO_TEST_CASE(every_picture_of_a_batch_is_drawn) {
  for (const std::string& text :
       {std::string(), kHead + std::string("void main() { fragColor0 = texture(u_image0, "
                                           "v_texCoord); }")}) {
    const Results results = drawn(text);
    BOOST_TEST((results.shape("x.IMAGE0") == std::vector<std::int64_t>{2, 3, 5, 4}));
    const std::vector<float> made = results.floats("x.IMAGE0");
    for (std::size_t i = 0; i < 30; ++i) {
      for (std::size_t c = 0; c < 3; ++c)
        BOOST_TEST(std::fabs(made[4 * i + c] - pictures.values[3 * i + c]) < 1e-6f);
      BOOST_TEST(made[4 * i + 3] == 1.0f);
    }
    for (const char* other : {"x.IMAGE1", "x.IMAGE2", "x.IMAGE3"})
      for (const float number : results.floats(other)) BOOST_TEST(number == 0);
  }
}

BOOST_AUTO_TEST_CASE(uniforms_are_numbered_as_they_are_linked) {
  const std::string text = kHead + std::string(R"(
uniform float u_float0, u_float1;
uniform int u_int0;
uniform bool u_bool0, u_bool1;
layout(location = 2) out vec4 fragColor2;
void main() {
  fragColor0 = vec4(u_float0, u_float1, float(u_int0), (u_bool0 ? 1.0 : 0.0) + (u_bool1 ? 2.0 : 0.0));
  fragColor2 = vec4(v_texCoord, u_resolution);
})");
  const Results results = drawn(text, R"("size_mode": "from_input", "floats.u_float3": 0.5,
      "floats.u_float1": -2, "ints.u_int4": -7, "bools.u_bool0": false, "bools.u_bool2": true)");
  const std::vector<float> numbers = results.floats("x.IMAGE0"),
                           places = results.floats("x.IMAGE2");
  const std::vector<float> expected = {-2, 0.5, -7, 2};
  for (std::size_t i = 0; i < numbers.size(); ++i) BOOST_TEST(numbers[i] == expected[i % 4]);
  for (std::size_t y = 0; y < 3; ++y)
    for (std::size_t x = 0; x < 5; ++x) {
      const float* const pixel = &places[(y * 5 + x) * 4];
      BOOST_TEST(std::fabs(pixel[0] - (float(x) + 0.5f) / 5) < 1e-6f);
      BOOST_TEST(std::fabs(pixel[1] - (2.5f - float(y)) / 3) < 1e-6f);  // y points up
      BOOST_TEST((pixel[2] == 5 && pixel[3] == 3));
    }
}

BOOST_AUTO_TEST_CASE(a_picture_may_have_another_size_and_other_pictures) {
  const Results results =
      drawn(kHead + std::string("void main() { fragColor0 = texture(u_image0, v_texCoord) + "
                                "texture(u_image1, v_texCoord); }"),
            R"("size_mode": "custom", "size_mode.width": 10, "size_mode.height": 3,
               "images.image1": ["b", 0])");
  BOOST_TEST((results.shape("x.IMAGE0") == std::vector<std::int64_t>{2, 3, 10, 4}));
  const std::vector<float> made = results.floats("x.IMAGE0");
  for (std::size_t n = 0; n < 2; ++n)
    for (std::size_t y = 0; y < 3; ++y)
      for (std::size_t x = 0; x < 10; ++x) {
        // Linear between the middles of pixels, and the border's beyond them.
        const double at = std::clamp((double(x) + 0.5) / 2 - 0.5, 0.0, 4.0);
        const auto left = std::size_t(at);
        const double part = at - double(left);
        const std::size_t right = std::min<std::size_t>(left + 1, 4);
        for (std::size_t c = 0; c < 3; ++c) {
          const double expected =
              given(n, y, left, c) * (1 - part) + given(n, y, right, c) * part + (c == 0 ? 1 : 0);
          BOOST_TEST(std::fabs(made[((n * 3 + y) * 10 + x) * 4 + c] - expected) < 1e-2,
                     "at " << x << ", " << y);
        }
      }
}

BOOST_AUTO_TEST_CASE(passes_read_what_the_last_one_drew) {
  const std::vector<float> made =
      drawn(kHead + std::string("#pragma passes 4\nuniform int u_pass;\nvoid main() { fragColor0 = "
                                "2.0 * texture(u_image0, v_texCoord) + float(u_pass); }"))
          .floats("x.IMAGE0");
  for (std::size_t i = 0; i < 30; ++i)  // ((2 (2 (2 (2 a) + 1) + 2) + 3
    BOOST_TEST(std::fabs(made[4 * i] - (16 * pictures.values[3 * i] + 11)) < 1e-4f);
}

BOOST_AUTO_TEST_CASE(curves_are_tables) {
  const Json golden = engine::parse_json(
      read_text(tests_folder() / "plugins/shader/curve_golden.json"), "curve_golden.json");
  for (const Json& one : golden.as_array()) {
    Json curve = Json::object();
    curve.set("points", one.at("points"));
    curve.set("interpolation", one.at("interpolation"));
    // The middles of the table's entries.
    const std::string more =
        R"("size_mode": "custom", "size_mode.width": 256, "size_mode.height": 1,
           "curves.u_curve0": {"__value__": )" +
        engine::write_json(curve) + "}";
    const std::vector<float> made =
        drawn(kHead + std::string("uniform sampler2D u_curve0;\nvoid main() { fragColor0 = "
                                  "vec4(texture(u_curve0, vec2(v_texCoord.x, 0.5)).r); }"),
              more)
            .floats("x.IMAGE0");
    for (std::size_t i = 0; i < one.at("values").size(); ++i)
      BOOST_TEST(std::fabs(made[i * 20] - one.at("values").at(i).as_double()) < 2e-3,
                 engine::write_json(curve) << " at " << 5 * i);
  }
}

BOOST_AUTO_TEST_CASE(errors_name_the_line) {
  const std::string refused = engine_refusal(
      [&] { drawn(kHead + std::string("\n\nvoid main() {\n  fragColor0 = nothing;\n}")); });
  BOOST_TEST(refused.find("fragment_shader: it does not compile") != std::string::npos, refused);
  BOOST_TEST(refused.find("0:10(") != std::string::npos, refused);
  BOOST_TEST(refused.find("nothing") != std::string::npos, refused);
}

// More passes than anybody waits for; loops the driver bounds by itself.
const std::string kEndless = kHead + std::string(R"(#pragma passes 2000000000
void main() { fragColor0 = texture(u_image0, v_texCoord); })");

BOOST_AUTO_TEST_CASE(a_shader_without_an_end_is_stopped) {
  ::setenv("HEDDLE_SHADER_SECONDS", "1", 1);
  const std::string refused = engine_refusal([&] { drawn(kEndless); });
  ::setenv("HEDDLE_SHADER_SECONDS", "soon", 1);
  const std::string wrong = engine_refusal([&] { drawn(""); });
  ::unsetenv("HEDDLE_SHADER_SECONDS");
  BOOST_TEST(refused.find("it was stopped after 1 s") != std::string::npos, refused);
  BOOST_TEST(wrong.find("HEDDLE_SHADER_SECONDS is 'soon'") != std::string::npos, wrong);
}

BOOST_AUTO_TEST_CASE(a_run_is_cancelled_while_it_draws) {
  const std::string flow =
      R"({"a": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 64}},
          "x": {"class_type": "GLSLShader", "inputs": {"images.image0": ["a", 0],
                "size_mode": "from_input", "fragment_shader": )" +
      engine::write_json(Json(kEndless)) + R"(}},
          "save": {"class_type": "PreviewImage", "inputs": {"images": ["x", 0]}}})";
  Run run = engine.start(engine.parse(flow));
  run.cancel();
  const std::string refused = engine_refusal([&] { run.wait(); });
  BOOST_TEST(refused.find("cancelled") != std::string::npos, refused);
}

BOOST_AUTO_TEST_CASE(a_shader_needs_a_picture) {
  const std::string flow = R"({"x": {"class_type": "GLSLShader", "inputs": {"fragment_shader": "",
                                "size_mode": "from_input"}},
      "save": {"class_type": "PreviewImage", "inputs": {"images": ["x", 0]}}})";
  BOOST_TEST(engine_refusal([&] {
               engine.start(engine.parse(flow)).wait();
             }).find("input 'images.image0': it is required") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
