// plugins/denoisers/control.h - ControlNets: how a denoiser adds what one made (its residuals) to
// its streams, and what the graphs of ControlNets have in common. A ControlNet is a model of its
// own (role "control_net") whose first blocks are those of its denoiser; each of its blocks gives a
// residual for the tokens of the latent:
//
// Outputs  control.double.<k>, control.single.<k>  (B, S, D) f32
//
// A denoiser has optional inputs "control.double" and "control.single" (1|B, S, K D) f32 that
// change at every step: K residuals beside each other. Of n blocks, block i adds residual
// i / ceil(n / K) to the latent's tokens, behind all that it computes. Some have "control.first",
// likewise, of which only the first of ceil(n / K) blocks adds each.
// Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/model.hpp>
#include <heddle/node.hpp>

#include <optional>
#include <string>

#include "dual_stream.h"

namespace heddle::denoisers {

// Role of ControlNets, and what they say in their settings: of which family their denoiser is.
inline constexpr const char* kControlRole = "control_net";

// The prefix of a ControlNet's tensors in the file; nothing when it is none.
std::optional<std::string> control_prefix(const Checkpoint& file);

// The block that adds residuals, among those of its stream. is_first: it adds one only where it is
// the first block that would.
struct ControlPlace {
  std::int64_t index = 0, depth = 1;
  bool is_first = false;
};
// stream (B, l, D), whose first token is token `first` of the latent (before it: negative), with
// its residual added to those that are the latent's. In place.
void add_control(Context& ctx, const Tensor& stream, std::int64_t first, const Tensor& control,
                 const ControlPlace& place);

// img (B, S, D), hint (1|B, S, D) -> their sum.
struct ControlAdd {
  static constexpr Info info{"control.add",    1,  "ControlNet's hint beside the latent",
                             "blocks/control", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> img{"img"};
  static constexpr Input<Tensor> hint{"hint"};
  static constexpr Output<Tensor> out{"img"};
  static constexpr auto ports = heddle::ports(img, hint, out);
  static void execute(Context& ctx);
};

// hint (1|B, C, H, W) -> (1|B, channels, H, W): zeros behind what is there.
struct ControlHintZeros {
  static constexpr Info info{"control.hint_zeros", 1,  "ControlNet's hint and zeros",
                             "blocks/control",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hint{"hint"};
  static constexpr Input<std::int64_t> channels{"channels", Widget{}};
  static constexpr Output<Tensor> out{"hint"};
  static constexpr auto ports = heddle::ports(hint, channels, out);
  static void execute(Context& ctx);
};

// img (B, S, D), hint (1|B, S, D) -> img and what a linear layer makes of the hint.
struct ControlBegin {
  static constexpr Info info{"control.begin",  1,  "ControlNet's layer of its hint",
                             "blocks/control", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> img{"img"};
  static constexpr Input<Tensor> hint{"hint"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"img"};
  static constexpr auto ports = heddle::ports(img, hint, weight, bias, out);
  static void execute(Context& ctx);
};

// hint (1|B, C, H, W) -> (1|B, S, D): 2x2 pixels are a token, by a filter. An odd side is completed
// as FluxImageIn does.
struct ControlHintIn {
  static constexpr Info info{"control.hint_in", 1,  "ControlNet's hint as tokens",
                             "blocks/control",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hint{"hint"};
  static constexpr Weight weight{"weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"img"};
  static constexpr auto ports = heddle::ports(hint, weight, bias, out);
  static void execute(Context& ctx);
};

// hint (1|B, 3, 8 h, 8 w) -> (1|B, C, h, w), or of `pixels_first` (1|B, h, w, C): eight filters of
// 3x3, the third, fifth and seventh over every second pixel, with SiLU between them.
struct ControlHintFilters {
  static constexpr Info info{"control.hint_filters", 1,  "ControlNet's filters of its hint",
                             "blocks/control",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hint{"hint"};
  static constexpr Input<bool> pixels_first{"pixels_first", Widget{}};
  static constexpr Weight weights[] = {
      Weight("0.weight", HEDDLE_USE_CONV2D), Weight("1.weight", HEDDLE_USE_CONV2D),
      Weight("2.weight", HEDDLE_USE_CONV2D), Weight("3.weight", HEDDLE_USE_CONV2D),
      Weight("4.weight", HEDDLE_USE_CONV2D), Weight("5.weight", HEDDLE_USE_CONV2D),
      Weight("6.weight", HEDDLE_USE_CONV2D), Weight("7.weight", HEDDLE_USE_CONV2D)};
  static constexpr Weight biases[] = {Weight("0.bias"), Weight("1.bias"), Weight("2.bias"),
                                      Weight("3.bias"), Weight("4.bias"), Weight("5.bias"),
                                      Weight("6.bias"), Weight("7.bias")};
  static constexpr Output<Tensor> out{"hint"};
  static constexpr auto ports =
      heddle::ports(hint, pixels_first, weights[0], weights[1], weights[2], weights[3], weights[4],
                    weights[5], weights[6], weights[7], biases[0], biases[1], biases[2], biases[3],
                    biases[4], biases[5], biases[6], biases[7], out);
  static void execute(Context& ctx);
};

// txt (B, T, D), mode (n) i32 -> (B, n + T, D): a row of the table for each mode, before the text.
// Without modes the text alone.
struct ControlModes {
  static constexpr Info info{"control.modes",  1,  "ControlNet's kinds of hint",
                             "blocks/control", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> txt{"txt"};
  static constexpr Input<Tensor> mode{"mode", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight table{"table", HEDDLE_USE_TABLE};
  static constexpr Output<Tensor> out{"txt"};
  static constexpr auto ports = heddle::ports(txt, mode, table, out);
  static void execute(Context& ctx);
};

// hidden (B, L, D), of which the last S are the latent's -> (B, S, D) f32.
struct ControlOut {
  static constexpr Info info{"control.out",    1,  "ControlNet's residual",
                             "blocks/control", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE, "the latent, for S"};
  static constexpr Input<std::int64_t> patch{"patch", Widget{.number = 2}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"residual"};
  static constexpr auto ports = heddle::ports(hidden, x, patch, weight, bias, out);
  static void execute(Context& ctx);
};

// Adds to a ControlNet's graph. Used while it is built; one call's thread.
class ControlBuilder {
 public:
  // `prefix`: of the file's tensors. All arguments outlive this object.
  ControlBuilder(const Checkpoint& file, std::string prefix, std::int64_t hidden, Blocks& graph)
      : file_(file), prefix_(std::move(prefix)), hidden_(hidden), graph_(graph) {}

  // The model's input "hint" (1|B, C, H, W), constant.
  Source hint() const {
    return graph_.input("hint", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
  }
  // "embed.filters": what the file's "input_hint_block" makes of a hint of pixels.
  Source filtered(const Source& hint) const;
  // "embed.hint": the tokens of the hint by a linear layer of the file.
  Source hint_tokens(const Source& hint, const std::string& module) const;
  // The same, added to img.
  Source add_hint(const Source& img, const Source& hint, const std::string& module) const;
  // "embed.controlled": img and tokens of the hint.
  Source add_hint_tokens(const Source& img, const Source& hint) const;
  // "embed.modes": where the file has a table of kinds of hints, those of the input "mode" (n)
  // before the text.
  Source add_modes(const Source& txt) const;
  // The stream's residual `index`, an output, by a linear layer of the file, such as
  // "controlnet_blocks.0". `stream`: "double", "single" or "first".
  void add_residual(const std::string& stream, int index, const std::string& module,
                    const Source& hidden, const Source& x) const;
  // What samplers read: `family` of the denoiser, how many residuals there are.
  void add_settings(const char* family, int doubles, int singles) const;

 private:
  const Checkpoint& file_;
  const std::string prefix_;
  const std::int64_t hidden_;
  Blocks& graph_;
};

// What a denoiser says of residuals that it takes: how many blocks of each stream add one.
void add_control_settings(Blocks& graph, std::int64_t hidden, int doubles, int singles);

}  // namespace heddle::denoisers
