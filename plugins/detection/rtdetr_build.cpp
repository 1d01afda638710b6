#include "rtdetr_build.h"

#include <algorithm>

#include "attention_blocks.h"

namespace heddle::detection {
namespace {

constexpr int kGrids = 3;
constexpr std::size_t kMostJoined = std::size(RtdetrJoin::kAll);

[[noreturn]] void refuse_rtdetr(const Checkpoint& file, const std::string& what) {
  throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": " + what +
                                           " Take the file that ComfyUI's templates name, "
                                           "rt_detr_v4-x-hgnet_fp16.safetensors.");
}

}  // namespace

void RtdetrBuilder::fill(blocks::Slots& slots, const Weight& weight, const Weight& bias,
                         const std::string& module, const Shape& shape) const {
  slots.fill(weight, named(module) + ".weight", shape);
  slots.fill(bias, named(module) + ".bias", {shape[0]});
}

RtdetrSource RtdetrBuilder::conv(const std::string& module, const RtdetrSource& x,
                                 const Conv& how) const {
  using B = RtdetrConv;
  Block made = graph_.add<B>(module);
  made.link(B::x, x.x).set(B::stride, how.stride).set(B::kind, std::int64_t(how.kind));
  made.set(B::from, how.from);
  if (how.residual.port != nullptr) made.link(B::residual, how.residual);
  const std::string at = named(module), filter = at + ".conv.weight", norm = at + ".bn.";
  const std::int64_t rows = file_.size(filter, 0), side = file_.size(filter, 2);
  blocks::Slots slots(file_, made, module);
  const std::int64_t read = how.depthwise ? 1 : how.read > 0 ? how.read : x.channels;
  slots.fill(how.depthwise ? B::taps : B::filter, filter,
             {how.depthwise ? x.channels : rows, read, side, side});
  if (file_.has(norm + "running_var")) {
    slots.fill(B::norm, norm + "weight", {rows});
    slots.fill(B::norm_bias, norm + "bias", {rows});
    slots.fill(B::mean, norm + "running_mean", {rows});
    slots.fill(B::variance, norm + "running_var", {rows});
  } else {
    slots.fill(B::bias, at + ".conv.bias", {rows});
  }
  return {made[B::out], rows};
}

RtdetrSource RtdetrBuilder::join(const std::string& path, const std::vector<RtdetrSource>& parts,
                                 bool doubles) const {
  using B = RtdetrJoin;
  if (parts.size() > kMostJoined)
    refuse_rtdetr(file_, "'" + named(path) + "' has more than " + std::to_string(kMostJoined - 1) +
                             " layers.");
  Block made = graph_.add<B>(path + ".join");
  made.set(B::doubles, doubles);
  std::int64_t channels = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    made.link(*B::kAll[i], parts[i].x);
    channels += parts[i].channels;
  }
  return {made[B::out], channels};
}

RtdetrSource RtdetrBuilder::stem(const Source& picture) const {
  constexpr auto kRelu = RtdetrConv::relu;
  const std::string at = "backbone.stem.stem";
  const RtdetrSource first = conv(at + "1", {picture, 3}, {.stride = 2, .kind = kRelu}),
                     second =
                         conv(at + "2b", conv(at + "2a", first, {.kind = kRelu}), {.kind = kRelu});
  Block pool = graph_.add<RtdetrPool>("backbone.stem.pool");
  pool.link(RtdetrPool::x, first.x);
  const RtdetrSource both =
      join("backbone.stem", {{pool[RtdetrPool::out], first.channels}, second});
  return conv(at + "4", conv(at + "3", both, {.stride = 2, .kind = kRelu}), {.kind = kRelu});
}

