// What is known of a prompt before any model runs: which encoders of a CLIP value
// (heddle/diffusion/values.h) read it, and the windows of tokens that each of them is given. No
// tensors; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <heddle/diffusion/tokenizer.h>
#include <heddle/model.hpp>

#include "embeddings.h"
#include "plugins/blocks/resample.h"
#include "shown_states.h"
#include "windows.h"

namespace heddle::encoders {

// A picture that a prompt shows: before a run its size alone is known.
struct PromptPicture {
  blocks::GridSize size;
  Tensor pixels = {};        // (B, H, W, 3) f32 in host memory, 0 to 1; the first is shown
  std::int64_t frames = 1;   // 2: the first two are, frames of a video that are seen as one
  bool is_of_video = false;  // of which some models see less, in places of another mark
};

// One text for all encoders, or one for each by its name ("clip_l", "clip_g", "t5xxl").
struct Prompt {
  std::string text;
  std::map<std::string, std::string> by_encoder;
  std::vector<PromptPicture> pictures = {};
  ShownStates shown = {};  // by the language model, in `text_template`
  // Before the text, each read by itself: no token is of two of them.
  std::vector<std::string> labels = {};
  std::string text_template = {};  // empty: the encoder's own, for texts or for pictures
  // What the encoder makes of the pictures themselves is left out of the result, which tells where
  // they stood (image_slots): the diffusion model is shown them in these places.
  bool drops_pictures = false;
  // The result tells where they stand (image_spans), with the tokens around each of them.
  bool tells_pictures = false;
  // Empty texts are not filled up to a window's length, where encoders' outputs are joined.
  bool leaves_out_empty = false;
  // Encoders that `by_encoder` does not name read `text`.
  bool others_read_text = false;

  // Throws where there are texts by encoder, none for this one, and none for others.
  const std::string& of(const std::string& encoder) const;
};

// One entry of a CLIP value's `encoders`.
class TextEncoder {
 public:
  explicit TextEncoder(const Value& record);

  const std::string& name() const { return name_; }
  Value model() const { return record_.field("model"); }
  // What its vision tower is. Throws when it has none, saying which file would do.
  Value vision() const;
  // What makes a conditioning of the states of all its layers, or nothing, where these are one.
  // Throws when it needs one and has none.
  Value projection() const;
  // Tokenises, within the encoder's template where it has one, and makes room for the pictures of
  // the prompt that the text has places for. No rows where the encoder reads quoted texts alone
  // and the prompt has none. Throws when the encoder has no tokenizer, or one that
  // cannot be read, when it is to see a picture and cannot, and HEDDLE_CANCELLED when the call is
  // cancelled meanwhile. `ctx` may be nullptr: nobody cancels.
  Windows windows(const Prompt& prompt, const Context* ctx) const;
  // An empty prompt's only window.
  Window empty_window() const;
  // The ids of a text by itself, and the text of ids.
  std::vector<std::int32_t> ids_of(const std::string& text) const;
  std::string text_of(const std::vector<std::int32_t>& ids) const;
  // Where each window's first end token is: the state there is the pooled one.
  std::vector<std::int32_t> ends(const std::vector<const Window*>& windows) const;

 private:
  std::shared_ptr<PromptEmbeddings> embeddings() const;
  std::string in_template(const std::string& prompt, const Prompt& given) const;
  void place_labels(const Prompt& prompt, const std::string& text, Window& row) const;
  void place_pictures(const Prompt& prompt, Windows& windows) const;
  std::int64_t dropped(const std::vector<std::int32_t>& ids) const;
  heddle_token_windows rules(std::int64_t least_length) const;
  std::vector<Window> pack(const std::string& prompt, const heddle_token_windows& wanted) const;
  std::pair<const heddle_tokenizer*, void*> tokenizer() const;

  Value record_;
  std::string name_;
  bool is_clip_;
};

// How what the encoders make is put together (joined_texts.h).
enum class Joining { kNone, kSd3, kSdxl };

// An encoder that a CLIP value's type wants, and what of the conditioning it gives.
struct EncoderUse {
  TextEncoder encoder;
  bool cross_attn = false, pooled_output = false;
  std::int64_t stop_at_layer = -1;
  Joining joining = Joining::kNone;      // with what the others make
  const char* states_as = "cross_attn";  // the field of the entry with its states

  bool is_joined() const { return joining != Joining::kNone; }
};
// In the order in which they are called. Throws when the CLIP value cannot encode, saying what is
// missing.
std::vector<EncoderUse> encoders_of(const Value& clip);

}  // namespace heddle::encoders
