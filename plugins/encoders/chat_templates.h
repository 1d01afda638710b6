// plugins/encoders/chat_templates.h - how a language model is talked to: what stands around a
// prompt that it is to answer, and which tokens end its answer. A table, by the encoder's name.
// Pure; any thread.
#pragma once

#include <cstddef>
#include <string>

namespace heddle::encoders {

// Over 15 members: a row of a table, much of it with a default.
struct ChatTemplate {
  const char* encoder;        // "qwen3"
  const char* begin;          // of all
  const char* system[2];      // around a system prompt
  const char* usual_system;   // where none is given; empty: there is no such turn
  const char* user[2];        // around the prompt
  const char* picture;        // a picture, before the prompt
  const char* picture_token;  // the token in it that the picture takes the place of
  const char* answer;         // what the answer begins behind
  const char* thinks;         // follows where the model is to think; nullptr: it knows no thinking
  const char* thinks_not;     // or not to
  const char* ends[3];        // tokens that end the answer
  const char* thinks_in_system = "";  // stands before the system prompt where it is to think
  const char* says = nullptr;         // begins an answer that is to be a text alone
  // Tokens around a channel of the answer, of which one is named "thought", and those around a
  // turn; nullptr: thoughts stand between <think> and </think>, and tokens have no texts.
  const char* const* marks = nullptr;  // channel, its end, turn, its end
  // Pictures stand behind the prompt, each between empty lines, those of a video with their times.
  // A frame, and the token in it.
  bool shows_behind = false;
  const char *frame = "", *frame_token = "";
  // A prompt that begins with it, or that is in no template, is taken as it is, behind `begin`.
  // nullptr: it is one as any other, and pictures stand before one that is in no template.
  const char* turn = nullptr;
  const char* gap = "";  // before what the answer begins behind, unless it is one text alone
  bool text_stands_off = false;  // of which the pictures are, by an empty line, where it is
  // How it is talked to where it sees pictures; nullptr: the same.
  const ChatTemplate* seeing = nullptr;
  bool sees_videos = true;
};

// Throws HEDDLE_UNSUPPORTED for an encoder that there is none for, naming those that are known.
const ChatTemplate& chat_template(const std::string& encoder);

struct ChatPrompt {
  std::string text, system;
  std::size_t pictures = 0;
  bool is_video = false;  // which the pictures are of, one a second
  bool thinks = false;
  // Else the text is taken as it is, with the pictures before it, or in the places that it has.
  bool in_template = true;
  // The answer is to be one text, without channels; pictures stand before the prompt.
  bool text_alone = false;
};
std::string chat_text(const ChatTemplate& chat, const ChatPrompt& prompt);
// Pictures that a text has no places for.
std::size_t unplaced_pictures(const ChatTemplate& chat, const ChatPrompt& prompt,
                              const std::string& text);

// A text in which the marks stand as they are called, with <think> and </think> in the place of
// those around thoughts, and without the others, as ComfyUI shows it.
std::string without_marks(const ChatTemplate& chat, std::string text);

// What a model wrote: what it thought, and the text behind that. Neither begins or ends with white
// space. `begins_thinking`: its prompt ended within a thought (begins_thought()).
struct ChatAnswer {
  std::string text, thinking;
};
bool begins_thought(const ChatTemplate& chat, const ChatPrompt& prompt);
ChatAnswer answer_of(const std::string& written, bool begins_thinking);

}  // namespace heddle::encoders
