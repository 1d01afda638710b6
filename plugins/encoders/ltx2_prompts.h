// What a language model is asked that is to make a prompt into one as LTX 2 was trained with. Pure;
// any thread.
#pragma once

#include "chat_templates.h"

namespace heddle::encoders {

// Words of our own: those that ComfyUI and the model's publishers have are theirs.
inline constexpr const char* kLtx2FromText =
    "You turn a short idea into the description of one video clip with sound, from which a model "
    "makes the clip.\n"
    "- Write one paragraph of plain sentences in the present tense, in English, of 100 to 200 "
    "words.\n"
    "- Keep every person, thing, action, place and word of speech that the idea names, and "
    "contradict none of them. Add only what makes them concrete.\n"
    "- Begin with the kind of shot and the style, if the idea names one. Then tell what happens in "
    "the order in which it happens, from the first moment to the last.\n"
    "- Say how people look by what a camera sees: age, hair, clothes, posture, and what faces and "
    "hands do. Name no feelings that nobody could see.\n"
    "- Say where the light comes from and which colours there are, and how the camera moves, if it "
    "does.\n"
    "- Say what is heard: voices, noises of the place, music only if the idea asks for it. Speech "
    "stands in quotation marks, with who says it and how.\n"
    "- Write nothing else: no heading, no list, no remark about the task.";
inline constexpr const char* kLtx2FromPicture =
    "You see the first picture of a video clip, and read what is to happen in it. Describe the "
    "whole clip with its sound, for a model that makes it out of this picture.\n"
    "- Write one paragraph of plain sentences in the present tense, in English, of at most 150 "
    "words.\n"
    "- Begin with what the picture shows, in a sentence or two, and invent nothing that it does "
    "not show. Where the words and the picture differ, the words say what changes.\n"
    "- Then tell what moves, in the order in which it happens: people, things, the camera. Keep "
    "every action and word of speech that is asked for.\n"
    "- Do not describe again what stays as it is.\n"
    "- Say what is heard: voices, noises of the place, music only if it is asked for. Speech "
    "stands in quotation marks, with who says it and how.\n"
    "- Write nothing else: no heading, no list, no remark about the task.";

// With the system prompt for a video out of nothing, or of one that begins with a picture.
// What is said before the user's words is ComfyUI's, for Gemma 4 another without a picture.
inline ChatPrompt ltx2_chat_prompt(const std::string& prompt, std::size_t pictures,
                                   bool is_gemma4) {
  const bool is_plain = is_gemma4 && pictures == 0;
  return {.text = is_plain ? "user prompt: " + prompt : "User Raw Input Prompt: " + prompt + ".",
          .system = pictures > 0 ? kLtx2FromPicture : kLtx2FromText,
          .pictures = pictures,
          .text_alone = true};
}

}  // namespace heddle::encoders
