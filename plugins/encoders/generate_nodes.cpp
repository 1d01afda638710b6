#include "generate_nodes.h"

#include <cstddef>

#include <heddle/diffusion/tokenizer.h>
#include <heddle/model.hpp>

#include "chat_templates.h"
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

}  // namespace

void TextGenerate::execute(Context& ctx) {
  const TextEncoder encoder(writer_of(ctx[clip]));
  const ChatTemplate& chat = chat_template(encoder.name());
  const blocks::ChosenVariant mode(ctx, sampling_mode);
  if (ctx.has(audio))
    ctx.warn("the language model " + encoder.name() + " hears no audio; it is left out.");
  Prompt given{.text = "", .by_encoder = {}};
  if (ctx.has(image)) show(given, ctx[image], "image", 1);
  if (ctx.has(video)) show(given, ctx[video], "video", kFramesASecond);
  if (!given.pictures.empty()) encoder.vision();  // or says which file has one
  const ChatPrompt words{ctx[prompt], ctx.has(system_prompt) ? ctx[system_prompt] : "",
                         given.pictures.size(), ctx.has(thinking) && ctx[thinking],
                         !ctx.has(use_default_template) || ctx[use_default_template]};
  given.text = chat_text(chat, words);
  Writing writing{encoder, given, ctx[max_length], {}, ends_of(encoder, chat)};
  if (mode.key() == "on") writing.rules = rules_of(mode);
  const ChatAnswer answer =
      answer_of(encoder.text_of(written_tokens(ctx, writing)), begins_thought(chat, words));
  ctx[generated_text] = answer.text;
  ctx[thought] = answer.thinking;
}

void TextGenerate::infer(Infer& question) {
  const auto clips = question[clip];
  const auto words = question[prompt];
  const auto most = question[max_length];
  if (!clips || !words || !most) return;
  const auto system = question[system_prompt];
  const auto pixels = question.shape(image), frames = question.shape(video);
  const auto thinks = question[thinking], in_template = question[use_default_template];
  try {
    const TextEncoder encoder(writer_of(*clips));
    Prompt given{.text = "", .by_encoder = {}};
    if (pixels) show(given, *pixels, "image", 1);
    if (frames) show(given, *frames, "video", kFramesASecond);
    given.text = chat_text(chat_template(encoder.name()),
                           {*words, system.value_or(""), given.pictures.size(),
                            thinks.value_or(false), in_template.value_or(true)});
    infer_writing(question, {encoder, given, *most, {}});
  } catch (const Failed& failed) {
    services.host->status_free(failed.status);  // as below
  } catch (const Error&) {
    // The run says it, with the node's name.
  }
}

}  // namespace heddle::encoders
