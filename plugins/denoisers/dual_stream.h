// plugins/denoisers/dual_stream.h - the part of a model's graph that FLUX.1, FLUX.2 and Qwen-Image
// share: picture and text are two streams with one attention. Its blocks are those of
// flux_blocks.h, and it asks for weights by the module names of FLUX's original files
// ("img_attn.qkv"), whatever a file calls them (module_table.h). Used while a model is built; one
// call's thread.
#pragma once

#include <heddle/model.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "patches.h"
#include "plugins/blocks/slots.h"

namespace heddle::denoisers {

// The tensors of a module, by kind: "weight" or "bias".
using ModuleParts = std::function<std::vector<Part>(const char* kind)>;

// The modules of a model, or of one of its blocks, by name.
struct FindModule {
  std::function<std::vector<Part>(std::string_view module, const char* kind)> parts;

  ModuleParts operator()(std::string module) const {
    return
        [find = parts, module = std::move(module)](const char* kind) { return find(module, kind); };
  }
};

// What the streams of all models of a family have in common.
struct StreamKind {
  std::size_t axes = 3;                   // of the rotary embedding
  std::int64_t patch = kPatch;            // pixels of the latent along each side of a token
  bool is_biased = true;                  // whether linear layers have biases
  bool is_gated = false;                  // whether MLPs are SiLU(a) * b of (a, b), else GELU's
  const char* time = "time_in.in_layer";  // the module that reads waves of the timestep
};

struct StreamSizes {
  StreamKind kind;
  std::int64_t hidden, heads, head_size;
  std::int64_t in_width,
      out_width;  // numbers of a picture's token, as it is read and as it is made
  std::int64_t context_width, time_width;
  std::vector<std::int64_t> axes;  // of the rotary embedding; together a head's size
  int doubles;                     // blocks of two streams
  bool expose_blocks;              // every block's result is an output, too
};

// What the tensors say, and the config where it speaks of depth and axes. Throws when they do not
// fit each other. prefix: what is before the index of a block in the file ("transformer_blocks.").
StreamSizes read_stream_sizes(const Checkpoint& file, const Value& config, const FindModule& top,
                              const FindModule& first_block, const std::string& prefix,
                              const StreamKind& kind = {});

// What attentions read besides the streams: the rotary tables of the joint sequence, (T + S,
// head_size / 2) each, the model's input "nag" (attention_guidance.h) or a source without a port,
// and its inputs "references" and "reference_timestep", where reference pictures may have a
// timestep of their own; or a video's first frame, that of `first`, the latent. `keeps`: each block
// has an input and an output "kept.<its path>" (kept_references.h). `control_double`,
// `control_single`, `control_first`: the model's inputs of that name (control.h); it has so many
// single blocks.
struct AttentionInputs {
  Source cos, sin, nag;
  std::optional<Source> references = {}, reference_timestep = {};
  bool keeps = false;
  std::optional<Source> control_double = {}, control_single = {}, control_first = {};
  int singles = 0;
  std::optional<Source> first = {};
};

// What modulates a block of two streams.
struct StreamModulation {
  Source img, txt;
};

// Numbers of an MLP that stay together when devices divide it: a vector register's worth.
inline std::int64_t mlp_unit(std::int64_t width) { return width % 16 == 0 ? 16 : 1; }

// Adds blocks to a graph and fills their slots.
class DualStreams {
 public:
  // All arguments outlive this object. top: the modules outside the blocks.
  DualStreams(const Checkpoint& file, const StreamSizes& sizes, Blocks& graph, FindModule top)
      : file_(file), s_(sizes), graph_(graph), top_(std::move(top)) {}

  // A linear layer of a block: matrix (out, in) and bias (out).
  static void linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
                     const ModuleParts& find, std::int64_t out, std::int64_t in);
  // The same, without the bias in families that have none.
  void layer(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
             const ModuleParts& find, std::int64_t out, std::int64_t in) const;
  // A block of this type, or where it keeps reference pictures, the one that does.
  template <class Plain, class Kept>
  Block add_block(const std::string& path, const AttentionInputs& attention) const;
  // The width of an MLP by the tensors of its first layer.
  std::int64_t mlp_width(const ModuleParts& up) const;

  // context (1|B, T, context_width) -> (B, T, hidden): "embed.text". Fewer tokens than `least` are
  // completed by zeros before them.
  Source embed_text(const Source& context, const Source& x, const Source& nag,
                    std::int64_t least = 0) const;
  // The latent x (B, C, H, W) -> (B, S, hidden): "embed.image". Models that read more than they
  // make have an input "concat". `references`: nullptr, or tokens of pictures (1|B, R, in_width).
  Source embed_image(const Source& x, const Source& nag, const Source* references = nullptr) const;
  // vector (N, 1|B, hidden) -> (N, 1|B, 6 x hidden) for each stream, at a path of its own.
  StreamModulation double_modulation(const std::string& path, const Source& vector,
                                     const ModuleParts& img, const ModuleParts& txt) const;
  // "double.<index>.block". img and txt become its results.
  void add_double(int index, const FindModule& find, const StreamModulation& modulation,
                  const AttentionInputs& attention, Source& img, Source& txt) const;
  // "double.<index>": the block and a modulation of its own.
  void add_double(int index, const FindModule& find, const Source& vector,
                  const AttentionInputs& attention, Source& img, Source& txt) const;
  // vector (N, 1|B, hidden) -> (N, 1|B, parts x hidden), at a path of its own.
  Source modulation(const std::string& path, const Source& vector, const ModuleParts& find,
                    int parts) const;
  // "single.<index>.block": hidden (B, T + S, hidden) -> the same. Both streams in one.
  // `references`: where they are not those of `attention`.
  Source add_single(int index, const FindModule& find, const Source& modulation,
                    const AttentionInputs& attention, const Source& hidden, const Source& x,
                    const Source* references = nullptr) const;
  // "final": the S tokens of the latent in hidden, before those of references -> the velocity (B,
  // C, H, W).
  Source add_final(const Source& vector, const Source& hidden, const Source& x,
                   const AttentionInputs& inputs) const;
  // The same with its modulation (N, 1|B, 2 x hidden): "final.block".
  Source add_final_block(const Source& modulation, const Source& hidden, const Source& x,
                         const AttentionInputs& inputs) const;
  // Makes a block's result an output, where the config asks for it.
  void expose(const std::string& name, const Source& from) const {
    if (s_.expose_blocks) graph_.output(name.c_str(), from);
  }

 private:
  const Checkpoint& file_;
  const StreamSizes& s_;
  Blocks& graph_;
  FindModule top_;
};

}  // namespace heddle::denoisers
