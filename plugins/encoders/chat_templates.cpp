#include "chat_templates.h"

#include <string_view>

#include <heddle/value.hpp>

#include "gemma3_vision_model.h"

namespace heddle::encoders {
namespace {

constexpr std::string_view kBegin = "<think>", kEnd = "</think>";
constexpr const char* kTurnEnd = "<|im_end|>\n";
constexpr const char* kQwenPicture = "<|vision_start|><|image_pad|><|vision_end|>";

constexpr const char* kGemma4Marks[] = {"<|channel>", "<channel|>", "<|turn>", "<turn|>"};

constexpr ChatTemplate gemma4(const char* encoder, const char* thinks_not) {
  return {.encoder = encoder,
          .begin = "<bos>",
          .system = {"<|turn>system\n", "<turn|>\n"},
          .usual_system = "",
          .user = {"<|turn>user\n", "<turn|>\n"},
          .picture = "<|image><|image|><image|>",
          .picture_token = "<|image|>",
          .answer = "<|turn>model\n",
          .thinks = "",
          .thinks_not = thinks_not,
          .ends = {"<turn|>", "<eos>", "<|tool_response>"},
          .thinks_in_system = "<|think|>\n",
          .says = "<|channel>final\n",
          .marks = kGemma4Marks,
          .shows_behind = true,
          .frame = "<|image><|video|><image|>",
          .frame_token = "<|video|>",
          .turn = kGemma4Marks[2],
          .text_stands_off = true};
}

// Of a prompt with pictures, as ComfyUI has it: a turn of the system, which the publisher's
// template does not know, and a picture without the marks <start_of_image> and <end_of_image>.
constexpr ChatTemplate kSeeingGemma3{.encoder = "gemma3",
                                     .begin = "<bos>",
                                     .system = {"<start_of_turn>system\n", "<end_of_turn>\n"},
                                     .usual_system = "You are a helpful assistant.",
                                     .user = {"<start_of_turn>user\n\n", "<end_of_turn>\n"},
                                     .picture = kGemma3Picture,
                                     .picture_token = kGemma3Picture,
                                     .answer = "<start_of_turn>model\n",
                                     .thinks = nullptr,
                                     .thinks_not = "",
                                     .ends = {"<end_of_turn>", "<eos>"},
                                     .turn = "<start_of_turn>",
                                     .gap = "\n",
                                     .text_stands_off = true};

// From the chat templates of the published models, but where they say otherwise.
constexpr ChatTemplate kChatTemplates[] = {
    {"qwen2.5",
     "",
     {"<|im_start|>system\n", kTurnEnd},
     "You are a helpful assistant.",
     {"<|im_start|>user\n", kTurnEnd},
     kQwenPicture,
     "<|image_pad|>",
     "<|im_start|>assistant\n",
     nullptr,
     "",
     {"<|im_end|>", "<|endoftext|>"}},
    {"qwen3",
     "",
     {"<|im_start|>system\n", kTurnEnd},
     "",
     {"<|im_start|>user\n", kTurnEnd},
     "",
     "",
     "<|im_start|>assistant\n",
     "",
     "<think>\n\n</think>\n\n",
     {"<|im_end|>", "<|endoftext|>"}},
    {"qwen3vl",
     "",
     {"<|im_start|>system\n", kTurnEnd},
     "",
     {"<|im_start|>user\n", kTurnEnd},
     kQwenPicture,
     "<|image_pad|>",
     "<|im_start|>assistant\n",
     "<think>\n",
     "",
     {"<|im_end|>", "<|endoftext|>"}},
    // As ComfyUI has it: what it thinks it begins itself.
    {"qwen3.5",
     "",
     {"<|im_start|>system\n", kTurnEnd},
     "",
     {"<|im_start|>user\n", kTurnEnd},
     kQwenPicture,
     "<|image_pad|>",
     "<|im_start|>assistant\n",
     "",
     "<think>\n</think>\n",
     {"<|im_end|>", "<|endoftext|>"}},
    // It knows no system prompt: one stands before the user's own words.
    {"gemma2",
     "<bos><start_of_turn>user\n",
     {"", "\n\n"},
     "",
     {"", "<end_of_turn>\n"},
     "",
     "",
     "<start_of_turn>model\n",
     nullptr,
     "",
     {"<end_of_turn>", "<eos>"}},
    // As Gemma 2, where it sees no picture.
    {.encoder = "gemma3",
     .begin = "<bos><start_of_turn>user\n",
     .system = {"", "\n\n"},
     .usual_system = "",
     .user = {"", "<end_of_turn>\n"},
     .picture = "",
     .picture_token = kGemma3Picture,
     .answer = "<start_of_turn>model\n",
     .thinks = nullptr,
     .thinks_not = "",
     .ends = {"<end_of_turn>", "<eos>"},
     .seeing = &kSeeingGemma3,
     .sees_videos = false},
    {"mistral3",
     "<s>",
     {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"},
     "",
     {"[INST]", "[/INST]"},
     "",
     "",
     "",
     nullptr,
     "",
     {"</s>", nullptr}},
    // Of 12B and 31B, which are told that they have thought where they are not to; of E2B and E4B.
    gemma4("gemma4", "<|channel>thought\n<channel|>"),
    gemma4("gemma4_e", ""),
};

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin));
}

