// The models that bf16_test.cpp measures: one row for each file of weights and its cases in the
// goldens.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/safetensors_writer.h"
#include "tests/support/sd3_models.h"
#include "tests/support/sdpose_models.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/svd_models.h"

namespace heddle::test {

struct Bf16Patch {
  std::string name;  // in goldens/FOLDER/shapes.json
  double strength;
  std::string told = {};  // more of its config
};

struct Bf16Model {
  std::string folder;              // expected.safetensors there has what it is given and makes
  std::string model;               // in shapes.json, or a file there
  std::vector<std::string> cases;  // "square": outputs are "square.out", inputs "square.x", ...
  std::string config = {};
  bool by_other_name = false;                       // of seeded_model()
  std::function<std::vector<FileTensor>()> made{};  // the tensors, instead of `model`
  std::string from = {};                            // the folder of shapes.json, if another
  std::vector<Bf16Patch> patches = {};
  std::string beside = {};  // more tensors of the file, whose own have the prefix of checkpoints
  FileMetadata metadata = {};
  std::string inputs = {};      // another case that has the inputs
  std::string without = {};     // but for these, apart by commas
  std::string output = {};      // the golden's name of what is compared, of one step
  std::string made_as = "out";  // the model's name of that
  // How many of each so many numbers the golden has, the first of them.
  std::array<std::size_t, 2> kept = {1, 1};
};

inline std::vector<FileTensor> sd3_first() { return sd3_transformer("first"); }
inline std::vector<FileTensor> sd3_large() { return sd3_transformer("large"); }
inline std::vector<FileTensor> sd3_medium() { return sd3_transformer("medium"); }
inline std::vector<FileTensor> svd_unet() { return sv3d_unet(768); }
inline std::vector<FileTensor> sv3d_u_unet() { return sv3d_unet(256); }
inline std::vector<FileTensor> sv3d_p_unet() { return sv3d_unet(1280); }
// With the matrix of a view beside it.
inline std::vector<FileTensor> zero123_unet() {
  std::vector<FileTensor> tensors = unet_model("inpaint");
  for (FileTensor& tensor : tensors)
    if (tensor.name == "conv_in.weight")
      tensor = seeded_tensor(tensor.name, {tensor.shape[0], 8, 3, 3});
  tensors.push_back(seeded_tensor("cc_projection.weight", {64, 68}));
  tensors.push_back(seeded_tensor("cc_projection.bias", {64}));
  return tensors;
}
inline std::vector<FileTensor> unclip_unet() {
  std::vector<FileTensor> tensors = unet_model("sd2");
  const std::int64_t width = 256;
  tensors.push_back(seeded_tensor("class_embedding.linear_1.weight", {width, 128}));
  tensors.push_back(seeded_tensor("class_embedding.linear_1.bias", {width}));
  tensors.push_back(seeded_tensor("class_embedding.linear_2.weight", {width, width}));
  tensors.push_back(seeded_tensor("class_embedding.linear_2.bias", {width}));
  return tensors;
}
inline std::vector<FileTensor> sdpose_unet() { return sdpose_tensors(); }

inline std::vector<Bf16Model> bf16_image_models() {
  const std::string texts = R"({"least_text_tokens": 2})",
                    keeps = R"({"least_text_tokens": 2, "keeps_references": true})",
                    axes = R"({"axes_dims_rope": [16, 4, 4]})",
                    qwen = "transformer/diffusion_pytorch_model.safetensors",
                    small_qwen = "qwen_image.transformer";
  return {
      {"random", "flux_diffusers.safetensors", {"flux", "flux_odd"}},
      {"chroma", "transformer", {"square", "wide", "odd", "told"}},
      {"radiance", "filter", {"square", "wide", "odd"}},
      {"radiance", "linear", {"linear"}},
      {"radiance", "linear", {"sequential"}, R"({"sequential_text": true})"},
      {"radiance", "finest", {"finest"}},
      {"flux2", "klein", {"klein_square", "klein_shown"}},
      {"flux2", "klein", {"klein_wide", "klein_timed"}, texts},
      {"flux2", "klein", {"klein_kept"}, keeps},
      {"flux2", "dev", {"dev_odd"}},
      {"flux3", "base", {"base_square", "base_wide", "base_shown"}},
      {"flux3", "distilled", {"distilled_odd", "distilled_shown"}},
      {"krea2", "transformer", {"square", "wide", "odd"}},
      {"lumina2", "transformer", {"square", "odd"}},
      {"qwen_image", qwen, {"square", "wide", "shown", "several", "timed"}, axes},
      {"qwen21", "transformer", {"square", "wide", "odd"}},
      {"qwen_layered", "transformer", {"tall", "wide", "many", "odd", "alone", "one"}},
      {"workflows", "z_image.transformer", {"z_square", "z_wide", "z_odd"}},
      {"sd3", "", {"first_square", "first_odd"}, "", false, sd3_first},
      {"sd3", "", {"large_square", "large_odd"}, "", false, sd3_large},
      {"sd3", "", {"medium_square", "medium_odd"}, "", false, sd3_medium},
      {.folder = "control",
       .model = small_qwen,
       .cases = {"qwen_drawn", "qwen_each", "qwen_first"},
       .from = "workflows"},
      {.folder = "patches", .model = "z_image", .cases = {"alone"}, .patches = {{"alone", 0.7}}},
      {.folder = "patches", .model = "z_image", .cases = {"beside"}, .patches = {{"beside", 0.8}}},
      {.folder = "patches",
       .model = "z_image",
       .cases = {"repeated"},
       .patches = {{"repeated", 0.6}}},
      {.folder = "patches",
       .model = "z_image",
       .cases = {"both"},
       .patches = {{"alone", 0.4}, {"beside", -0.5}}},
      {.folder = "patches",
       .model = small_qwen,
       .cases = {"qwen"},
       .from = "workflows",
       .patches = {{"qwen_edges", 0.7}}},
      {"unet", "sd1", {"sd1_square", "sd1_odd"}},
      {"unet", "sd2", {"sd2_square", "sd2_odd"}},
      {"unet", "sdxl", {"sdxl_square", "sdxl_odd"}},
      {"unet", "refiner", {"refiner_square", "refiner_odd"}},
      {"unet", "inpaint", {"inpaint_square", "inpaint_odd"}},
      {"shown", "lotus", {"lotus_square", "lotus_odd"}},
      {"shown", "x4", {"x4_square", "x4_odd"}},
      {"zero123", "", {"seen_square", "seen_odd"}, "", false, zero123_unet},
      {"unclip", "", {"seen_square", "seen_odd"}, "", false, unclip_unet},
      {.folder = "sdpose",
       .cases = {"square", "odd"},
       .config = R"({"heatmaps": true})",
       .made = sdpose_unet,
       .output = "heatmaps",
       .made_as = "heatmaps",
       .kept = {6, 133}},
  };
}

inline std::vector<Bf16Model> bf16_wan_models() {
  const std::string wan = R"({"attention_head_dim": 16})",
                    follows = R"({"attention_head_dim": 16, "follows_poses": true})",
                    animate = "animate.long";
  std::vector<Bf16Model> models{
      {"wan", "text", {"text.short", "text.long", "text.odd"}, wan},
      {"wan", "picture", {"picture.short", "picture.long", "picture.odd"}, wan},
      {"wan", "frames", {"frames.short", "frames.long", "frames.odd"}, wan},
      // One of 14B of Wan 2.2 that draws of a text is "text" in all but its size.
      {"wan22", "expert", {"expert.long", "expert.odd"}},
      {"wan22", "flow", {"whole.short", "whole.odd", "begun.long", "begun.odd"}},
      {"wan_tracks", "flow", {"told.long", "told.odd"}},
      {"wan_vace", "vace", {"vace.short", "vace.long", "vace.odd"}, wan},
      {"wan_fun", "camera", {"camera.short", "camera.long", "camera.odd"}, wan},
      {"wan_fun", "reference", {"reference.short", "reference.long", "reference.odd"}, wan},
      {"wan_animate", "animate", {"animate.short", animate, "animate.odd"}, wan, true},
      {"wan_animate", "animate", {"animate.few", "animate.many"}, wan, true},
      {"wan_animate2", "animate2", {"animate2.short", "animate2.long"}, follows, true},
      {"wan_animate2", "animate2", {"animate2.odd"}, follows, true},
      {.folder = "wan_causal",
       .model = "plain",
       .cases = {"begin", "behind", "odd"},
       .config = wan,
       .by_other_name = true,
       .metadata = {{"config", R"({\"transformer\": {\"causal_ar\": true}})"}}},
      {"wan_dancer", "plain", {"plain", "far", "silent"}, wan, true},
      {"wan_dancer", "parted", {"parted"}, wan, true},
      {"wan_humo", "plain", {"plain", "odd", "alone"}, wan, true},
      {"wan_humo", "beside", {"beside"}, wan, true},
      {"wan_scail", "plain", {"plain", "odd", "apart", "alone", "pictures"}, wan, true},
      {"wan_sound", "talk", {"talk.short", "talk.long", "talk.odd", "talk.small"}, wan, true},
      {"wan_sources", "plain", {"plain", "odd", "alone"}, wan, true},
      {.folder = "wan_talk",
       .model = "plain",
       .cases = {"one", "odd", "wide", "crowd"},
       .config = wan,
       .by_other_name = true,
       .patches = {{"patch", 0.8}}},
  };
  // Of each, a golden without one of its inputs.
  const auto add = [&](Bf16Model model, const char* inputs, const char* without) {
    model.inputs = inputs, model.without = without;
    models.push_back(std::move(model));
  };
  add({"wan_fun", "camera", {"camera.without"}, wan}, "camera.long", "camera");
  add({"wan_fun", "reference", {"reference.without"}, wan}, "reference.long", "reference");
  add({"wan_animate", "animate", {"pose"}, wan, true}, "animate.long", "face");
  add({"wan_animate", "animate", {"face"}, wan, true}, "animate.long", "pose");
  add({"wan_animate2", "animate2", {"bare"}, follows, true}, "animate2.long", "pose");
  for (const char* input : {"followed", "heard", "motion", "reference"})
    add({"wan_sound", "talk", {std::string("without.") + input}, wan, true}, "talk.small", input);
  return models;
}

inline std::vector<Bf16Model> bf16_video_models() {
  const std::string four = R"({"num_attention_heads": 4)", three = R"({"num_attention_heads": 3)",
                    causal = R"(, "causal_temporal_positioning": true})",
                    heads = R"("num_attention_heads": 2, "audio_num_attention_heads": 2)",
                    two = R"({"num_attention_heads": 4, "audio_num_attention_heads": 4)",
                    turned = "{" + heads + R"(, "rope_type": "interleaved")",
                    connected = R"(, "connector_num_attention_heads": 2,
                                    "audio_connector_num_attention_heads": 2})",
                    five = "{" + heads + R"(, "rope_type": "split", "ff_bias": false,
                                             "use_keyframes_abs_pos_embedding": true)",
                    h3 = R"({"rope_freq_dim": 2})",
                    of_table = R"("places": [0, 1], "of_table": true)",
                    places = R"("places": [0, 1])";
  std::vector<Bf16Model> models{
      {"ltxv", "four", {"four.short", "four.long", "four.odd", "four.guided"}, four + "}"},
      {"ltxv", "four", {"four.causal"}, four + causal},
      {"ltxv", "three", {"three.short", "three.long", "three.odd", "three.guided"}, three + "}"},
      {"ltxv", "three", {"three.causal"}, three + causal},
      {"ltx2", "two", {"two.short", "two.long", "two.told", "two.guided"}, two + "}"},
      {.folder = "ltx2",
       .model = "two",
       .cases = {"two.connected"},
       .config = two + connected,
       .beside = "two_text"},
      {"ltx2", "three", {"three.short", "three.long", "three.told", "three.guided"}, turned + "}"},
      {.folder = "ltx2",
       .model = "three",
       .cases = {"three.connected"},
       .config = turned + connected,
       .beside = "three_text"},
      {"ltx25", "five", {"five.short", "five.long", "five.told", "five.guided"}, five + "}"},
      {"ltx25", "fixed", {"fixed.long"}, five + "}"},
      {.folder = "ltx25",
       .model = "five",
       .cases = {"five.connected"},
       .config = five + connected,
       .beside = "five_text"},
      {"minimax", "whole", {"whole.short", "whole.long", "whole.keyed", "whole.shown"}, h3},
      {"minimax", "curve", {"curve.short", "curve.long", "curve.keyed", "curve.shown"}, h3},
      {.folder = "minimax_fun",
       .model = "whole",
       .cases = {"whole.short", "whole.shown"},
       .config = h3,
       .from = "minimax",
       .patches = {{"fun", 0.8, places}}},
      {.folder = "minimax_fun",
       .model = "whole",
       .cases = {"whole.both"},
       .config = h3,
       .from = "minimax",
       .patches = {{"fun", 0.7, places}, {"alone", -0.4, R"("places": [0])"}}},
      {.folder = "minimax_fun",
       .model = "curve",
       .cases = {"curve.short", "curve.shown"},
       .config = h3,
       .from = "minimax",
       .patches = {{"fun_curve", 0.8, of_table}}},
      {"hunyuan", "later", {"later.text", "later.words", "later.picture"}},
      {"hunyuan", "first", {"first.short", "first.long"}},
      {"hunyuan", "sharpened", {"sharpened"}},
      {"hunyuan_begin", "concat", {"concat.one", "concat.short", "concat.odd"}, "{}", true},
      {"hunyuan_begin", "replace", {"replace.one", "replace.short", "replace.odd"}, "{}", true},
      {"hunyuan_shown", "shown", {"shown.none", "shown.short", "shown.odd"}, "{}", true},
      {"hunyuan_shown", "shown", {"shown.two"}, "{}", true},
      {"svd", "", {"square", "odd"}, "", false, svd_unet},
      {"svd", "", {"sv3d_u"}, "", false, sv3d_u_unet},
      {"svd", "", {"sv3d_p"}, "", false, sv3d_p_unet},
  };
  for (const char* kind : {"3b", "7b", "7b_shared"})
    models.push_back({.folder = "seedvr",
                      .model = kind,
                      .cases = {"video", "picture", "pictures"},
                      .output = kind});
  return models;
}

}  // namespace heddle::test
