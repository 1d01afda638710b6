#include "language_texts.h"

#include <algorithm>
#include <array>
#include <vector>

namespace heddle::loaders {
namespace {

// What the pipelines of Qwen-Image, which is also Krea 2's, Qwen-Image Edit, Qwen-Image 2.1,
// Z-Image, whose template is also FLUX 3's, and FLUX.2 put around a prompt, which stands at the
// braces. Source: their publishers' pipelines in diffusers.
constexpr const char* kQwenImageTemplate =
    "<|im_start|>system\nDescribe the image by detailing the color, shape, size, texture, "
    "quantity, "
    "text, spatial relationships of the objects and background:<|im_end|>\n<|im_start|>user\n{}"
    "<|im_end|>\n<|im_start|>assistant\n";
constexpr const char* kQwenEditTemplate =
    "<|im_start|>system\nDescribe the key features of the input image (color, shape, size, "
    "texture, "
    "objects, background), then explain how the user's text instruction should alter or modify the "
    "image. Generate a new image that meets the user's requirements while maintaining consistency "
    "with the original input where appropriate.<|im_end|>\n<|im_start|>user\n"
    "<|vision_start|><|image_pad|><|vision_end|>{}<|im_end|>\n<|im_start|>assistant\n";
constexpr const char* kQwenImage21Template =
    "<|im_start|>system\nComprehend and analyze the provided "
    "prompt.<|im_end|>\n<|im_start|>user\n{}"
    "<|im_end|>\n<|im_start|>assistant\n";
// Of HunyuanVideo 1.5 and 1.0; the gaps are the publisher's.
constexpr const char* kHunyuan15Template =
    "<|im_start|>system\nYou are a helpful assistant. Describe the video by detailing the "
    "following "
    "aspects:         1. The main content and theme of the video.         2. The color, shape, "
    "size, "
    "texture, quantity, text, and spatial relationships of the objects.         3. Actions, "
    "events, "
    "behaviors temporal relationships, physical movement changes of the objects.         4. "
    "background environment, light, style and atmosphere.         5. camera angles, movements, and "
    "transitions used in the video.<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n"
    "<|im_start|>assistant\n";
constexpr const char* kHunyuanTemplate =
    "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nDescribe the video by "
    "detailing "
    "the following aspects: 1. The main content and theme of the video.2. The color, shape, size, "
    "texture, quantity, text, and spatial relationships of the objects.3. Actions, events, "
    "behaviors temporal relationships, physical movement changes of the objects.4. background "
    "environment, light, style and atmosphere.5. camera angles, movements, and transitions used in "
    "the video:<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|>";
constexpr const char* kZImageTemplate = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n";

constexpr const char* kQwen35Template =
    "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n<think>\n</think>\n";

constexpr const char* kKleinTemplate =
    "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
constexpr const char* kFlux2DevTemplate =
    "<s>[SYSTEM_PROMPT]You are an AI that reasons about image descriptions. You give structured "
    "responses focusing on object relationships, object\nattribution and actions without "
    "speculation.[/SYSTEM_PROMPT][INST]{}[/INST]";

// Over 15 members: a row of a table, most of it with a default.
struct Recipe {
  const char* clip_type;
  const char* text_template;
  const char* picture_template;  // of a prompt with pictures
  const char* unless;            // prompts that begin so are taken as they are
  const char* turn;              // what precedes the second of these is left out of the result,
  const char* turn_role;         // and that one with this behind it
  const char* picture_token;     // where pictures stand; empty: the model sees none
  int layers_left;  // layers behind the one whose states are read; 0: all, under the final norm
  std::array<int, 12> layers = {};  // instead: the numbers of those whose states are joined
  std::int64_t least_length = 0;    // tokens; padding behind them, which they do not see
  std::int64_t multiple = 0;        // the same, of tokens
  std::int64_t padding_at = -1;     // where padding lies; -1: each behind the one before
  bool without_norm = false;        // after all layers, the states before the final norm
  bool keeps_turn = false;          // what is left out ends before the second turn
  bool has_weights = false;         // whether weights of a prompt's parts count
  bool all_states = false;          // of every layer, for a projection
  const char* empty_text = "";      // in the place of an empty prompt
};
constexpr Recipe kQwenImage{.clip_type = "qwen_image",
                            .text_template = kQwenImageTemplate,
                            .picture_template = kQwenEditTemplate,
                            .unless = "<|im_start|>",
                            .turn = "<|im_start|>",
                            .turn_role = "user\n",
                            .picture_token = "<|image_pad|>",
                            .layers_left = 0};
constexpr Recipe kQwenImage21{.clip_type = "qwen_image",
                              .text_template = kQwenImage21Template,
                              .picture_template = kQwenImage21Template,
                              .unless = "<|im_start|>",
                              .turn = "<|im_start|>",
                              .turn_role = "",
                              .picture_token = "<|image_pad|>",
                              .layers_left = 0,
                              .without_norm = true,
                              .keeps_turn = true};
constexpr Recipe kKrea2{.clip_type = "krea2",
                        .text_template = kQwenImageTemplate,
                        .picture_template = "",
                        .unless = "<|im_start|>",
                        .turn = "<|im_start|>",
                        .turn_role = "user\n",
                        .picture_token = "",
                        .layers_left = 0,
                        .layers = {2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 32, 35}};
constexpr Recipe kZImage{.clip_type = "z_image",
                         .text_template = kZImageTemplate,
                         .picture_template = "",
                         .unless = "",
                         .turn = "",
                         .turn_role = "",
                         .picture_token = "",
                         .layers_left = 1};
constexpr Recipe kLumina2{.clip_type = "lumina2",
                          .text_template = "<bos>{}",
                          .picture_template = "",
                          .unless = "",
                          .turn = "",
                          .turn_role = "",
                          .picture_token = "",
                          .layers_left = 1,
                          .has_weights = true};
constexpr Recipe kKlein{.clip_type = "flux2",
                        .text_template = kKleinTemplate,
                        .picture_template = "",
                        .unless = "",
                        .turn = "",
                        .turn_role = "",
                        .picture_token = "",
                        .layers_left = 0,
                        .layers = {9, 18, 27},
                        .least_length = 512};
constexpr Recipe kFlux2Dev{.clip_type = "flux2",
                           .text_template = kFlux2DevTemplate,
                           .picture_template = "",
                           .unless = "",
                           .turn = "",
                           .turn_role = "",
                           .picture_token = "",
                           .layers_left = 0,
                           .layers = {10, 20, 30}};

// FLUX 3's model attends to the padding. Where it lies is as it was trained, by its publisher's
// pipeline.
constexpr Recipe kFlux3{.clip_type = "flux3",
                        .text_template = kZImageTemplate,
                        .picture_template = "",
                        .unless = "",
                        .turn = "",
                        .turn_role = "",
                        .picture_token = "",
                        .layers_left = 0,
                        .layers = {4, 8, 12, 16, 20, 24, 28, 32},
                        .multiple = 80,
                        .padding_at = 1};

// The prompt as it is. Source: the publishers' pipeline in diffusers.
constexpr Recipe kMinimax{.clip_type = "minimax",
                          .text_template = "{}",
                          .picture_template = "{}",
                          .unless = "",
                          .turn = "",
                          .turn_role = "",
                          .picture_token = "<|image_pad|>",
                          .layers_left = 0,
                          .layers = {50}};

// What its projection reads: all layers of the text alone.
constexpr Recipe kLtx2{.clip_type = "ltx2",
                       .text_template = "<bos>{}",
                       .picture_template = "",
                       .unless = "",
                       .turn = "",
                       .turn_role = "",
                       .picture_token = "",
                       .layers_left = 0,
                       .all_states = true};

// What is read is two layers before the last, as published. What precedes the prompt is left out.
constexpr Recipe kHunyuan15{.clip_type = "hunyuan_video_15",
                            .text_template = kHunyuan15Template,
                            .picture_template = "",
                            .unless = "<|im_start|>",
                            .turn = "<|im_start|>",
                            .turn_role = "user\n",
                            .picture_token = "",
                            .layers_left = 2,
                            .empty_text = " "};
constexpr Recipe kHunyuan{.clip_type = "hunyuan_video",
                          .text_template = kHunyuanTemplate,
                          .picture_template = "",
                          .unless = "",
                          .turn = "<|start_header_id|>",
                          .turn_role = "user<|end_header_id|>\n\n",
                          .picture_token = "",
                          .layers_left = 2};

// It writes texts; no family of images that is known reads its states, which are those before the
// last layer, as ComfyUI has them.
constexpr Recipe kQwen35{.clip_type = "qwen3.5",
                         .text_template = kQwen35Template,
                         .picture_template = "",
                         .unless = "<|im_start|>",
                         .turn = "",
                         .turn_role = "",
                         .picture_token = "",
                         .layers_left = 1};

// An encoder with a type, and what they make up: a recipe, or else the name of a family that is not
// supported. width 0: of any.
struct EncoderChoice {
  const char* encoder;
  std::int64_t width;
  const char* type;  // empty: any other
  const Recipe* recipe;
  const char* unsupported;
};
constexpr EncoderChoice kChoices[] = {
    {"qwen2.5", 0, "hunyuan_image", nullptr, "HunyuanImage"},
    {"qwen2.5", 0, "longcat_image", nullptr, "LongCat-Image"},
    {"qwen2.5", 0, "hunyuan_video_15", &kHunyuan15, nullptr},
    {"qwen2.5", 0, "", &kQwenImage, nullptr},
    {"llama3", 0, "hunyuan_video", &kHunyuan, nullptr},
    {"llama3", 0, "hidream", nullptr, "HiDream"},
    {"qwen3", 1024, "", nullptr, "Anima"},
    {"qwen3", 4096, "ideogram4", nullptr, "Ideogram 4"},
    {"qwen3", 4096, "", &kKlein, nullptr},
    {"qwen3", 0, "flux", &kKlein, nullptr},
    {"qwen3", 0, "flux2", &kKlein, nullptr},
    {"qwen3", 0, "", &kZImage, nullptr},
    {"qwen3vl", 0, "krea2", &kKrea2, nullptr},
    {"qwen3vl", 0, "qwen_image", &kQwenImage21, nullptr},
    {"qwen3vl", 0, "flux3", &kFlux3, nullptr},
    {"qwen3vl", 0, "mage", nullptr, "Mage-Flow"},
    {"qwen3vl", 0, "ideogram4", nullptr, "Ideogram 4"},
    {"qwen3vl", 0, "boogu", nullptr, "Boogu"},
    {"qwen3vl", 0, "joyimage", nullptr, "JoyImage"},
    {"qwen3vl", 0, "minimax", &kMinimax, nullptr},
    {"qwen3.5", 0, "moss_image", nullptr, "MOSS-Image"},
    {"qwen3.5", 0, "", &kQwen35, nullptr},
    {"mistral3", 0, "", &kFlux2Dev, nullptr},
    {"gemma2", 0, "pixeldit", nullptr, "PixelDiT"},
    {"gemma2", 0, "", &kLumina2, nullptr},
    {"gemma3", 0, "newbie", nullptr, "NewBie-Image"},
    {"gemma3", 0, "", &kLtx2, nullptr},
    {"gemma4", 0, "", &kLtx2, nullptr},
    {"gemma4_e", 0, "", &kLtx2, nullptr},
};

// The same model built to write texts, or what it lacks for that.
void add_writer(Context& ctx, Record& encoder, const Value& model, const Value& config) {
  Record changed = config.is(HEDDLE_KIND_RECORD) ? Record(config) : Record();
  try {
    encoder.set("writer",
                rebuilt_model(ctx, model, changed.set("writes_texts", value_of(true)).value()));
  } catch (const Failed& failed) {
    encoder.set("writer_missing",
                value_of(std::string(services.host->status_message(failed.status))));
    services.host->status_free(failed.status);
  }
}

}  // namespace

bool is_language_model(const Value& model) {
  return model_settings(model).get<std::string>("family", "") == "language_model";
}

std::string language_name(const Value& model) {
  return model_settings(model).get<std::string>("kind", "");
}

LanguageUse language_use(Context& ctx, const Value& model, const Value& config,
                         const std::string& type, const std::string& where) {
  const Value settings = model_settings(model);
  const std::string name = language_name(model);
  const auto width = settings.get<std::int64_t>("hidden_width", 0);
  const auto choice = std::ranges::find_if(kChoices, [&](const EncoderChoice& c) {
    return name == c.encoder && (c.width == 0 || c.width == width) &&
           (c.type[0] == '\0' || type == c.type);
  });
  if (choice == std::end(kChoices) || choice->recipe == nullptr)
    throw Error(
        HEDDLE_UNSUPPORTED,
        where + ": this is the text encoder " + name + " of width " + std::to_string(width) +
            ", with type '" + type + "' that of " +
            (choice == std::end(kChoices)
                 ? std::string("no family that is known")
                 : choice->unsupported + std::string(", which is not supported")) +
            ". Known: qwen2.5 with type qwen_image (Qwen-Image), qwen3 "
            "with type lumina2 (Z-Image), qwen3 and mistral3 with type flux2 (FLUX.2), "
            "gemma2 with type lumina2 (Lumina 2), qwen3vl with type krea2 (Krea 2), flux3 "
            "(FLUX 3), qwen_image (Qwen-Image 2.1) and minimax (MiniMax H3), qwen3.5, which "
            "writes texts (TextGenerate), with any other type, gemma3 with type ltxv (LTX "
            "2), gemma4 with type ltxv (LTX 2.5), and with DualCLIPLoader qwen2.5 with type "
            "hunyuan_video_15 and llama3 with type hunyuan_video (HunyuanVideo).");
  const Recipe& recipe = *choice->recipe;
  LanguageUse use{recipe.clip_type, {}};
  const auto layers = settings.get<std::int64_t>("layers", 0);
  std::vector<Value> read;  // numbers of layers
  if (recipe.layers_left > 0 || recipe.without_norm)
    read.push_back(value_of(layers - recipe.layers_left));
  for (const int layer : recipe.layers)
    if (layer > 0) read.push_back(value_of(std::int64_t(layer)));
  const int last = *std::ranges::max_element(recipe.layers);
  if (last > layers)
    throw Error(HEDDLE_INVALID_ARGUMENT, where + ": the text encoder " + name + " has " +
                                             std::to_string(layers) + " layers; with type '" +
                                             type + "' (" + recipe.clip_type +
                                             ") the states of layer " + std::to_string(last) +
                                             " are read. Change the type, or take a whole file.");
  Value used = model;
  if (!read.empty() || recipe.all_states) {
    Record changed = config.is(HEDDLE_KIND_RECORD) ? Record(config) : Record();
    if (!read.empty()) changed.set("hidden_layers", list_of(read));
    changed.set("all_states", value_of(recipe.all_states));
    changed.set("masks_padding", value_of(recipe.least_length > 0 || recipe.multiple > 0));
    if (recipe.padding_at >= 0) changed.set("padding_at", value_of(recipe.padding_at));
    used = rebuilt_model(ctx, model, changed.value());
  }
  add_writer(ctx, use.encoder, model, config);
  if (recipe.all_states)
    use.encoder.set(
        "projection_missing",
        value_of(
            where + ": LTX 2 reads a projection of this text encoder's layers, " +
            (name == "gemma3"
                 ? "which is in another file. Load both with LTXAVTextEncoderLoader, with the "
                   "checkpoint of LTX 2 as ckpt_name."
                 : "which this file has not, so that it writes texts alone. Load the file that "
                   "was published with LTX 2.5, such as "
                   "gemma4-12b-with-proj-ltx-2.5-comfy-int8-convrot.safetensors.")));
  use.encoder.set("model", used)
      .set("template", value_of(std::string(recipe.text_template)))
      .set("picture_template", value_of(std::string(recipe.picture_template)))
      .set("picture_token", value_of(std::string(recipe.picture_token)))
      .set("template_unless", value_of(std::string(recipe.unless)))
      .set("turn", value_of(std::string(recipe.turn)))
      .set("turn_role", value_of(std::string(recipe.turn_role)))
      .set("empty_text", value_of(std::string(recipe.empty_text)))
      .set("keeps_turn", value_of(recipe.keeps_turn))
      .set("weights", value_of(recipe.has_weights))
      .set("least_length", value_of(recipe.least_length))
      .set("length_multiple", value_of(recipe.multiple));
  return use;
}

}  // namespace heddle::loaders
