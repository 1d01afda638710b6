#include "generate_nodes.h"

#include <algorithm>
#include <cstddef>
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

// Each of the pictures in an IMAGE of this shape, or each `step`th.
void show(Prompt& prompt, const Shape& shape, const char* port, std::int64_t step) {
  const blocks::GridSize size = picture_size(shape, port);
  for (std::int64_t i = 0; i < shape.front(); i += step) prompt.pictures.push_back({size});
}
void show(Prompt& prompt, const Tensor& images, const char* port, std::int64_t step) {
  std::size_t next = prompt.pictures.size();
  show(prompt, images.shape(), port, step);
  for (std::int64_t i = 0; next < prompt.pictures.size(); i += step)
    prompt.pictures[next++].pixels = images.slice(0, i, i + 1);
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
  Writing writing{encoder, question.given, ctx[T::max_length], {}, ends_of(encoder, chat)};
  if (mode.key() == "on") writing.rules = rules_of(mode);
  return answer_of(written_text(encoder, chat, written_tokens(ctx, writing)),
                   begins_thought(chat, question.words));
}

// `of`: the words, by the number of pictures.
template <class Words>
Question shown(Context& ctx, Words&& of) {
  using T = TextGenerate;
  Question question;
  if (ctx.has(T::image)) show(question.given, ctx[T::image], "image", 1);
  if (ctx.has(T::video)) show(question.given, ctx[T::video], "video", kFramesASecond);
  question.words = of(question.given.pictures.size());
  question.words.thinks = ctx.has(T::thinking) && ctx[T::thinking];
  return question;
}

// The same by shapes; says nothing where the run will throw.
template <class Words>
void infer_answer(Infer& question, Words&& of) {
  using T = TextGenerate;
  const auto clips = question[T::clip];
  const auto most = question[T::max_length];
  if (!clips || !most) return;
  const auto pixels = question.shape(T::image), frames = question.shape(T::video);
  const auto thinks = question[T::thinking];
  try {
    const TextEncoder encoder(writer_of(*clips));
    Prompt given{.text = "", .by_encoder = {}};
    if (pixels) show(given, *pixels, "image", 1);
    if (frames) show(given, *frames, "video", kFramesASecond);
    std::optional<ChatPrompt> words = of(given.pictures.size());
    if (!words) return;
    words->thinks = thinks.value_or(false);
    given.text = chat_text(chat_template(encoder.name()), *words);
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
  Question question = shown(ctx, [&](std::size_t pictures) {
    return ChatPrompt{ctx[prompt], ctx.has(system_prompt) ? ctx[system_prompt] : "", pictures,
                      false, !ctx.has(use_default_template) || ctx[use_default_template]};
  });
  const ChatAnswer answer = answered(ctx, encoder, question);
  ctx[generated_text] = answer.text;
  ctx[thought] = answer.thinking;
}

void TextGenerate::infer(Infer& question) {
  infer_answer(question, [&](std::size_t pictures) -> std::optional<ChatPrompt> {
    const auto words = question[prompt];
    if (!words) return std::nullopt;
    return ChatPrompt{*words, question[system_prompt].value_or(""), pictures, false,
                      question[use_default_template].value_or(true)};
  });
}

void TextGenerateLTX2Prompt::execute(Context& ctx) {
  const TextEncoder encoder(writer_of(ctx[T::clip]));
  const std::string words = ctx[T::prompt];
  Question question =
      shown(ctx, [&](std::size_t pictures) { return ltx2_chat_prompt(words, pictures); });
  const ChatAnswer answer = answered(ctx, encoder, question);
  ctx[generated_text] = answer.text.empty() ? words : answer.text;
}

void TextGenerateLTX2Prompt::infer(Infer& question) {
  infer_answer(question, [&](std::size_t pictures) -> std::optional<ChatPrompt> {
    const auto words = question[T::prompt];
    if (!words) return std::nullopt;
    return ltx2_chat_prompt(*words, pictures);
  });
}

}  // namespace heddle::encoders
