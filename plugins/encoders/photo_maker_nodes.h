// A text that names a person, with a picture of them put in (photo_maker.h). Formulas: ComfyUI's
// node of this name. Stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::encoders {

// The word "photomaker" stands behind the word that says what the person is, and is not encoded
// itself. As in ComfyUI words are counted at spaces, and the row that is replaced is that of the
// token with the number of the word before: words of several tokens put it off. Without the word
// the text is encoded as it is. Of several pictures the first counts.
struct PhotoMakerEncode {
  static constexpr Widget kText{.text = "photograph of photomaker",
                                .extra = R"({"multiline": true, "dynamicPrompts": true})",
                                .flags = HEDDLE_PORT_PROMPT};
  static constexpr Info info{"PhotoMakerEncode",
                             1,
                             "",
                             "_for_testing/photomaker",
                             "A prompt with a person of a picture behind the word photomaker.",
                             HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> photomaker{"photomaker", 0, "", "PHOTOMAKER"};
  static constexpr Input<Tensor> image{"image", HEDDLE_PORT_HOST, "(B, H, W, C) f32, 0 to 1",
                                       "IMAGE"};
  static constexpr Input<Value> clip{"clip", 0, "The text encoders of SDXL.", "CLIP"};
  static constexpr Input<std::string> text{"text", kText, "The prompt."};
  static constexpr Output<Value> conditioning{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(photomaker, image, clip, text, conditioning);
  static void execute(Context& ctx);
  static void infer(Infer& question);
  std::uint64_t fingerprint(Context& ctx);
};

}  // namespace heddle::encoders
