// TextGenerate and TextGenerateLTX2Prompt: a language model that encodes texts writes one.
// Stateless.
#pragma once

#include <heddle/node.hpp>

#include "plugins/blocks/port_types.h"

namespace heddle::encoders {

struct TextGenerate {
  static constexpr Widget kText{
      .extra = R"({"default": "", "multiline": true, "dynamicPrompts": true})",
      .flags = HEDDLE_PORT_PROMPT};
  static constexpr Widget kSampling{.extra = R"({"display_name": "Sampling Mode", "options": [
      {"key": "on", "inputs": {
        "required": {
          "temperature": ["FLOAT", {"default": 0.7, "min": 0.01, "max": 2.0, "step": 1e-06}],
          "top_k": ["INT", {"default": 64, "min": 0, "max": 1000}],
          "top_p": ["FLOAT", {"default": 0.95, "min": 0.0, "max": 1.0, "step": 0.01}],
          "min_p": ["FLOAT", {"default": 0.05, "min": 0.0, "max": 1.0, "step": 0.01}],
          "repetition_penalty": ["FLOAT", {"default": 1.05, "min": 0.0, "max": 5.0, "step": 0.01}],
          "seed": ["INT", {"default": 0, "min": 0, "max": 18446744073709551615}]},
        "optional": {
          "presence_penalty": ["FLOAT", {"default": 0.0, "min": 0.0, "max": 5.0, "step": 0.01}]}}},
      {"key": "off", "inputs": {"required": {}}}]})"};
  static constexpr const char* kMtp[] = {"auto", "off", "2", "3", "4", "5", nullptr};

  static constexpr Info info{"TextGenerate",
                             2,
                             "Generate Text",
                             "text",
                             "A language model answers a prompt, which may show it pictures. What "
                             "it thinks before is a text of its own.",
                             HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Value> clip{"clip", 0, "A language model, by CLIPLoader.", "CLIP"};
  static constexpr Input<std::string> prompt{"prompt", kText};
  static constexpr Input<std::int64_t> max_length{
      "max_length", Widget{.number = 512, .min = 1, .max = 32768},
      "Tokens that it may write, with those that it thinks."};
  static constexpr Input<blocks::Variant> sampling_mode{"sampling_mode", kSampling,
                                                        "off: always the likeliest token."};
  static constexpr Input<Tensor> image{"image", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_HOST,
                                       "Pictures that it sees before the prompt: (B, H, W, C)",
                                       "IMAGE"};
  static constexpr Input<Tensor> video{"video", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_HOST,
                                       "24 pictures a second, of which it sees one a second, "
                                       "behind those of image; Gemma 4 in their place, and "
                                       "Gemma 3 not at all.",
                                       "IMAGE"};
  static constexpr Input<Value> audio{"audio", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_HOST,
                                      "No model here hears it: it is left out.", "AUDIO"};
  static constexpr Input<bool> thinking{"thinking", Widget{.flags = HEDDLE_PORT_OPTIONAL},
                                        "Whether it thinks first, where it can."};
  static constexpr Input<bool> use_default_template{
      "use_default_template",
      Widget{.number = 1, .extra = R"({"advanced": true})", .flags = HEDDLE_PORT_OPTIONAL},
      "off: the prompt stands alone, without the turns of a talk."};
  static constexpr Input<blocks::Choice> mtp{
      "mtp",
      Widget{.text = "auto",
             .choices = kMtp,
             .extra = R"({"advanced": true})",
             .flags = HEDDLE_PORT_OPTIONAL},
      "Tokens guessed at once, by models that can: none here. The text is the same."};
  static constexpr Input<std::string> system_prompt{
      "system_prompt",
      Widget{.extra = R"({"default": "", "forceInput": true})", .flags = HEDDLE_PORT_OPTIONAL},
      "What it is to do with prompts."};
  static constexpr Output<std::string> generated_text{"generated_text"};
  static constexpr Output<std::string> thought{"thinking"};
  static constexpr auto ports =
      heddle::ports(clip, prompt, max_length, sampling_mode, image, video, audio, thinking,
                    use_default_template, mtp, system_prompt, generated_text, thought);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

// The same ports, with a system prompt of its own (ltx2_prompts.h).
struct TextGenerateLTX2Prompt {
  using T = TextGenerate;
  static constexpr Info info{
      "TextGenerateLTX2Prompt",
      2,
      "Generate LTX2 Prompt",
      "text",
      "Gemma 3 or 4 makes a prompt into one as LTX 2 was trained with, for what "
      "a picture shows where there is one. What it thinks is left out; "
      "where it writes nothing, the prompt stays as it is.",
      HEDDLE_NODE_ANY_INPUT};
  static constexpr Output<std::string> generated_text{"generated_text"};
  static constexpr auto ports =
      heddle::ports(T::clip, T::prompt, T::max_length, T::sampling_mode, T::image, T::video,
                    T::audio, T::thinking, T::use_default_template, generated_text);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::encoders
