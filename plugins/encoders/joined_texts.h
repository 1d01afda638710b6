// plugins/encoders/joined_texts.h - what the encoders of a CLIP value of type "sd3" make of a
// prompt, in one conditioning, as ComfyUI joins it: the states of CLIP-L beside those of CLIP-G,
// completed by zeros to the width of T5's, which stand behind them; and the pooled vectors of both
// side by side. What an encoder that is not there would have made is zeros of its published width.
// Of type "sdxl" the
// states of CLIP-L, where it is there, beside those of CLIP-G, and CLIP-G's pooled vector. Of other
// types each encoder's windows stand for themselves. One call's thread.
#pragma once

#include <vector>

#include "prompt_tokens.h"

namespace heddle::encoders {

// An encoder, and what it is given.
struct Asked {
  EncoderUse use;
  Windows windows;
};
// In the order of `uses`. CLIP-L and CLIP-G get as many windows, the one with fewer those of empty
// prompts. Where the prompt leaves out empty texts, an encoder with nothing to read is left out.
// Throws as TextEncoder::windows(). `ctx` may be nullptr: nobody cancels.
std::vector<Asked> ask(const std::vector<EncoderUse>& uses, const Prompt& prompt,
                       const Context* ctx);

// Whether ids of these windows stand for vectors of embeddings.
bool has_vectors(const Windows& windows);

// Whether the encoders' outputs are joined.
bool are_joined(const std::vector<EncoderUse>& uses);

// What one of them made, or would make: its shapes, and before a run no tensors.
struct TextPart {
  Shape hidden_shape, pooled_shape;  // (1, tokens, width), (1, width); T5 has no pooled vector
  Tensor hidden = {}, pooled = {};   // f32
};
struct JoinedShapes {
  Shape hidden, pooled;
};

// Collects the parts. Throws where T5's states have not the room for CLIP's, and where SDXL's have
// no CLIP-G.
class JoinedTexts {
 public:
  explicit JoinedTexts(const std::vector<EncoderUse>& uses);
  // part: of the encoder of this name, "clip_l", "clip_g" or "t5xxl".
  void add(const std::string& name, TextPart part);
  JoinedShapes shapes() const;
  // The entry's "cross_attn" and "pooled_output".
  Record join(Context& ctx) const;

 private:
  std::int64_t clip_tokens() const;
  JoinedShapes sdxl_shapes() const;

  bool is_sdxl_;
  std::optional<TextPart> l_, g_, t5_;
};

}  // namespace heddle::encoders
