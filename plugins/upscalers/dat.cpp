#include "dat.h"

#include <cmath>
#include <vector>

#include "dat_blocks.h"
#include "frame.h"
#include "plugins/blocks/slots.h"
#include "windows.h"

namespace heddle::upscalers {
namespace {

constexpr std::int64_t kMostDistances = 1 << 20;  // in windows of 512 x 512

std::string dat_group(int i) { return "layers." + std::to_string(i); }
std::string dat_block(int i, int j) { return dat_group(i) + ".blocks." + std::to_string(j); }

// Of a window of height x width: the least distances stand first in this table, the largest last.
WindowSize window_of(const Checkpoint& file) {
  const std::string name = dat_block(0, 0) + ".attn.attns.0.rpe_biases";
  const std::int64_t rows = file.size(name, 0);
  if (rows < 1 || rows > kMostDistances || file.size(name, 1) != 2 || file.info(name).rank != 2)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": '" + name + "' does not hold two numbers for each of 1 to " +
                    std::to_string(kMostDistances) + " distances. The file is damaged.");
  std::vector<double> numbers(std::size_t(2 * rows));
  check(service<heddle_checkpoint_service>().numbers(
      file.raw(), name.c_str(), std::uint32_t(numbers.size()), numbers.data()));
  // No side is longer than the table; what is no number is as none.
  const auto side = [&](double last) {
    return last >= 0 && last <= double(rows) ? std::llround(last) + 1 : 0;
  };
  const WindowSize window{side(numbers.at(numbers.size() - 2)), side(numbers.back())};
  if (window.height < 2 || window.width < 2 ||
      rows != (2 * window.height - 1) * (2 * window.width - 1))
    throw Error(HEDDLE_UNSUPPORTED, file.path() + ": '" + name + "' has " + std::to_string(rows) +
                                        " rows, which are not the distances in windows of " +
                                        std::to_string(window.height) + " x " +
                                        std::to_string(window.width));
  return window;
}

class DatBuilder {
 public:
  DatBuilder(const Checkpoint& file, Blocks& graph)
      : file_(file),
        graph_(graph),
        frame_(file, graph),
        width_(file.size("norm.weight", 0)),
        window_(window_of(file)) {}

  void build() {
    const FrameStyle style{.norm = "before_RG.1"};
    const FrameStart start = frame_.begin(style);
    add_places();
    Source hidden = start.tokens;
    const int layers = blocks::layer_count(file_, "layers.");
    for (int i = 0; i < layers; ++i) {
      const Source base = hidden;
      const int depth = blocks::layer_count(file_, dat_group(i) + ".blocks.");
      for (int j = 0; j < depth; ++j) hidden = add_layer(i, j, hidden);
      hidden = frame_.join(dat_group(i) + ".join", dat_group(i) + ".conv", "", hidden, base);
    }
    hidden = frame_.join("join", "conv_after_body", "norm", hidden, start.hidden);
    frame_.end("dat", style, start, hidden);
  }

 private:
  // Of upright windows and of lying ones.
  WindowSize turned(int which) const {
    return which == 0 ? window_ : WindowSize{window_.width, window_.height};
  }
  void add_places() {
    for (const int which : {0, 1}) {
      const WindowSize window = turned(which);
      const std::int64_t columns = 2 * window.width - 1;
      using P = RelativePlaces;
      Block places = graph_.add<P>(which == 0 ? "upright_places" : "lying_places");
      places.set(P::query_height, window.height).set(P::query_width, window.width);
      places.set(P::key_height, window.height).set(P::key_width, window.width);
      places.set(P::columns, columns);
      places.set(P::start, (window.height - 1) * columns + window.width - 1);
      ids_[which] = places[P::ids];
      using M = ShiftMasks;
      Block masks = graph_.add<M>(which == 0 ? "upright_masks" : "lying_masks");
      masks.set(M::height, window.height).set(M::width, window.width);
      masks.set(M::down, window.height / 2).set(M::right, window.width / 2);
      masks_[which] = masks[M::masks];
    }
  }

