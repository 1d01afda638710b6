#include "unet_adapter.h"

#include <optional>
#include <string>

#include <heddle/ops.hpp>

#include "patches.h"
#include "plugins/blocks/slots.h"
#include "unet_control.h"

namespace heddle::denoisers {
namespace {

constexpr std::int64_t kCell = 8;  // pixels of a latent's cell along each side

// Filters of 1x1 and 3x3 pixels that keep the size, or take every second one.
heddle_conv2d_attrs attrs_of(const Tensor& filter, std::int64_t step) {
  const auto edge = std::int32_t(filter.size(2) / 2), stride = std::int32_t(step);
  return {{stride, stride}, {edge, edge, edge, edge}};
}

// Where the tensors of a file are, and what they make up.
struct AdapterFile {
  enum class Names { diffusers, full, light } names;
  bool is_light = false, is_xl = false;
  std::int64_t factor = kCell, colours = 0;  // pixels of a hint that are one, along each side
  int levels = 0, resnets = 0;

  static std::optional<AdapterFile> find(const Checkpoint& file) {
    AdapterFile found;
    std::string first = "conv_in.weight";
    if (file.has("adapter.body.0.resnets.0.block1.weight")) {
      found.names = Names::diffusers;
      found.is_light = !file.has("adapter.conv_in.weight");
      first = found.is_light ? "adapter.body.0.in_conv.weight" : "adapter.conv_in.weight";
      found.levels = blocks::layer_count(file, "adapter.body.");
      found.resnets = blocks::layer_count(file, "adapter.body.0.resnets.");
    } else if (file.has("body.0.in_conv.weight") && file.has("body.0.body.0.block1.weight")) {
      found.names = Names::light;
      found.is_light = true;
      first = "body.0.in_conv.weight";
      found.levels = blocks::layer_count(file, "body.");
      found.resnets = blocks::layer_count(file, "body.0.body.");
    } else if (file.has("conv_in.weight") && file.has("body.0.block1.weight")) {
      found.names = Names::full;
      found.resnets = 2;
      found.levels = blocks::layer_count(file, "body.") / found.resnets;
    } else {
      return std::nullopt;
    }
    if (!file.has(first)) return std::nullopt;
    // Published ones read one channel or three, of squares of 8 or, for SDXL, 16 pixels.
    const std::int64_t read = file.size(first, 1), cell = kCell * kCell;
    found.is_xl = !found.is_light && (read == 4 * cell || read == 12 * cell);
    if (found.is_xl) found.factor = 2 * kCell;
    found.colours = read / (found.factor * found.factor);
    const bool is_known = found.colours == 1 || found.colours == 3;
    return is_known && read % cell == 0 ? std::optional(found) : std::nullopt;
  }

  std::string level(int index) const {
    if (names == Names::diffusers) return "adapter.body." + std::to_string(index);
    return "body." + std::to_string(names == Names::full ? index * resnets : index);
  }
  std::string resnet(int index, int k) const {
    if (names == Names::diffusers) return level(index) + ".resnets." + std::to_string(k);
    if (names == Names::light) return level(index) + ".body." + std::to_string(k);
    return "body." + std::to_string(index * resnets + k);
  }
  std::string begin() const { return names == Names::diffusers ? "adapter.conv_in" : "conv_in"; }
  bool halves(int index) const { return is_xl ? index == 2 : index > 0; }
  // Stages of the published UNets; empty: the middle.
  std::string place(int index) const {
    constexpr int kLevel = 3;
    if (!is_xl) return "input." + std::to_string(kLevel * (index + 1) - 1);
    constexpr int kXl[] = {3, 5, 8};
    return index < 3 ? "input." + std::to_string(kXl[index]) : "middle";
  }
};

class AdapterBuilder {
 public:
  AdapterBuilder(const Checkpoint& file, const AdapterFile& told, Blocks& graph)
      : file_(file), told_(told), graph_(graph) {}

  void run() {
    using In = UnetAdapterIn;
    Block in = graph_.add<In>("embed.hint");
    in.link(In::hint, graph_.input("hint", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH))
        .set(In::factor, told_.factor);
    hidden_ = in[In::out];
    grid_ = {told_.colours * told_.factor * told_.factor, told_.is_xl ? 1 : 0};
    if (!told_.is_light) add_filter("embed.conv", told_.begin());
    for (int i = 0; i < told_.levels; ++i) add_level(i);
    graph_.setting("controls", std::string("unet"));
    graph_.setting("hint_pixels", true);
    graph_.setting("hint_grey", told_.colours == 1);
    graph_.setting("hint_multiple", told_.factor);
    places_.tell(graph_);
  }

