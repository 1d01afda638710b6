// ResizeImageMaskNode: pictures and masks in other sizes, by many rules. On the host; stateless.
#pragma once

#include "plugins/blocks/port_types.h"

namespace heddle::image {

using blocks::Choice;
using blocks::Growing;
using blocks::Matching;
using blocks::Variant;

struct ResizeImageMaskNode {
  static constexpr const char* kMethods[] = {"nearest-exact", "bilinear", "area",
                                             "bicubic",       "lanczos",  nullptr};
  static constexpr Widget kInput{
      .extra = R"({"template": {"template_id": "input_type", "allowed_types": "IMAGE,MASK"}})"};
  static constexpr Widget kRules{.extra = R"({"options": [
      {"key": "scale dimensions", "inputs": {"required": {
        "width": ["INT", {"default": 512, "min": 0, "max": 16384, "step": 1}],
        "height": ["INT", {"default": 512, "min": 0, "max": 16384, "step": 1}],
        "crop": ["COMBO", {"default": "center", "multiselect": false,
                           "options": ["disabled", "center"]}]}}},
      {"key": "scale by multiplier", "inputs": {"required": {
        "multiplier": ["FLOAT", {"default": 1.0, "min": 0.01, "max": 8.0, "step": 0.01}]}}},
      {"key": "scale longer dimension", "inputs": {"required": {
        "longer_size": ["INT", {"default": 512, "min": 0, "max": 16384, "step": 1}]}}},
      {"key": "scale shorter dimension", "inputs": {"required": {
        "shorter_size": ["INT", {"default": 512, "min": 0, "max": 16384, "step": 1}]}}},
      {"key": "scale width", "inputs": {"required": {
        "width": ["INT", {"default": 512, "min": 0, "max": 16384, "step": 1}]}}},
      {"key": "scale height", "inputs": {"required": {
        "height": ["INT", {"default": 512, "min": 0, "max": 16384, "step": 1}]}}},
      {"key": "scale total pixels", "inputs": {"required": {
        "megapixels": ["FLOAT", {"default": 1.0, "min": 0.01, "max": 16.0, "step": 0.01}],
        "multiple": ["INT", {"default": 1, "min": 1, "max": 16384, "step": 1}]}}},
      {"key": "match size", "inputs": {"required": {
        "match": ["IMAGE,MASK", {}],
        "crop": ["COMBO", {"default": "center", "multiselect": false,
                           "options": ["disabled", "center"]}]}}},
      {"key": "scale to multiple", "inputs": {"required": {
        "multiple": ["INT", {"default": 8, "min": 1, "max": 16384, "step": 1}]}}}]})"};

  static constexpr Info info{"ResizeImageMaskNode",
                             1,
                             "Resize Image/Mask",
                             "image/transform",
                             "A picture or a mask in another size, by one of several rules.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Matching> input{"input", kInput};
  static constexpr Input<Variant> resize_type{"resize_type", kRules};
  static constexpr Input<Choice> scale_method{"scale_method",
                                              Widget{.text = "area", .choices = kMethods}};
  static constexpr Output<Matching> resized{"resized"};
  static constexpr auto ports = heddle::ports(input, resize_type, scale_method, resized);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::image