  Source add_layer(int i, int j, const Source& hidden) {
    const std::string module = dat_block(i, j), path = dat_group(i) + "." + std::to_string(j);
    using I = DatIn;
    Block in = graph_.add<I>(path + ".in");
    in.link(I::hidden, hidden);
    blocks::Slots slots(file_, in, path);
    norm(slots, I::norm, I::norm_bias, module + ".norm1", width_);
    slots.fill(I::qkv, module + ".attn.qkv.weight", {3 * width_, width_});
    if (file_.has(module + ".attn.qkv.bias"))
      slots.fill(I::qkv_bias, module + ".attn.qkv.bias", {3 * width_});
    const std::string own = module + ".attn.dwconv.";
    slots.fill(I::filter, own + "0.weight", {width_, 1, 3, 3});
    slots.fill(I::filter_bias, own + "0.bias", {width_});
    running(slots, {I::mean, I::variance, I::gain, I::shift}, own + "1", width_);
    const bool by_channel = file_.has(module + ".attn.temperature");
    const Source attended = by_channel ? add_channels(path, module, in[I::projected])
                                       : add_windows(i, j, in[I::projected]);
    return add_out(path, module, hidden, attended, in[I::side], by_channel);
  }

  Source add_channels(const std::string& path, const std::string& module, const Source& qkv) {
    using C = DatChannels;
    const std::string name = module + ".attn.temperature";
    const std::int64_t heads = file_.size(name, 0);
    check_heads(name, heads, width_);
    Block block = graph_.add<C>(path + ".channels");
    block.link(C::qkv, qkv);
    blocks::Slots(file_, block, path).fill(C::temperature, name, {heads, 1, 1});
    return block[C::out];
  }

  Source add_windows(int i, int j, const Source& qkv) {
    const std::string module = dat_block(i, j), path = dat_group(i) + "." + std::to_string(j);
    const std::string name = module + ".attn.attns.0.pos.pos3.2.weight";
    const std::int64_t heads = file_.size(name, 0);
    check_heads(name, heads, width_ / 2);
    using W = DatWindows;
    Block block = graph_.add<W>(path + ".windows");
    block.link(W::qkv, qkv).set(W::heads, heads);
    block.set(W::height, window_.height).set(W::width, window_.width);
    block.link(W::upright, add_bias(path + ".upright", module + ".attn.attns.0.pos.", 0, heads));
    block.link(W::lying, add_bias(path + ".lying", module + ".attn.attns.1.pos.", 1, heads));
    // Of two layers that attend within windows one is shifted; which, takes turns, too.
    if (j % 4 == (i % 2 == 0 ? 2 : 0))
      block.link(W::upright_masks, masks_[0]).link(W::lying_masks, masks_[1]);
    return block[W::out];
  }

  Source add_bias(const std::string& path, const std::string& module, int which,
                  std::int64_t heads) {
    using B = DatBias;
    const WindowSize window = turned(which);
    const std::int64_t width = file_.size(module + "pos_proj.weight", 0);
    Block block = graph_.add<B>(path);
    block.link(B::ids, ids_[which]).set(B::height, window.height).set(B::width, window.width);
    blocks::Slots slots(file_, block, path);
    matrix(slots, B::in, B::in_bias, module + "pos_proj", width, 2);
    norm(slots, B::norm1, B::norm1_bias, module + "pos1.0", width);
    matrix(slots, B::fc1, B::fc1_bias, module + "pos1.2", width, width);
    norm(slots, B::norm2, B::norm2_bias, module + "pos2.0", width);
    matrix(slots, B::fc2, B::fc2_bias, module + "pos2.2", width, width);
    norm(slots, B::norm3, B::norm3_bias, module + "pos3.0", width);
    matrix(slots, B::fc3, B::fc3_bias, module + "pos3.2", heads, width);
    return block[B::bias];
  }

