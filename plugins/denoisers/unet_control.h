// plugins/denoisers/unet_control.h - how a UNet adds residuals that a model beside it made, and
// what the graphs of such models have in common. A ControlNet is a copy of the way down and the
// middle that sees a hint, too; behind each stage it gives a residual (Zhang et al. 2023):
//
// control.output.<i>  (1|B, h, w, C) f32, added to what stage i hands to the way up
// control.middle      the same, added to what the middle gives
// control.input.<i>   the same, added to what stage i gives, for all that reads it
//
// These are optional inputs of a UNet that change at every step, and outputs of a ControlNet. Both
// tell in the setting "control_places" which they have, and of which size.
// Blocks are pure and have no instance; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <heddle/model.hpp>
#include <heddle/node.hpp>

namespace heddle::denoisers {

// hidden (B, h, w, C), residual (1|B, h, w, C), optional -> their sum. is_loose: without a residual
// of another size, as in ComfyUI, where a UNet's pictures are shrunk (unet_fit.h) and those of the
// model beside it are not.
struct UnetControlled {
  static constexpr Info info{"unet.controlled", 1,  "UNet with a ControlNet's residual",
                             "blocks/unet",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> residual{"residual", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<bool> is_loose{"is_loose", Widget{}};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, residual, is_loose, out);
  static void execute(Context& ctx);
};

// hidden (B, h, w, C), hint (1|B, h, w, C) -> their sum.
struct UnetHinted {
  static constexpr Info info{"unet.hinted", 1,  "UNet ControlNet's hint beside the latent",
                             "blocks/unet", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> hint{"hint"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, hint, out);
  static void execute(Context& ctx);
};

// hidden (B, h, w, C) -> (B, h, w, C) f32, by a filter of one pixel. `averages`: its mean over all
// pixels, everywhere.
struct UnetResidual {
  static constexpr Info info{"unet.residual", 1,  "UNet ControlNet's residual",
                             "blocks/unet",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<bool> averages{"averages", Widget{}};
  static constexpr Weight weight{"weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"residual"};
  static constexpr auto ports = heddle::ports(hidden, averages, weight, bias, out);
  static void execute(Context& ctx);
};

// The mean of a picture (B, h, w, C) over its pixels, (B, 1, C).
Tensor mean_of_pixels(Context& ctx, const Tensor& picture);

// A picture inside: how often its sides are halved, rounded up, from the latent's.
struct UnetGrid {
  std::int64_t channels = 0, halvings = 0;
};

// The setting "control_places": {input's name: [halvings, channels]}.
class UnetControlPlaces {
 public:
  void add(const std::string& name, const UnetGrid& grid) {
    record_.set(name, list_of({value_of(grid.halvings), value_of(grid.channels)}));
  }
  void tell(Blocks& graph) const { graph.setting("control_places", record_.value()); }

 private:
  Record record_;
};

// Adds to the graph of a ControlNet of a UNet what the UNet has not. Used while it is built; one
// call's thread.
class UnetControlBuilder {
 public:
  // What it adds has these names in the file, under the prefix. All outlive this object.
  UnetControlBuilder(const Checkpoint& file, std::string prefix, bool is_diffusers, Blocks& graph)
      : file_(file), prefix_(std::move(prefix)), is_diffusers_(is_diffusers), graph_(graph) {}

  // Of a ControlNet for several kinds of hints what their inputs add to the timestep's embedding
  // (unet_union.h), `vector` wide; of others nothing.
  std::optional<Source> add_kinds(std::int64_t vector) const;
  // "embed.filters", "embed.hinted": hidden (B, h, w, C) with what the file's filters make of the
  // input "hint" (1|B, 3, 8 h, 8 w).
  Source add_hint(const Source& hidden, const UnetGrid& grid) const;
  // "embed.filters" alone: (1|B, h, w, C).
  Source add_filters(std::int64_t channels_out) const;
  // The outputs "control.output.<index>" and "control.middle".
  void add_residual(int index, const Source& hidden, const UnetGrid& grid);
  void add_middle(const Source& hidden, const UnetGrid& grid);
  void add_settings() const;
  // All residuals are means over their pixels.
  void average() { averages_ = true; }

 private:
  std::string filter(std::size_t index) const;
  void add_output(const std::string& name, const std::string& module, const Source& hidden,
                  const UnetGrid& grid);

  const Checkpoint& file_;
  const std::string prefix_;
  const bool is_diffusers_;
  Blocks& graph_;
  UnetControlPlaces places_;
  bool averages_ = false;
};

}  // namespace heddle::denoisers
