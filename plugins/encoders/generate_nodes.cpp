#include "generate_nodes.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>

#include <heddle/diffusion/tokenizer.h>
#include <heddle/model.hpp>

#include "chat_templates.h"
#include "ltx2_prompts.h"
#include "pictures.h"
#include "plugins/blocks/dynamic_inputs.h"
#include "text_writer.h"

namespace heddle::encoders {
namespace {

constexpr std::int64_t kFramesASecond = 24;

// The entry of a CLIP value that writes, with its model for that and nothing of how it encodes.
Value writer_of(const Value& clip) {
  if (clip.has("missing")) throw Error(HEDDLE_NOT_FOUND, clip.get<std::string>("missing", ""));
  const Value encoders = clip.field("encoders");
  for (std::uint32_t i = 0; i < encoders.count(); ++i) {
    const Value encoder = encoders.item(i);
    if (encoder.get<std::string>("family", "") != "language_model") continue;
    const ChatTemplate& chat = chat_template(encoder.get<std::string>("name", ""));
    const Value model = encoder.field("writer");
    if (!model.is(HEDDLE_KIND_MODEL))
      throw Error(HEDDLE_UNSUPPORTED,
                  encoder.get<std::string>("writer_missing",
                                           "this CLIP was loaded without what writes texts. Load "
                                           "it with CLIPLoader."));
    Record writer;
    for (const char* field :
         {"name", "family", "tokenizer", "tokenizer_missing", "vision", "vision_missing"})
      if (encoder.has(field)) writer.set(field, encoder.field(field));
    if (chat.shows_behind) writer.set("frame_token", value_of(std::string(chat.frame_token)));
    return writer.set("model", model)
        .set("picture_token", value_of(std::string(chat.picture_token)))
        .set("weights", value_of(false))
        .value();
  }
  throw Error(
      HEDDLE_UNSUPPORTED,
      "this CLIP has no language model, which alone writes texts. Load one with CLIPLoader, "
      "such as qwen_3_4b.safetensors with type lumina2.");
}

bool is_gemma4(const TextEncoder& encoder) { return encoder.name().starts_with("gemma4"); }

SamplingRules rules_of(const blocks::ChosenVariant& mode) {
  const Value seed = mode.value("seed");
  return {mode.real("temperature"),
          mode.whole("top_k"),
          mode.real("top_p"),
          mode.real("min_p"),
          mode.real("repetition_penalty"),
          mode.real("presence_penalty"),
          seed.is(HEDDLE_KIND_FLOAT) ? std::uint64_t(mode.real("seed")) : seed.as<std::uint64_t>()};
}

// A token that the tokenizer does not know by this name ends nothing.
std::vector<std::int32_t> ends_of(const TextEncoder& encoder, const ChatTemplate& chat) {
  std::vector<std::int32_t> ends;
  for (const char* const name : chat.ends) {
    if (name == nullptr) continue;
    const std::vector<std::int32_t> ids = encoder.ids_of(name);
    if (ids.size() == 1) ends.push_back(ids.front());
  }
  return ends;
}

// The text of what was written, as answer_of() takes it. Marks are tokens that have no text
// elsewhere.
std::string written_text(const TextEncoder& encoder, const ChatTemplate& chat,
                         const std::vector<std::int32_t>& tokens) {
  if (chat.marks == nullptr) return encoder.text_of(tokens);
  std::map<std::int32_t, const char*> marks;
  for (int mark = 0; mark < 4; ++mark)
    if (const auto ids = encoder.ids_of(chat.marks[mark]); ids.size() == 1)
      marks[ids.front()] = chat.marks[mark];
  std::string text;
  for (auto at = tokens.begin(); at != tokens.end();) {
    const auto next = std::find_if(at, tokens.end(), [&](auto id) { return marks.contains(id); });
    text += encoder.text_of({at, next});
    if (next == tokens.end()) break;
    text += marks[*next];
    at = next + 1;
  }
  return without_marks(chat, text);
}

// Which pictures a port shows: each `step`th, at most so many.
struct Showing {
  const char* port;
  std::int64_t step = 1;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  bool is_video = false;
};

// Of an IMAGE of this shape.
void show(Prompt& prompt, const Shape& shape, const Showing& showing) {
  const blocks::GridSize size = picture_size(shape, showing.port);
  const std::int64_t all = (shape.front() + showing.step - 1) / showing.step;
  for (std::int64_t i = 0; i < std::min(all, showing.most); ++i)
    prompt.pictures.push_back({.size = size, .is_of_video = showing.is_video});
}
void show(Prompt& prompt, const Tensor& images, const Showing& showing) {
  std::size_t next = prompt.pictures.size();
  show(prompt, images.shape(), showing);
  for (std::int64_t i = 0; next < prompt.pictures.size(); i += showing.step)
    prompt.pictures[next++].pixels = images.slice(0, i, i + 1);
}

// What of both ports is shown. Gemma 4 sees a video, or pictures where there is none; of a prompt
// that is to be written anew the first picture alone. Gemma 3 sees no video. As in ComfyUI.
struct ShownPorts {
  std::optional<Showing> image, video;
};
ShownPorts shown_ports(const ChatTemplate& chat, bool has_image, bool has_video, bool is_anew) {
  Showing image{"image"}, video{"video", kFramesASecond};
  const bool takes_one = chat.shows_behind;
  video.is_video = takes_one;
  if (takes_one && is_anew) image.most = 1;
  ShownPorts ports;
  if (has_image && !(takes_one && !is_anew && has_video)) ports.image = image;
  if (has_video && chat.sees_videos && !(takes_one && is_anew)) ports.video = video;
  return ports;
}

// What is asked: the pictures, and the words around which the chat template is put.
struct Question {
  Prompt given{.text = "", .by_encoder = {}};
  ChatPrompt words;
};

ChatAnswer answered(Context& ctx, const TextEncoder& encoder, Question& question) {
  using T = TextGenerate;
  const ChatTemplate& chat = chat_template(encoder.name());
  const blocks::ChosenVariant mode(ctx, T::sampling_mode);
  if (ctx.has(T::audio))
    ctx.warn("the language model " + encoder.name() + " hears no audio; it is left out.");
  if (!question.given.pictures.empty()) encoder.vision();  // or says which file has one
  question.given.text = chat_text(chat, question.words);
  if (const std::size_t left = unplaced_pictures(chat, question.words, question.given.text))
    ctx.warn(
        std::to_string(left) + " of " + std::to_string(question.words.pictures) +
        " pictures are left out: the prompt has no places for them. Use the default template.");
  Writing writing{encoder, question.given, ctx[T::max_length], {}, ends_of(encoder, chat)};
  if (mode.key() == "on") writing.rules = rules_of(mode);
  return answer_of(written_text(encoder, chat, written_tokens(ctx, writing)),
                   begins_thought(chat, question.words));
}

// `of`: the words, by the number of pictures. is_anew: they are those of a prompt to write anew.
template <class Words>
Question shown(Context& ctx, const TextEncoder& encoder, bool is_anew, Words&& of) {
  using T = TextGenerate;
  Question question;
  const bool has_image = ctx.has(T::image), has_video = ctx.has(T::video);
  const ChatTemplate& chat = chat_template(encoder.name());
  const auto [image, video] = shown_ports(chat, has_image, has_video, is_anew);
  if (image) show(question.given, ctx[T::image], *image);
  if (video) show(question.given, ctx[T::video], *video);
  if (bool(image) != has_image || bool(video) != has_video)
    ctx.warn(
        std::string(chat.sees_videos
                        ? "Gemma 4 sees pictures or a video, and a video only by TextGenerate: "
                        : "Gemma 3 sees pictures, and no video: ") +
        (has_image && !image ? "image" : "video") + " is left out.");
  question.words = of(question.given.pictures.size());
  question.words.is_video = video && video->is_video;
  question.words.thinks = ctx.has(T::thinking) && ctx[T::thinking];
  return question;
}

// The same by shapes; says nothing where the run will throw.
template <class Words>
void infer_answer(Infer& question, bool is_anew, Words&& of) {
  using T = TextGenerate;
  const auto clips = question[T::clip];
  const auto most = question[T::max_length];
  if (!clips || !most) return;
  const auto pixels = question.shape(T::image), frames = question.shape(T::video);
  const auto thinks = question[T::thinking];
  try {
    const TextEncoder encoder(writer_of(*clips));
    const ChatTemplate& chat = chat_template(encoder.name());
    Prompt given{.text = "", .by_encoder = {}};
    const auto [image, video] = shown_ports(chat, pixels.has_value(), frames.has_value(), is_anew);
    if (image) show(given, *pixels, *image);
    if (video) show(given, *frames, *video);
    std::optional<ChatPrompt> words = of(encoder, given.pictures.size());
    if (!words) return;
    words->is_video = video && video->is_video;
    words->thinks = thinks.value_or(false);
    given.text = chat_text(chat, *words);
    infer_writing(question, {encoder, given, *most, {}});
  } catch (const Failed& failed) {
    services.host->status_free(failed.status);  // as below
  } catch (const Error&) {
    // The run says it, with the node's name.
  }
}

}  // namespace

void TextGenerate::execute(Context& ctx) {
  const TextEncoder encoder(writer_of(ctx[clip]));
  Question question = shown(ctx, encoder, false, [&](std::size_t pictures) {
    return ChatPrompt{.text = ctx[prompt],
                      .system = ctx.has(system_prompt) ? ctx[system_prompt] : "",
                      .pictures = pictures,
                      .in_template = !ctx.has(use_default_template) || ctx[use_default_template]};
  });
  const ChatAnswer answer = answered(ctx, encoder, question);
  ctx[generated_text] = answer.text;
  ctx[thought] = answer.thinking;
}

void TextGenerate::infer(Infer& question) {
  const auto asked = [&](const TextEncoder&, std::size_t pictures) -> std::optional<ChatPrompt> {
    const auto words = question[prompt];
    if (!words) return std::nullopt;
    return ChatPrompt{.text = *words,
                      .system = question[system_prompt].value_or(""),
                      .pictures = pictures,
                      .in_template = question[use_default_template].value_or(true)};
  };
  infer_answer(question, false, asked);
}

void TextGenerateLTX2Prompt::execute(Context& ctx) {
  const TextEncoder encoder(writer_of(ctx[T::clip]));
  const std::string words = ctx[T::prompt];
  Question question = shown(ctx, encoder, true, [&](std::size_t pictures) {
    return ltx2_chat_prompt(words, pictures, is_gemma4(encoder));
  });
  const ChatAnswer answer = answered(ctx, encoder, question);
  ctx[generated_text] = answer.text.empty() ? words : answer.text;
}

void TextGenerateLTX2Prompt::infer(Infer& question) {
  const auto asked = [&](const TextEncoder& encoder,
                         std::size_t pictures) -> std::optional<ChatPrompt> {
    const auto words = question[T::prompt];
    if (!words) return std::nullopt;
    return ltx2_chat_prompt(*words, pictures, is_gemma4(encoder));
  };
  infer_answer(question, true, asked);
}

}  // namespace heddle::encoders
