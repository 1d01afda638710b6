// Workflows in the saved form, converted with hand-written definitions, for tests.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/text.h"
#include "engine/graph/saved_form.h"
#include "tests/support/refusal.h"

namespace heddle::test {

// Classes of all sorts of inputs.
inline constexpr std::string_view kSavedClasses = R"json({
  "Model": {"input": {"required": {"name": [["a.safetensors", "b.safetensors"]]},
                      "optional": {"dtype": ["COMBO", {"options": ["default", "fp8"]}]}},
            "output": ["MODEL", "VAE"], "display_name": "Load Model"},
  "Text": {"input": {"required": {"text": ["STRING", {"multiline": true, "dynamicPrompts": true}]}},
           "output": ["STRING"]},
  "Sample": {"input": {"required": {"model": ["MODEL"],
               "seed": ["INT", {"default": 0, "max": 18446744073709551615,
                                "control_after_generate": true}],
               "steps": ["INT", {"default": 20}], "cfg": ["FLOAT", {"default": 8.0}],
               "sampler": [["euler", "heun"], {}], "tiled": ["BOOLEAN", {"default": false}]},
             "optional": {"image": ["IMAGE"], "other": ["IMAGE"]}}, "output": ["IMAGE"]},
  "Old": {"input": {"required": {"noise_seed": ["INT", {}],
            "forced": ["INT", {"forceInput": true}], "size": ["INT", {"default": 7}]}},
          "output": ["INT"]},
  "Pick": {"input": {"required": {"item": ["COMBO", {"options": ["x", "y"],
             "control_after_generate": true}], "count": ["INT", {"default": 1}]}},
           "output": ["STRING"]},
  "Resize": {"input": {"required": {"input": ["COMFY_MATCHTYPE_V3", {"template": {}}],
    "mode": ["COMFY_DYNAMICCOMBO_V3", {"options": [
      {"key": "by size", "inputs": {"required": {"width": ["INT", {"default": 512}],
                                                 "match": ["IMAGE", {}]}}},
      {"key": "by area", "inputs": {"required": {"area": ["FLOAT", {"default": 1.0}]},
        "optional": {"codec": ["COMFY_DYNAMICCOMBO_V3", {"options": [
          {"key": "h264", "inputs": {"required": {"crf": ["INT", {"default": 23}],
                                                  "multiple": ["INT", {"default": 1}]}}}]}]}}}]}],
    "method": [["area", "lanczos"]]}}, "output": ["IMAGE"]},
  "Batch": {"input": {"required": {"images": ["COMFY_AUTOGROW_V3", {"template":
             {"input": {"required": {"image": ["IMAGE", {}]}}, "prefix": "image", "min": 1}}],
             "mode": ["STRING", {}]}}, "output": ["IMAGE"]},
  "Stack": {"input": {"required": {"rows": ["COMFY_DYNAMICGROUP_V3", {"min": 1, "max": 20,
             "template": {"required": {"name": ["STRING", {}],
                                       "strength": ["FLOAT", {"default": 1.0}]}}}],
             "end": ["STRING", {}]}}, "output": []},
  "Compare": {"input": {"required": {"view": ["IMAGECOMPARE", {}], "scale": ["INT", {}],
              "curve": ["CURVE", {"default": {"points": []}}], "list": ["COLORS", {}]}},
              "output": []},
  "CustomCombo": {"input": {"required": {"choice": ["COMBO", {"options": []}]}}, "output": ["STRING"]},
  "SaveImage": {"input": {"required": {"images": ["IMAGE"],
                "filename_prefix": ["STRING", {"default": "ComfyUI"}]}}, "output": []}
})json";

inline engine::Json convert_saved(std::string_view workflow,
                                  engine::UnknownClasses unknown = engine::UnknownClasses::refuse) {
  engine::ObjectInfo classes;
  classes.add(engine::parse_json(kSavedClasses, "classes"));
  return engine::convert_saved_form(engine::parse_json(workflow, "saved"), classes, "w.json",
                                    unknown);
}

// The "inputs" of a node, in one line; "gone" for a node that is not there.
inline std::string inputs_of(const engine::Json& nodes, std::string_view id) {
  const engine::Json* node = nodes.find(id);
  return node == nullptr ? "gone" : engine::write_json(node->at("inputs"));
}

// Of a workflow of these nodes and links (texts of JSON elements).
inline engine::Json convert_nodes(const std::string& nodes, const std::string& links = "",
                                  const std::string& rest = "") {
  return convert_saved("{\"nodes\": [" + nodes + "], \"links\": [" + links + "]" + rest + "}");
}

inline std::string refusal_of_nodes(const std::string& nodes, const std::string& links = "",
                                    const std::string& rest = "") {
  return refusal_of([&] { convert_nodes(nodes, links, rest); }).what();
}

}  // namespace heddle::test
