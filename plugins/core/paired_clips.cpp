// CLIP values of a language model and what stands beside it.
#include "clip_value.h"
#include "model_roles.h"

namespace heddle::loaders {
namespace {

// The one of two encoders that has this name; nothing where neither has.
Value named(const std::array<Value, 2>& encoders, const char* name) {
  for (const Value& encoder : encoders)
    if (encoder.get<std::string>("name", "") == name) return encoder;
  return {};
}

}  // namespace

Value hunyuan_clip(Context& ctx, const std::string& type, const std::array<Value, 2>& encoders,
                   const std::string& where) {
  const bool is_later = type == "hunyuan_video_15";
  const char *const language_name = is_later ? "qwen2.5" : "llama3", *const other_name =
                                                                         is_later ? "byt5"
                                                                                  : "clip_l";
  const Value language = named(encoders, language_name), other = named(encoders, other_name);
  if (!language || !other)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                where + ": the text encoders " + encoders[0].get<std::string>("name", "") +
                    " and " + encoders[1].get<std::string>("name", "") + " make no CLIP of type '" +
                    type + "', which has " + language_name + " and " + other_name + ", such as " +
                    (is_later ? "qwen_2.5_vl_7b_fp8_scaled.safetensors and "
                                "byt5_small_glyphxl_fp16.safetensors"
                              : "llava_llama3_fp8_scaled.safetensors and clip_l.safetensors") +
                    ". Change the type, or the files.");
  Record beside(other);
  // Padding is masked: nobody sees any.
  if (is_later)
    beside.set("least_length", value_of(std::int64_t{1}))
        .set("masks_padding", value_of(true))
        .set("reads_quoted", value_of(true));
  const Value clip = language_clip(ctx, language, type, where);
  return Record(clip)
      .set("encoders", list_of({clip.field("encoders").item(0), beside.value()}))
      .value();
}

bool has_text_projection(const Checkpoint& file) {
  constexpr std::string_view kBegin = "text_embedding_projection.";
  for (std::uint32_t i = 0; i < file.size(); ++i)
    if (file.name(i).starts_with(kBegin)) return true;
  return false;
}

Value projected_clip(Context& ctx, const Checkpoint& one, const Checkpoint& other) {
  // In either order, as ComfyUI's loader for two files takes them.
  // LTX 2.5's file has both.
  const bool has_it = has_text_projection(one),
             is_whole = has_it && one.has("model.embed_tokens.weight"),
             is_swapped = has_it && !is_whole && !has_text_projection(other);
  const Checkpoint &language = is_swapped ? other : one,
                   &beside = is_whole || is_swapped ? one : other;
  const Value encoder = single_file_encoder(ctx, language, &beside);
  const std::string name = encoder.get<std::string>("name", "");
  if (name != "gemma3" && name != "gemma4")
    throw Error(HEDDLE_INVALID_ARGUMENT,
                language.path() + ": this is the text encoder " + name +
                    ", and LTX 2 reads Gemma 3 12B, such as gemma_3_12B_it.safetensors, LTX 2.5 "
                    "Gemma 4 12B. Name that file.");
  const Value clip = language_clip(ctx, encoder, "ltxv", language.path());
  Record record(clip.field("encoders").item(0));
  const Value settings = model_settings(record.value().field("model"));
  const auto layers = settings.get<std::int64_t>("layers", 0),
             makes = settings.get<std::int64_t>("width", 0);
  const Value projection = build_for(ctx, "text_projection", beside,
                                     Record().set("states", value_of(layers + 1)).value());
  if (const auto reads = model_settings(projection).get<std::int64_t>("reads", 0); reads != makes)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                beside.path() + ": its projection reads " + std::to_string(reads) +
                    " numbers of a token, the text encoder in " + language.path() + " makes " +
                    std::to_string(makes) +
                    ". LTX 2 reads Gemma 3 12B, LTX 2.5 Gemma 4 12B; name that file.");
  record.set("projection", projection);
  return Record(clip).set("encoders", list_of({record.value()})).value();
}

}  // namespace heddle::loaders
