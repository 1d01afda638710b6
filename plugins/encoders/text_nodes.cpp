#include "text_nodes.h"

#include <heddle/model.hpp>

#include "encode.h"
#include "plugins/blocks/clip_stop.h"

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
  ctx[out] = blocks::stopped_clip(ctx, ctx[clip], ctx[layer]);
}

void T5TokenizerOptions::execute(Context& ctx) {
  const Value value = ctx[clip], list = value.field("encoders");
  std::vector<Value> encoders;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value encoder = list.item(i);
    // byT5 reads letters, and no padding.
    if (encoder.get<std::string>("family", "") != "t5" ||
        encoder.get<std::string>("name", "") == "byt5") {
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
