#include "hunyuan_nodes.h"

#include <optional>

#include "encode.h"

namespace heddle::encoders {
namespace {

using Shown = TextEncodeHunyuanVideo_ImageToVideo;

constexpr const char* kSeenTokens = "mm_projected";

// Source: the publisher's pipeline, as diffusers and ComfyUI have it.
constexpr const char* kShownTemplate =
    "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n<image>\nDescribe the video by "
    "detailing the following aspects according to the reference image: 1. The main content and "
    "theme of the video.2. The color, shape, size, texture, quantity, text, and spatial "
    "relationships of the objects.3. Actions, events, behaviors temporal relationships, physical "
    "movement changes of the objects.4. background environment, light, style and atmosphere.5. "
    "camera angles, movements, and transitions used in the video:<|eot_id|>\n\n"
    "<|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|><|start_header_id|>assistant"
    "<|end_header_id|>\n\n";

// Throws where the CLIP is of another model.
void check_clip_type(const Value& clip) {
  const std::string type = clip.get<std::string>("type", "");
  if (type != "hunyuan_video")
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "clip: it is of type '" + type +
                    "', and the pictures are for Llama 3 of HunyuanVideo 1.0. Load it with "
                    "DualCLIPLoader, type hunyuan_video.");
}

// Throws where these are no tokens of pictures: (B, K, width).
void check_seen_tokens(const Shape& shape) {
  if (shape.size() == 3 && shape[0] >= 1) return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "clip_vision_output: the vision tower makes no tokens for Llama 3. Load "
              "llava_llama3_vision.safetensors with CLIPVisionLoader.");
}

Prompt shown_prompt(const std::string& text, std::int64_t each, const Shape& states) {
  return {.text = text,
          .by_encoder = {},
          .shown = {.shape = states,
                    .each = each,
                    .turn = "<|start_header_id|>user<|end_header_id|>",
                    .gap = "\n\n",
                    .end = "<|eot_id|>"},
          .text_template = kShownTemplate};
}

}  // namespace

void Shown::execute(Context& ctx) {
  const Value texts = ctx[clip], seen = ctx[clip_vision_output];
  check_clip_type(texts);
  const Value tokens = seen.field(kSeenTokens);
  check_seen_tokens(tokens.is(HEDDLE_KIND_TENSOR) ? tokens.as<Tensor>().shape() : Shape());
  const Tensor states = tokens.as<Tensor>();
  Prompt asked = shown_prompt(ctx[prompt], ctx[image_interleave], states.shape());
  asked.shown.states = states;
  ctx[conditioning] = encode_prompt(ctx, texts, asked);
}

void Shown::infer(Infer& question) {
  const std::optional<Value> texts = question[clip];
  const std::optional<std::string> text = question[prompt];
  const auto each = question[image_interleave];
  const auto states = question.shape(clip_vision_output, kSeenTokens);
  if (!texts || !text || !each || !states) return;
  check_clip_type(*texts);
  check_seen_tokens(*states);
  infer_prompt(question, *texts, shown_prompt(*text, *each, *states), conditioning);
}

}  // namespace heddle::encoders
