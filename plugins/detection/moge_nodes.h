// plugins/detection/moge_nodes.h - the nodes that ask MoGe where things lie, and read what it says:
// a MOGE_GEOMETRY (heddle/diffusion/values.h). LoadMoGeModel is one of plugins/core. Stateless; any
// thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::detection {

// As ComfyUI: a picture's camera is found by what was predicted, or told by its field of view. The
// steps of a refiner are those of MoGe 3, which is refused where it is loaded.
struct MogeInference {
  static constexpr Widget kFov{.min = 0, .max = 170, .step = 0.1, .extra = R"({"advanced": true})"};
  static constexpr Widget kProjects{.number = 1, .extra = R"({"advanced": true})"};
  static constexpr Widget kMasks{.number = 1, .extra = R"({"advanced": true})"};
  static constexpr Widget kSteps{.number = 3, .min = 0, .max = 8, .flags = HEDDLE_PORT_OPTIONAL};

  static constexpr Info info{"MoGeInference", 1, "Run MoGe Inference", "image/geometry estimation",
                             "Estimates depths, points and normals of pictures."};
  static constexpr Input<Value> model{"moge_model", HEDDLE_PORT_PASS, "", "MOGE_MODEL"};
  static constexpr Input<Tensor> image{"image", HEDDLE_PORT_HOST, "(B, H, W, C) f32, 0 to 1",
                                       "IMAGE"};
  static constexpr Input<std::int64_t> level{
      "resolution_level", Widget{.number = 9, .min = 0, .max = 9}, "9 sees most details."};
  static constexpr Input<double> fov{"fov_x_degrees", kFov,
                                     "The camera's field of view from left to right; 0: found."};
  static constexpr Input<std::int64_t> batch{"batch_size", Widget{.number = 4, .min = 1, .max = 64},
                                             "Pictures of a call."};
  static constexpr Input<bool> projects{"force_projection", kProjects,
                                        "Points lie where the camera sees them."};
  static constexpr Input<bool> masks{"apply_mask", kMasks,
                                     "Where there is nothing depths are infinite."};
  static constexpr Input<std::int64_t> steps{"refine_steps", kSteps};
  static constexpr Output<Value> geometry{"moge_geometry", 0, "", "MOGE_GEOMETRY"};
  static constexpr auto ports =
      heddle::ports(model, image, level, fov, batch, projects, masks, steps, geometry);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct MogeRender {
  static constexpr const char* kOutputs[] = {"depth",          "depth_colored", "normal_opengl",
                                             "normal_directx", "mask",          nullptr};
  static constexpr Info info{"MoGeRender",
                             1,
                             "Render MoGe Geometry",
                             "image/geometry estimation",
                             "Draws depths, near ones bright, normals, or where something is.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> geometry{"moge_geometry", 0, "", "MOGE_GEOMETRY"};
  static constexpr Input<std::string> output{
      "output", Widget{.text = "depth", .choices = kOutputs, .type = "COMBO"}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "(B, H, W, 3) f32, 0 to 1", "IMAGE"};
  static constexpr auto ports = heddle::ports(geometry, output, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

// Of the first picture.
struct MogeGeometryToFov {
  static constexpr const char* kAxes[] = {"vertical", "horizontal", "diagonal", nullptr};
  static constexpr const char* kUnits[] = {"degrees", "radians", nullptr};
  static constexpr Info info{"MoGeGeometryToFOV",
                             1,
                             "Get FoV from MoGe Geometry",
                             "image/geometry estimation",
                             "The camera's field of view and focal length.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> geometry{"moge_geometry", 0, "", "MOGE_GEOMETRY"};
  static constexpr Input<std::string> axis{
      "axis", Widget{.text = "vertical", .choices = kAxes, .type = "COMBO"}};
  static constexpr Input<std::string> unit{
      "unit", Widget{.text = "degrees", .choices = kUnits, .type = "COMBO"}};
  static constexpr Output<double> fov{"fov"};
  static constexpr Output<double> focal{"focal_pixels"};
  static constexpr auto ports = heddle::ports(geometry, axis, unit, fov, focal);
  static void execute(Context& ctx);
};

}  // namespace heddle::detection
