#include "chat_templates.h"

#include <string_view>

#include <heddle/value.hpp>

namespace heddle::encoders {
namespace {

constexpr std::string_view kBegin = "<think>", kEnd = "</think>";
constexpr const char* kTurnEnd = "<|im_end|>\n";
constexpr const char* kQwenPicture = "<|vision_start|><|image_pad|><|vision_end|>";

// From the chat templates of the published models.
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
    // As Gemma 2.
    {"gemma3",
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
};

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin));
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
  std::string pictures;
  for (std::size_t i = 0; i < prompt.pictures; ++i) pictures += chat.picture;
  if (!prompt.in_template) return pictures + prompt.text;
  const std::string system = prompt.system.empty() ? chat.usual_system : prompt.system;
  std::string text = chat.begin;
  if (!system.empty()) text += chat.system[0] + system + chat.system[1];
  text += chat.user[0] + pictures + prompt.text + chat.user[1] + chat.answer;
  if (chat.thinks == nullptr) return text;
  return text + (prompt.thinks ? chat.thinks : chat.thinks_not);
}

bool begins_thought(const ChatTemplate& chat, const ChatPrompt& prompt) {
  return prompt.in_template && prompt.thinks && chat.thinks != nullptr &&
         std::string_view(chat.thinks).find(kBegin) != std::string_view::npos;
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