 private:
  void add_level(int index) {
    const std::string path = "level." + std::to_string(index), level = told_.level(index);
    if (told_.halves(index)) {
      if (file_.has(level + ".down_opt.op.weight"))
        add_filter(path + ".smaller", level + ".down_opt.op", 2);
      else
        halve(path + ".smaller");
      ++grid_.halvings;
    }
    if (file_.has(level + ".in_conv.weight")) add_filter(path + ".in", level + ".in_conv");
    for (int k = 0; k < told_.resnets; ++k)
      add_resnet(path + ".resnet." + std::to_string(k), told_.resnet(index, k));
    if (told_.is_light) add_filter(path + ".out", level + ".out_conv");
    Block out = graph_.add<UnetAdapterOut>(path + ".residual");
    out.link(UnetAdapterOut::hidden, hidden_);
    const std::string output = "control." + told_.place(index);
    graph_.output(output.c_str(), out[UnetAdapterOut::out]);
    places_.add(output, grid_);
  }

  void halve(const std::string& path) {
    Block block = graph_.add<UnetAdapterHalve>(path);
    block.link(UnetAdapterHalve::hidden, hidden_);
    hidden_ = block[UnetAdapterHalve::out];
  }

  // Fills a filter, of so many pixels as the file has. Returns its channels.
  std::int64_t fill(blocks::Slots& slots, const Weight& weight, const Weight& bias,
                    const std::string& module) const {
    const std::string name = module + ".weight";
    const std::int64_t made = file_.size(name, 0), pixels = file_.size(name, 2);
    if (pixels != 1 && pixels != 3)
      throw Error(HEDDLE_INVALID_ARGUMENT, file_.path() + ": the filter '" + name + "' is " +
                                               std::to_string(pixels) +
                                               " pixels high, not 1 or 3. The file is damaged.");
    slots.fill(weight, name, {made, grid_.channels, pixels, pixels});
    slots.fill(bias, module + ".bias", {made});
    return made;
  }

  void add_filter(const std::string& path, const std::string& module, std::int64_t step = 1) {
    using B = UnetAdapterFilter;
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden_).set(B::step, step);
    blocks::Slots slots(file_, block, path);
    grid_.channels = fill(slots, B::weight, B::bias, module);
    hidden_ = block[B::out];
  }

  void add_resnet(const std::string& path, const std::string& module) {
    using B = UnetAdapterResnet;
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, path);
    fill(slots, B::first, B::first_bias, module + ".block1");
    fill(slots, B::second, B::second_bias, module + ".block2");
    hidden_ = block[B::out];
  }

  const Checkpoint& file_;
  const AdapterFile& told_;
  Blocks& graph_;
  Source hidden_;
  UnetGrid grid_;
  UnetControlPlaces places_;
};

}  // namespace

void UnetAdapterIn::execute(Context& ctx) {
  const Tensor squares = ops::cast(ctx, as_patches(ctx[hint], ctx[factor]), ctx.compute());
  ctx[out] = squares.reshape({squares.size(0), squares.size(1), squares.size(2),
                              squares.size(3) * squares.size(4) * squares.size(5)});
}

void UnetAdapterFilter::execute(Context& ctx) {
  ctx[out] =
      ops::conv2d(ctx, ctx[hidden], ctx[weight], ctx[bias], attrs_of(ctx[weight], ctx[step]));
}

void UnetAdapterHalve::execute(Context& ctx) {
  Tensor x = ctx[hidden];
  const std::int64_t height = x.size(1), width = x.size(2), top = height % 2, left = width % 2;
  Shape shape = x.shape();
  if (top + left > 0) {
    shape[1] += top;
    shape[2] += left;
    const Tensor larger = ctx.make(shape, x.dtype());
    ops::fill(ctx, larger, 0);
    ops::copy_into(ctx, x, larger.slice(1, top, top + height).slice(2, left, left + width));
    x = larger;
  }
  const Tensor squares = x.reshape({shape[0], shape[1] / 2, 2, shape[2] / 2, 2, shape[3]});
  const auto corner = [&](std::int64_t row, std::int64_t column) {
    return ops::Term{0.25, squares.slice(2, row, row + 1)
                               .slice(4, column, column + 1)
                               .reshape({shape[0], shape[1] / 2, shape[2] / 2, shape[3]})};
  };
  const Tensor means = ctx.make({shape[0], shape[1] / 2, shape[2] / 2, shape[3]}, x.dtype());
  ops::combine_into(ctx, {corner(0, 0), corner(0, 1), corner(1, 0), corner(1, 1)}, means);
  ctx[out] = means;
}

void UnetAdapterResnet::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor made =
      ops::activate(ctx, ops::conv2d(ctx, x, ctx[first], ctx[first_bias], attrs_of(ctx[first], 1)),
                    HEDDLE_ACT_RELU);
  ctx[out] = ops::conv2d(ctx, made, ctx[second], ctx[second_bias], attrs_of(ctx[second], 1), x);
}

void UnetAdapterOut::execute(Context& ctx) { ctx[out] = ops::cast(ctx, ctx[hidden], HEDDLE_F32); }

int UnetAdapter::match(const Checkpoint& file, const Value&) {
  return AdapterFile::find(file) ? 100 : 0;
}

void UnetAdapter::build(const Checkpoint& file, const Value&, Blocks& graph) {
  const std::optional<AdapterFile> told = AdapterFile::find(file);
  if (!told)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": this is no T2I-Adapter of Stable Diffusion or SDXL");
  AdapterBuilder(file, *told, graph).run();
}

}  // namespace heddle::denoisers
