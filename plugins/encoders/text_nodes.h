// Nodes that turn texts into CONDITIONING. Stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::encoders {

inline constexpr Widget kPromptText{.extra = R"({"multiline": true, "dynamicPrompts": true})",
                                    .flags = HEDDLE_PORT_PROMPT};

struct CLIPTextEncode {
  static constexpr Info info{"CLIPTextEncode",
                             2,
                             "CLIP Text Encode (Prompt)",
                             "conditioning",
                             "What a picture shall show, for the diffusion model: a prompt, with "
                             "(weights:1.2).",
                             HEDDLE_NODE_CACHE_ON_DISK};
  static constexpr Input<std::string> text{"text", kPromptText, "The prompt."};
  static constexpr Input<Value> clip{"clip", 0, "The text encoders.", "CLIP"};
  static constexpr Output<Value> conditioning{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(text, clip, conditioning);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
  static void infer(Infer& question);
};

struct CLIPTextEncodeFlux {
  static constexpr Widget kGuidance{.number = 3.5, .max = 100, .step = 0.1};

  static constexpr Info info{"CLIPTextEncodeFlux",
                             2,
                             "",
                             "advanced/conditioning/flux",
                             "A prompt for each of FLUX's two encoders, and its guidance.",
                             HEDDLE_NODE_CACHE_ON_DISK};
  static constexpr Input<Value> clip{"clip", 0, "", "CLIP"};
  static constexpr Input<std::string> clip_l{"clip_l", kPromptText};
  static constexpr Input<std::string> t5xxl{"t5xxl", kPromptText};
  static constexpr Input<double> guidance{"guidance", kGuidance};
  static constexpr Output<Value> conditioning{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(clip, clip_l, t5xxl, guidance, conditioning);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
  static void infer(Infer& question);
};

struct CLIPTextEncodeSD3 {
  static constexpr const char* kPaddings[] = {"none", "empty_prompt", nullptr};
  static constexpr Widget kPadding{
      .choices = kPaddings, .extra = R"({"advanced": true})", .type = "COMBO"};

  static constexpr Info info{"CLIPTextEncodeSD3",
                             1,
                             "CLIP Text Encode (SD3)",
                             "model/conditioning/stable diffusion",
                             "A prompt for each of Stable Diffusion 3's three encoders, and what "
                             "an empty one is: nothing, or a text without words.",
                             HEDDLE_NODE_CACHE_ON_DISK};
  static constexpr Input<Value> clip{"clip", 0, "", "CLIP"};
  static constexpr Input<std::string> clip_l{"clip_l", kPromptText};
  static constexpr Input<std::string> clip_g{"clip_g", kPromptText};
  static constexpr Input<std::string> t5xxl{"t5xxl", kPromptText};
  static constexpr Input<std::string> empty_padding{"empty_padding", kPadding};
  static constexpr Output<Value> conditioning{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports =
      heddle::ports(clip, clip_l, clip_g, t5xxl, empty_padding, conditioning);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
  static void infer(Infer& question);
};

struct CLIPTextEncodeLumina2 {
  static constexpr const char* kSystemPrompts[] = {"superior", "alignment", nullptr};
  static constexpr Widget kSystemPrompt{.choices = kSystemPrompts, .type = "COMBO"};

  static constexpr Info info{"CLIPTextEncodeLumina2",
                             1,
                             "CLIP Text Encode for Lumina2",
                             "conditioning",
                             "A prompt behind one of the system prompts that Lumina 2 was trained "
                             "with.",
                             HEDDLE_NODE_CACHE_ON_DISK};
  static constexpr Input<std::string> system_prompt{"system_prompt", kSystemPrompt};
  static constexpr Input<std::string> user_prompt{"user_prompt", kPromptText};
  static constexpr Input<Value> clip{"clip", 0, "", "CLIP"};
  static constexpr Output<Value> conditioning{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(system_prompt, user_prompt, clip, conditioning);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct T5TokenizerOptions {
  static constexpr Widget kIds{.number = 0, .min = 0, .max = 10000, .step = 1};

  static constexpr Info info{"T5TokenizerOptions",
                             1,
                             "",
                             "_for_testing/conditioning",
                             "How many padding tokens follow a text at least, and how many tokens "
                             "there are at least, of T5.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> clip{"clip", HEDDLE_PORT_PASS, "", "CLIP"};
  static constexpr Input<std::int64_t> min_padding{"min_padding", kIds};
  static constexpr Input<std::int64_t> min_length{"min_length", kIds};
  static constexpr Output<Value> out{"CLIP", 0, "", "CLIP"};
  static constexpr auto ports = heddle::ports(clip, min_padding, min_length, out);
  static void execute(Context& ctx);
};

struct CLIPSetLastLayer {
  static constexpr Widget kLayer{
      .number = -1, .min = -24, .max = -1, .step = 1, .extra = R"({"advanced": true})"};

  static constexpr Info info{"CLIPSetLastLayer",
                             1,
                             "CLIP Set Last Layer",
                             "model/conditioning",
                             "Which layer of the encoders is read: -1 is the last.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> clip{"clip", HEDDLE_PORT_PASS, "", "CLIP"};
  static constexpr Input<std::int64_t> layer{"stop_at_clip_layer", kLayer};
  static constexpr Output<Value> out{"CLIP", 0, "", "CLIP"};
  static constexpr auto ports = heddle::ports(clip, layer, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::encoders