RtdetrSource RtdetrBuilder::block(const std::string& at, const RtdetrSource& x, bool adds) const {
  constexpr auto kRelu = RtdetrConv::relu;
  std::vector<RtdetrSource> all{x};
  for (int i = 0; i < blocks::layer_count(file_, named(at) + "layers."); ++i) {
    const std::string layer = at + "layers." + std::to_string(i);
    if (file_.has(named(layer) + ".conv1.conv.weight"))
      all.push_back(conv(layer + ".conv2", conv(layer + ".conv1", all.back(), {}),
                         {.kind = kRelu, .depthwise = true}));
    else
      all.push_back(conv(layer, all.back(), {.kind = kRelu}));
  }
  const RtdetrSource small = conv(at + "aggregation.0", join(at + "layers", all), {.kind = kRelu});
  return conv(at + "aggregation.1", small, {.kind = kRelu, .residual = adds ? x.x : Source{}});
}

RtdetrSource RtdetrBuilder::stage(const std::string& at, const RtdetrSource& x) const {
  RtdetrSource made = x;
  if (file_.has(named(at) + "downsample.conv.weight"))
    made = conv(at + "downsample", made, {.stride = 2, .depthwise = true});
  for (int i = 0; i < blocks::layer_count(file_, named(at) + "blocks."); ++i)
    made = block(at + "blocks." + std::to_string(i) + ".", made, i > 0);
  return made;
}

std::vector<RtdetrSource> RtdetrBuilder::backbone(const Source& picture) const {
  constexpr int kStages = 4;
  if (const int found = blocks::layer_count(file_, named("backbone.stages.")); found != kStages)
    refuse_rtdetr(file_, "'" + named("backbone.stages") + "' has " + std::to_string(found) +
                             " stages, expected " + std::to_string(kStages) + ".");
  std::vector<RtdetrSource> made;
  RtdetrSource x = stem(picture);
  for (int i = 0; i < kStages; ++i) {
    x = stage("backbone.stages." + std::to_string(i) + ".", x);
    if (i > 0) made.push_back(x);
  }
  return made;
}

RtdetrSource RtdetrBuilder::csp(const std::string& at, const RtdetrSource& x, std::int64_t from,
                                std::int64_t read) const {
  constexpr auto kSilu = RtdetrConv::silu;
  const Conv part{.kind = kSilu, .from = from, .read = read};
  RtdetrSource made = conv(at + "conv1", x, part);
  const RtdetrSource beside = conv(at + "conv2", x, part);
  const int depth = blocks::layer_count(file_, named(at) + "bottlenecks.");
  if (depth < 1) refuse_rtdetr(file_, "'" + named(at) + "bottlenecks' has no layers.");
  for (int i = 0; i < depth; ++i)
    made = conv(at + "bottlenecks." + std::to_string(i), made,
                {.kind = kSilu, .residual = i + 1 < depth ? Source{} : beside.x});
  return file_.has(named(at) + "conv3.conv.weight") ? conv(at + "conv3", made, {.kind = kSilu})
                                                    : made;
}

RtdetrSource RtdetrBuilder::elan(const std::string& at, const RtdetrSource& x) const {
  constexpr auto kSilu = RtdetrConv::silu;
  const RtdetrSource both = conv(at + "cv1", x, {.kind = kSilu});
  const std::int64_t half = both.channels / 2;
  const RtdetrSource second =
      conv(at + "cv2.1", csp(at + "cv2.0.", both, half, half), {.kind = kSilu});
  const RtdetrSource third =
      conv(at + "cv3.1", csp(at + "cv3.0.", second, 0, second.channels), {.kind = kSilu});
  return conv(at + "cv4", join(at + "cv4", {both, second, third}), {.kind = kSilu});
}

void RtdetrBuilder::fill_attention(blocks::Slots& slots, const std::string& at,
                                   std::int64_t width) const {
  using B = Attend;
  const struct {
    const Weight &weight, &bias;
    const char* name;
  } parts[] = {
      {B::q, B::q_bias, "q_proj"}, {B::k, B::k_bias, "k_proj"}, {B::v, B::v_bias, "v_proj"}};
  std::int64_t begin = 0;
  const std::string joined = named(at) + "in_proj_";
  for (const auto& part : parts) {
    if (file_.has(joined + "weight")) {
      const std::int64_t end = begin + width;
      slots.fill(part.weight, std::vector<Part>{{joined + "weight", begin, end}}, {width, width});
      slots.fill(part.bias, std::vector<Part>{{joined + "bias", begin, end}}, {width});
      begin = end;
    } else {
      fill(slots, part.weight, part.bias, at + part.name, {width, width});
    }
  }
  fill(slots, B::proj, B::proj_bias, at + "out_proj", {width, width});
}