bool is_word(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// "01:05", of so many seconds.
std::string clock_time(std::size_t seconds) {
  const auto two = [](std::size_t number) {
    return (number < 10 ? "0" : "") + std::to_string(number);
  };
  return two(seconds / 60) + ":" + two(seconds % 60);
}

// Source: ComfyUI's, and the publisher's processor.
std::string pictures_behind(const ChatTemplate& chat, const ChatPrompt& prompt) {
  if (prompt.pictures == 0) return {};
  std::string shown = "\n\n";
  for (std::size_t i = 0; i < prompt.pictures; ++i)
    if (prompt.is_video)
      shown += (i > 0 ? " " : "") + clock_time(i) + " " + chat.frame;
    else
      shown += std::string(i > 0 ? "\n\n\n\n" : "") + chat.picture;
  return shown + "\n\n";
}

}  // namespace

const ChatTemplate& chat_template(const std::string& encoder) {
  std::string known;
  for (const ChatTemplate& chat : kChatTemplates) {
    if (encoder == chat.encoder) return chat;
    known += (known.empty() ? "" : ", ") + std::string(chat.encoder);
  }
  throw Error(HEDDLE_UNSUPPORTED, "the text encoder " + encoder +
                                      " is no language model that writes texts. Known: " + known +
                                      ". Load one of them with CLIPLoader.");
}

std::string chat_text(const ChatTemplate& chat, const ChatPrompt& prompt) {
  if (chat.seeing != nullptr && prompt.pictures > 0) return chat_text(*chat.seeing, prompt);
  if (chat.turn != nullptr && (!prompt.in_template || prompt.text.starts_with(chat.turn)))
    return (prompt.text.starts_with(chat.begin) ? "" : chat.begin) + prompt.text;
  std::string pictures;
  for (std::size_t i = 0; i < prompt.pictures; ++i) pictures += chat.picture;
  if (!prompt.in_template) return pictures + prompt.text;
  std::string behind;
  if (chat.text_stands_off && prompt.text_alone && prompt.pictures > 0) pictures += "\n\n";
  if (chat.shows_behind && !prompt.text_alone)
    behind = pictures_behind(chat, prompt), pictures = "";
  const std::string system = (prompt.thinks ? chat.thinks_in_system : "") +
                             (prompt.system.empty() ? chat.usual_system : prompt.system);
  std::string text = chat.begin;
  if (!system.empty()) text += chat.system[0] + system + chat.system[1];
  text += chat.user[0] + pictures + prompt.text + behind + chat.user[1];
  text += (prompt.text_alone ? "" : chat.gap) + std::string(chat.answer);
  if (chat.thinks == nullptr) return text;
  if (prompt.text_alone && !prompt.thinks && chat.says != nullptr) return text + chat.says;
  return text + (prompt.thinks ? chat.thinks : chat.thinks_not);
}

std::size_t unplaced_pictures(const ChatTemplate& chat, const ChatPrompt& prompt,
                              const std::string& text) {
  const std::string_view mark = prompt.is_video ? chat.frame_token : chat.picture_token;
  std::size_t left = prompt.pictures;
  for (std::size_t at = 0; left > 0 && (at = text.find(mark, at)) != text.npos; at += mark.size())
    --left;
  return left;
}

bool begins_thought(const ChatTemplate& chat, const ChatPrompt& prompt) {
  return prompt.in_template && prompt.thinks && chat.thinks != nullptr &&
         std::string_view(chat.thinks).find(kBegin) != std::string_view::npos;
}

std::string without_marks(const ChatTemplate& chat, std::string text) {
  if (chat.marks == nullptr) return text;
  const std::string channel = chat.marks[0], end = chat.marks[1],
                    thought = channel + std::string("thought\n");
  for (std::size_t at = 0; (at = text.find(thought, at)) != text.npos;) {
    text.replace(at, thought.size(), kBegin);
    const std::size_t close = text.find(end, at);
    if (close == text.npos) break;
    text.replace(close, end.size(), kEnd);
    at = close;
  }
  // What opens a channel or a turn has its name behind it, and the end of that line.
  for (int mark = 0; mark < 4; ++mark)
    for (std::size_t at = 0; (at = text.find(chat.marks[mark], at)) != text.npos;) {
      std::size_t behind = at + std::string_view(chat.marks[mark]).size();
      if (mark % 2 == 0) {
        while (behind < text.size() && is_word(text[behind])) ++behind;
        if (behind < text.size() && text[behind] == '\n') ++behind;
      }
      text.erase(at, behind - at);
    }
  return text;
}

ChatAnswer answer_of(const std::string& written, bool begins_thinking) {
  const std::size_t end = written.find(kEnd);
  std::string_view thought(written), rest;
  if (end != written.npos) {
    thought = thought.substr(0, end);
    rest = std::string_view(written).substr(end + kEnd.size());
  } else if (!begins_thinking && !trimmed(written).starts_with(kBegin)) {
    return {trimmed(written), {}};
  }
  if (const std::size_t begin = thought.find(kBegin); begin != thought.npos)
    thought = thought.substr(begin + kBegin.size());
  return {trimmed(rest), trimmed(thought)};
}

}  // namespace heddle::encoders
