// GLSLShader: fragment shaders over pictures, by OpenGL on the CPU in a process of its own. On the
// host; stateless.
#pragma once

#include <heddle/abi/front_end.h>

#include "plugins/blocks/port_types.h"

namespace heddle::shader {

struct GLSLShader {
  static constexpr Widget kText{.extra = R"({"default": "", "multiline": true})"};
  static constexpr Widget kSizes{
      .extra = R"({"options": [{"key": "from_input", "inputs": {"required": {}}},
          {"key": "custom", "inputs": {"required": {
              "width": ["INT", {"default": 512, "min": 1, "max": 16384}],
              "height": ["INT", {"default": 512, "min": 1, "max": 16384}]}}}]})"};
  static constexpr Widget kImages{
      .extra = R"({"template": {"input": {"required": {"image": ["IMAGE", {}]}},
                   "prefix": "image", "min": 1, "max": 5}})"};
  static constexpr Widget kFloats{
      .extra = R"({"template": {"input": {"required": {"float": ["FLOAT", {"default": 0.0}]}},
                   "prefix": "u_float", "min": 0, "max": 20}})"};
  static constexpr Widget kInts{
      .extra = R"({"template": {"input": {"required": {"int": ["INT", {"default": 0}]}},
                   "prefix": "u_int", "min": 0, "max": 20}})"};
  static constexpr Widget kBools{
      .extra = R"({"template": {"input": {"required": {"bool": ["BOOLEAN", {"default": false}]}},
                   "prefix": "u_bool", "min": 0, "max": 10}})"};
  static constexpr Widget kCurves{
      .extra = R"({"template": {"input": {"required": {"curve": ["CURVE", {}]}},
                   "prefix": "u_curve", "min": 0, "max": 4}})"};

  static constexpr Info info{"GLSLShader",
                             1,
                             "GLSL Shader",
                             "image/shader",
                             "A fragment shader of GLSL ES 3.00 over pictures: u_image0 to 4, "
                             "u_resolution, and uniforms of numbers and curves.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL | HEDDLE_NODE_ANY_INPUT |
                                 HEDDLE_NODE_INTERMEDIATE_OUTPUT};
  static constexpr Input<std::string> fragment_shader{"fragment_shader", kText};
  static constexpr Input<blocks::Variant> size_mode{"size_mode", kSizes};
  static constexpr Input<blocks::Growing> images{"images", kImages};
  static constexpr Input<blocks::Growing> floats{"floats", kFloats};
  static constexpr Input<blocks::Growing> ints{"ints", kInts};
  static constexpr Input<blocks::Growing> bools{"bools", kBools};
  static constexpr Input<blocks::Growing> curves{"curves", kCurves};
  static constexpr Output<Tensor> out0{"IMAGE0", 0, "", "IMAGE"};
  static constexpr Output<Tensor> out1{"IMAGE1", 0, "", "IMAGE"};
  static constexpr Output<Tensor> out2{"IMAGE2", 0, "", "IMAGE"};
  static constexpr Output<Tensor> out3{"IMAGE3", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(fragment_shader, size_mode, images, floats, ints,
                                              bools, curves, out0, out1, out2, out3);
  static void execute(Context& ctx);
};

}  // namespace heddle::shader