  Source add_out(const std::string& path, const std::string& module, const Source& hidden,
                 const Source& attended, const Source& side, bool by_channel) {
    using O = DatOut;
    Block block = graph_.add<O>(path + ".out");
    block.link(O::hidden, hidden).link(O::attended, attended).link(O::side, side);
    block.set(O::by_channel, by_channel);
    blocks::Slots slots(file_, block, path);
    const std::string channel = module + ".attn.channel_interaction.",
                      place = module + ".attn.spatial_interaction.";
    const std::int64_t few = file_.size(channel + "1.weight", 0),
                       fewer = file_.size(place + "0.weight", 0),
                       wide = file_.size(module + ".ffn.fc1.weight", 0);
    point(slots, O::channel_in, O::channel_in_bias, channel + "1", few, width_);
    running(slots, {O::channel_mean, O::channel_variance, O::channel_gain, O::channel_shift},
            channel + "2", few);
    point(slots, O::channel_out, O::channel_out_bias, channel + "4", width_, few);
    point(slots, O::place_in, O::place_in_bias, place + "0", fewer, width_);
    running(slots, {O::place_mean, O::place_variance, O::place_gain, O::place_shift}, place + "1",
            fewer);
    point(slots, O::place_out, O::place_out_bias, place + "3", 1, fewer);
    matrix(slots, O::proj, O::proj_bias, module + ".attn.proj", width_, width_);
    norm(slots, O::norm, O::norm_bias, module + ".norm2", width_);
    matrix(slots, O::fc1, O::fc1_bias, module + ".ffn.fc1", wide, width_);
    norm(slots, O::gate_norm, O::gate_norm_bias, module + ".ffn.sg.norm", wide / 2);
    slots.fill(O::gate, module + ".ffn.sg.conv.weight", {wide / 2, 1, 3, 3});
    slots.fill(O::gate_bias, module + ".ffn.sg.conv.bias", {wide / 2});
    matrix(slots, O::fc2, O::fc2_bias, module + ".ffn.fc2", width_, wide / 2);
    return block[O::out];
  }

  void check_heads(const std::string& name, std::int64_t heads, std::int64_t channels) const {
    if (heads == 0 || channels % heads != 0)
      throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": '" + name + "' is of " +
                                          std::to_string(heads) + " heads, for " +
                                          std::to_string(channels) + " channels");
  }
  static void norm(blocks::Slots& slots, const Weight& weight, const Weight& bias,
                   const std::string& module, std::int64_t width) {
    slots.fill(weight, module + ".weight", {width});
    slots.fill(bias, module + ".bias", {width});
  }
  static void matrix(blocks::Slots& slots, const Weight& weight, const Weight& bias,
                     const std::string& module, std::int64_t out, std::int64_t in) {
    slots.fill(weight, module + ".weight", {out, in});
    slots.fill(bias, module + ".bias", {out});
  }
  static void point(blocks::Slots& slots, const Weight& weight, const Weight& bias,
                    const std::string& module, std::int64_t out, std::int64_t in) {
    slots.fill(weight, module + ".weight", {out, in, 1, 1});
    slots.fill(bias, module + ".bias", {out});
  }
  struct Running {
    const Weight &mean, &variance, &gain, &shift;
  };
  static void running(blocks::Slots& slots, const Running& of, const std::string& module,
                      std::int64_t width) {
    slots.fill(of.mean, module + ".running_mean", {width});
    slots.fill(of.variance, module + ".running_var", {width});
    slots.fill(of.gain, module + ".weight", {width});
    slots.fill(of.shift, module + ".bias", {width});
  }

  const Checkpoint& file_;
  Blocks& graph_;
  Frame frame_;
  std::int64_t width_;
  WindowSize window_;
  Source ids_[2], masks_[2];
};

}  // namespace

int Dat::match(const Checkpoint& file, const Value&) {
  const std::string block = dat_block(0, 0);
  return file.has("conv_first.weight") && file.has("before_RG.1.weight") &&
                 file.has(block + ".ffn.sg.conv.weight") &&
                 file.has(block + ".attn.attns.0.rpe_biases") &&
                 file.has(block + ".attn.channel_interaction.4.weight")
             ? 100
             : 0;
}

void Dat::build(const Checkpoint& file, const Value&, Blocks& graph) {
  DatBuilder(file, graph).build();
}

}  // namespace heddle::upscalers