Source RtdetrBuilder::attend(const std::string& at, const std::string& norm, const Source& x,
                             const Source& places, std::int64_t width, std::int64_t heads) const {
  using B = Attend;
  if (heads < 1 || width % heads != 0)
    refuse_rtdetr(file_, std::to_string(width) + " numbers of a cell do not divide into " +
                             std::to_string(heads) + " heads.");
  const std::string path = at + "self_attn";
  Block made = graph_.add<B>(path);
  made.link(B::x, x).link(B::places, places).set(B::heads, heads).set(B::norm_first, false);
  blocks::Slots slots(file_, made, path);
  fill_attention(slots, path + ".", width);
  fill(slots, B::norm, B::norm_bias, at + norm, {width});
  return made[B::out];
}

Source RtdetrBuilder::feed(const std::string& at, const std::string& norm, const Source& x,
                           std::int64_t width, bool gelu) const {
  using B = FeedForward;
  const std::string path = at + "linear1";
  Block made = graph_.add<B>(path);
  made.link(B::x, x).set(B::norm_first, false).set(B::gelu, gelu);
  blocks::Slots slots(file_, made, path);
  const std::int64_t inner = file_.size(named(path) + ".weight", 0);
  fill(slots, B::up, B::up_bias, path, {inner, width});
  fill(slots, B::down, B::down_bias, at + "linear2", {width, inner});
  fill(slots, B::norm, B::norm_bias, at + norm, {width});
  return made[B::out];
}

// The coarsest grid, whose cells see each other.
Source RtdetrBuilder::mixed(const RtdetrSource& grid) const {
  constexpr std::int64_t kHeads = 8;
  Block cells = graph_.add<RtdetrCells>("encoder.cells");
  cells.link(RtdetrCells::x, grid.x);
  Source x = cells[RtdetrCells::cells];
  for (int i = 0; i < blocks::layer_count(file_, named("encoder.encoder.0.layers.")); ++i) {
    const std::string at = "encoder.encoder.0.layers." + std::to_string(i) + ".";
    x = attend(at, "norm1", x, cells[RtdetrCells::places], grid.channels, kHeads);
    x = feed(at, "norm2", x, grid.channels, true);
  }
  Block back = graph_.add<RtdetrGrid>("encoder.grid");
  back.link(RtdetrGrid::cells, x).link(RtdetrGrid::like, grid.x);
  return back[RtdetrGrid::out];
}

std::vector<RtdetrSource> RtdetrBuilder::encoder(const std::vector<RtdetrSource>& grids) const {
  std::vector<RtdetrSource> own;
  for (std::size_t i = 0; i < grids.size(); ++i)
    own.push_back(conv("encoder.input_proj." + std::to_string(i), grids[i], {}));
  own.back().x = mixed(own.back());
  std::vector<RtdetrSource> down{own.back()};  // from the coarsest grid on
  for (int j = 0; j + 1 < kGrids; ++j) {
    const std::string number = std::to_string(j), path = "encoder.fpn_blocks." + number;
    down.back() = conv("encoder.lateral_convs." + number, down.back(), {});
    const RtdetrSource& finer = own[own.size() - std::size_t(j) - 2];
    down.push_back(elan(path + ".", join(path, {down.back(), finer}, true)));
  }
  std::vector<RtdetrSource> made{down.back()};
  for (int j = 0; j + 1 < kGrids; ++j) {
    const std::string number = std::to_string(j), path = "encoder.pan_blocks." + number,
                      at = "encoder.downsample_convs." + number + ".0.";
    const RtdetrSource smaller =
        conv(at + "cv2", conv(at + "cv1", made.back(), {}), {.stride = 2, .depthwise = true});
    const RtdetrSource& coarser = down[down.size() - std::size_t(j) - 2];
    made.push_back(elan(path + ".", join(path, {smaller, coarser})));
  }
  return made;
}

}  // namespace heddle::detection
