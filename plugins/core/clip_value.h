// Makes CLIP values (heddle/diffusion/values.h): which encoder a file holds, where its tokenizer
// is, and how long its texts are. One call's thread.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include <heddle/model.hpp>

namespace heddle::loaders {

// An encoder out of a single file. Its tokenizer is looked for in <folder of the file>/<name>/, in
// <models>/tokenizers/<name>/, <name> being "clip_l", "t5xxl", "qwen2.5"
// or another, in the file itself, in `beside`, which may be nullptr, and among
// those that ship with heddle; that there is none is said when a text is encoded.
Value single_file_encoder(Context& ctx, const Checkpoint& file, const Checkpoint* beside = nullptr);

// An encoder of a diffusers folder: `part` is "text_encoder" or "text_encoder_2", its tokenizer
// lies in `tokenizer`.
struct FolderPart {
  std::filesystem::path folder;
  std::string part;
  std::string tokenizer;
};
Value folder_encoder(Context& ctx, const FolderPart& where);

// The CLIP value of type "flux" (a CLIP-L and a T5, in any order), "stable_diffusion" (a CLIP-L
// or OpenCLIP's H), "sdxl" (a CLIP-L and a CLIP-G, or the latter alone) or
// "sd3" (any of CLIP-L, CLIP-G and T5), "chroma" or "ltxv" (a T5) or "wan" (a UMT5).
// `where` is for messages: the node's own words for what it loaded.
Value clip_value(const std::string& type, const std::vector<Value>& encoders,
                 const std::string& where);
// The type that these encoders make up; throws naming those that are known.
std::string clip_type(const std::vector<Value>& encoders, const std::string& where);
// The CLIP value of a language model alone, for the type that a loader is asked for
// (language_texts.h).
bool is_language_encoder(const Value& encoder);
Value language_clip(Context& ctx, const Value& encoder, const std::string& type,
                    const std::string& where);
// HunyuanVideo's, of type "hunyuan_video_15" (Qwen2.5-VL, and byT5 for what is written in a video)
// or "hunyuan_video" (Llama 3, and CLIP-L), in either order. Throws naming both where one is
// another.
Value hunyuan_clip(Context& ctx, const std::string& type, const std::array<Value, 2>& encoders,
                   const std::string& where);
// Whether the file has the projection of a language model's layers that LTX 2 reads.
bool has_text_projection(const Checkpoint& file);
// LTX 2's: Gemma 3 or 4 with its vocabulary, and the projection of its layers, out of these two
// files in either order, which may be one. Throws where one is missing, or reads another number of
// layers or another width.
Value projected_clip(Context& ctx, const Checkpoint& one, const Checkpoint& other);
// SAM 3's, of type "sam3": a CLIP of its own, which reads windows as long as it has places, and
// weights of a prompt's parts as text. As in ComfyUI its activation is quick-GELU, where the
// published model has GELU.
Value detection_clip(Context& ctx, const Checkpoint& file);
// An encoder's record with its models changed: the one that encodes and, where it has one, the one
// that writes texts.
template <class Change>
Value with_models(const Value& encoder, Change&& change) {
  Record changed(encoder);
  for (const char* field : {"model", "writer"})
    if (encoder.has(field)) changed.set(field, change(encoder.field(field)));
  return changed.value();
}
// A CLIP value that says `reason` when a text is to be encoded.
Value no_clip(const std::string& reason);

}  // namespace heddle::loaders
