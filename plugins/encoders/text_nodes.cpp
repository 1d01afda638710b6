#include "text_nodes.h"

#include <algorithm>

#include <heddle/model.hpp>

#include "encode.h"

namespace heddle::encoders {
namespace {

Prompt flux_prompt(const std::string& clip_l, const std::string& t5xxl) {
  return {.text = "", .by_encoder = {{"clip_l", clip_l}, {"t5xxl", t5xxl}}};
}

Prompt sd3_prompt(const std::string& clip_l, const std::string& clip_g, const std::string& t5xxl,
                  const std::string& empty_padding) {
  return {.text = "",
          .by_encoder = {{"clip_l", clip_l}, {"clip_g", clip_g}, {"t5xxl", t5xxl}},
          .leaves_out_empty = empty_padding == "none"};
}

// Source: the publisher's pipeline in diffusers and its examples.
Prompt lumina_prompt(const std::string& system, const std::string& user) {
  constexpr const char* kSuperior =
      "You are an assistant designed to generate superior images with the superior degree of "
      "image-text alignment based on textual prompts or user prompts.";
  constexpr const char* kAlignment =
      "You are an assistant designed to generate high-quality images with the highest degree of "
      "image-text alignment based on textual prompts.";
  return {.text = std::string(system == "alignment" ? kAlignment : kSuperior) + " <Prompt Start> " +
                  user,
          .by_encoder = {}};
}

// A language model's states after so many layers, without the final norm; 0: after all, under it.
Value language_stopped_at(Context& ctx, const Value& encoder, std::int64_t layers) {
  const Value config = encoder.field("config");
  Record changed = config.is(HEDDLE_KIND_RECORD) ? Record(config) : Record();
  changed.set("hidden_layers", layers == 0 ? list_of({}) : list_of({value_of(layers)}));
  return Record(encoder)
      .set("model", rebuilt_model(ctx, encoder.field("model"), changed.value()))
      .value();
}

// As ComfyUI counts them: of OpenCLIP's H as published. Files of diffusers end before its last
// layer, which Stable Diffusion 2.x does not read.
std::int64_t stop_in_file(const Value& encoder, std::int64_t stop) {
  constexpr std::int64_t kLayersOfH = 24;
  const auto layers = model_settings(encoder.field("model")).get<std::int64_t>("layers", 0);
  if (encoder.get<std::string>("name", "") != "clip_h" || layers >= kLayersOfH) return stop;
  return std::min<std::int64_t>(-1, stop + kLayersOfH - layers);
}

// Stable Diffusion 1.x and 2.x read a layer's states under the final norm. What joins several
// encoders takes them without.
Value clip_stopped_at(Context& ctx, const Value& encoder, std::int64_t stop) {
  const Value config = encoder.field("config");
  Record changed = config.is(HEDDLE_KIND_RECORD) ? Record(config) : Record();
  changed.set("normed_layer", value_of(stop_in_file(encoder, stop)));
  return Record(encoder)
      .set("model", rebuilt_model(ctx, encoder.field("model"), changed.value()))
      .value();
}

// A T5 whose last layer is the asked for one, under the norm behind it: what follows is left out.
// Other encoders say themselves which of their outputs is meant.
Value stopped_at(Context& ctx, const Value& encoder, const std::string& type, std::int64_t stop) {
  const auto family = encoder.get<std::string>("family", "");
  if (family == "clip" && type == "stable_diffusion") return clip_stopped_at(ctx, encoder, stop);
  const bool is_language = family == "language_model";
  if (family != "t5" && !is_language) return encoder;
  const Value model = encoder.field("model");
  const std::int64_t layers =
      encoder.get<std::int64_t>("layers", model_settings(model).get<std::int64_t>("layers", 0));
  // As ComfyUI: a number beyond the encoder's layers means the last.
  const std::int64_t wanted = -stop > layers ? layers : layers + 1 + stop;
  if (is_language) return language_stopped_at(ctx, encoder, -stop > layers ? 0 : wanted);
  if (wanted == model_settings(model).get<std::int64_t>("layers", 0)) return encoder;
  const Value config = encoder.field("config");
  Record changed = config.is(HEDDLE_KIND_RECORD) ? Record(config) : Record();
  changed.set("num_layers", value_of(wanted));
  return Record(encoder)
      .set("model", rebuilt_model(ctx, model, changed.value()))
      .set("layers", value_of(layers))
      .value();
}

}  // namespace

void CLIPTextEncode::execute(Context& ctx) {
  ctx[conditioning] = encode_prompt(ctx, ctx[clip], {.text = ctx[text], .by_encoder = {}});
}

std::uint64_t CLIPTextEncode::fingerprint(Context& ctx) {
  return embeddings_fingerprint(ctx, {&text});
}

void CLIPTextEncode::infer(Infer& question) {
  const auto from = question[clip];
  const auto prompt = question[text];
  if (from && prompt)
    infer_prompt(question, *from, {.text = *prompt, .by_encoder = {}}, conditioning);
}

void CLIPTextEncodeFlux::execute(Context& ctx) {
  const Value list = encode_prompt(ctx, ctx[clip], flux_prompt(ctx[clip_l], ctx[t5xxl]));
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    entries.push_back(Record(list.item(i)).set("guidance", value_of(ctx[guidance])).value());
  ctx[conditioning] = list_of(entries);
}

std::uint64_t CLIPTextEncodeFlux::fingerprint(Context& ctx) {
  return embeddings_fingerprint(ctx, {&clip_l, &t5xxl});
}

void CLIPTextEncodeFlux::infer(Infer& question) {
  const auto from = question[clip];
  const auto l = question[clip_l], t5 = question[t5xxl];
  if (from && l && t5) infer_prompt(question, *from, flux_prompt(*l, *t5), conditioning);
}

void CLIPTextEncodeSD3::execute(Context& ctx) {
  ctx[conditioning] = encode_prompt(
      ctx, ctx[clip], sd3_prompt(ctx[clip_l], ctx[clip_g], ctx[t5xxl], ctx[empty_padding]));
}

std::uint64_t CLIPTextEncodeSD3::fingerprint(Context& ctx) {
  return embeddings_fingerprint(ctx, {&clip_l, &clip_g, &t5xxl});
}

void CLIPTextEncodeSD3::infer(Infer& question) {
  const auto from = question[clip];
  const auto l = question[clip_l], g = question[clip_g], t5 = question[t5xxl],
             padding = question[empty_padding];
  if (from && l && g && t5 && padding)
    infer_prompt(question, *from, sd3_prompt(*l, *g, *t5, *padding), conditioning);
}

void CLIPTextEncodeLumina2::execute(Context& ctx) {
  ctx[conditioning] =
      encode_prompt(ctx, ctx[clip], lumina_prompt(ctx[system_prompt], ctx[user_prompt]));
}

void CLIPTextEncodeLumina2::infer(Infer& question) {
  const auto from = question[clip];
  const auto system = question[system_prompt], user = question[user_prompt];
  if (from && system && user)
    infer_prompt(question, *from, lumina_prompt(*system, *user), conditioning);
}

void CLIPSetLastLayer::execute(Context& ctx) {
  const std::int64_t stop = ctx[layer];
  const Value value = ctx[clip], list = value.field("encoders");
  const auto type = value.get<std::string>("type", "");
  std::vector<Value> encoders;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    encoders.push_back(stopped_at(ctx, list.item(i), type, stop));
  ctx[out] =
      Record(value).set("encoders", list_of(encoders)).set("stop_at_layer", value_of(stop)).value();
}

void T5TokenizerOptions::execute(Context& ctx) {
  const Value value = ctx[clip], list = value.field("encoders");
  std::vector<Value> encoders;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value encoder = list.item(i);
    if (encoder.get<std::string>("family", "") != "t5") {
      encoders.push_back(encoder);
      continue;
    }
    encoders.push_back(Record(encoder)
                           .set("least_length", value_of(ctx[min_length]))
                           .set("least_padding", value_of(ctx[min_padding]))
                           .value());
  }
  ctx[out] = Record(value).set("encoders", list_of(encoders)).value();
}

}  // namespace heddle::encoders
