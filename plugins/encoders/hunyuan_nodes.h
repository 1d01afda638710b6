// The node that turns a text and a picture into CONDITIONING for HunyuanVideo 1.0: Llama 3 looks at
// what LLaVA's vision tower saw. Formulas: ComfyUI's node of this name, by the publisher's
// template. Stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::encoders {

// Of several pictures the first is seen.
struct TextEncodeHunyuanVideo_ImageToVideo {
  static constexpr Widget kPrompt{.extra = R"({"multiline": true, "dynamicPrompts": true})",
                                  .flags = HEDDLE_PORT_PROMPT};
  static constexpr Widget kInterleave{
      .number = 2, .min = 1, .max = 512, .extra = R"({"advanced": true})"};

  static constexpr Info info{"TextEncodeHunyuanVideo_ImageToVideo", 1, "",
                             "model/conditioning/hunyuan video",
                             "What shall become of a picture, for HunyuanVideo 1.0."};
  static constexpr Input<Value> clip{"clip", 0, "Of the type hunyuan_video.", "CLIP"};
  static constexpr Input<Value> clip_vision_output{
      "clip_vision_output", 0, "What llava_llama3_vision saw.", "CLIP_VISION_OUTPUT"};
  static constexpr Input<std::string> prompt{"prompt", kPrompt};
  static constexpr Input<std::int64_t> image_interleave{
      "image_interleave", kInterleave,
      "Of so many tokens of the picture one is read: the more, the more the text counts."};
  static constexpr Output<Value> conditioning{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports =
      heddle::ports(clip, clip_vision_output, prompt, image_interleave, conditioning);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::encoders
