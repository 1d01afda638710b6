#include "unet_gligen.h"

#include <cmath>

#include <heddle/ops.hpp>

#include "plugins/blocks/heads.h"
#include "plugins/blocks/slots.h"

namespace heddle::denoisers {
namespace {

constexpr std::int64_t kMostBoxes = 30;  // as many objects as it was trained with
constexpr const char* kGligenMark = "position_net.null_positive_feature";
constexpr const char* kFuser = ".fuser.linear.weight";

// x with tanh(alpha) times what was made of it.
Tensor with_share(Context& ctx, const Tensor& x, const Tensor& made, double alpha) {
  return ops::combine(ctx, {{1.0, x}, {std::tanh(alpha), made}});
}

Tensor thirds(const Tensor& x, int index, std::int64_t width) {
  return x.slice(2, index * width, (index + 1) * width);
}

struct GligenSizes {
  std::int64_t phrase = 0, place = 0, inner = 0, objects = 0;
};

GligenSizes gligen_sizes(const Checkpoint& file, const std::string& prefix) {
  const auto size = [&](const char* name, std::uint32_t axis) {
    return file.size(prefix + "position_net." + name, axis);
  };
  return {size("null_positive_feature", 0), size("null_position_feature", 0),
          size("linears.0.weight", 0), size("linears.4.weight", 0)};
}

Source add_objects(const Checkpoint& file, const std::string& prefix, const std::string& path,
                   const Source& boxes, Blocks& graph) {
  using B = UnetGligenObjects;
  const GligenSizes d = gligen_sizes(file, prefix);
  Block block = graph.add<B>(path);
  block.link(B::boxes, boxes).set(B::most, kMostBoxes);
  blocks::Slots slots(file, block, path);
  const std::string net = prefix + "position_net.";
  const auto both = [&](const Weight& weight, const Weight& bias, const std::string& module,
                        std::int64_t out, std::int64_t in) {
    slots.fill(weight, net + module + ".weight", {out, in});
    slots.fill(bias, net + module + ".bias", {out});
  };
  slots.fill(B::no_phrase, net + "null_positive_feature", {d.phrase});
  slots.fill(B::no_place, net + "null_position_feature", {d.place});
  both(B::enter, B::enter_bias, "linears.0", d.inner, d.phrase + d.place);
  both(B::middle, B::middle_bias, "linears.2", d.inner, d.inner);
  both(B::leave, B::leave_bias, "linears.4", d.objects, d.inner);
  return block[B::out];
}

// What stands before "input_blocks.1.1.transformer_blocks.0.fuser.linear.weight", or diffusers'
// "down_blocks.0.attentions.0..."; nothing where there is no such tensor.
std::optional<std::string> fuser_prefix(const Checkpoint& file, const std::string& prefix) {
  for (std::uint32_t i = 0; i < file.size(); ++i) {
    const std::string name = file.name(i);
    if (!name.starts_with(prefix) || !name.ends_with(kFuser)) continue;
    for (const char* begin : {"input_blocks.", "down_blocks."})
      if (const std::size_t at = name.find(begin, prefix.size()); at != name.npos)
        return name.substr(0, at);
  }
  return std::nullopt;
}

[[noreturn]] void refuse_gligen(const std::string& file, const std::string& why) {
  throw Error(HEDDLE_INVALID_ARGUMENT, "the GLIGEN model " + file + " does not fit: " + why);
}

}  // namespace

void UnetGligenObjects::execute(Context& ctx) {
  const std::int64_t count = ctx[most], phrase = ctx[no_phrase].size(0),
                     width = phrase + ctx[no_place].size(0);
  const std::int64_t given = ctx.has(boxes) ? ctx[boxes].size(1) : 0;
  if (given > count || (given > 0 && ctx[boxes].size(2) != width))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "GLIGEN reads up to " + std::to_string(count) + " boxes of " +
                    std::to_string(width) + " numbers, and gets " + std::to_string(given) +
                    ". Encode phrases with the CLIP of this model, and give fewer boxes.");
  const Tensor all = ctx.make({1, count, width}, HEDDLE_F32);
  if (given > 0) ops::copy_into(ctx, ctx[boxes], all.slice(1, 0, given));
  for (std::int64_t row = given; row < count; ++row) {
    const Tensor to = all.slice(1, row, row + 1);
    ops::copy_into(ctx, ctx[no_phrase].reshape({1, 1, phrase}), to.slice(2, 0, phrase));
    ops::copy_into(ctx, ctx[no_place].reshape({1, 1, width - phrase}), to.slice(2, phrase, width));
  }
  const Tensor first = ops::linear(ctx, ops::cast(ctx, all, ctx.compute()), ctx[enter],
                                   ctx[enter_bias], HEDDLE_ACT_SILU);
  const Tensor second = ops::linear(ctx, first, ctx[middle], ctx[middle_bias], HEDDLE_ACT_SILU);
  ctx[out] = ops::linear(ctx, second, ctx[leave], ctx[leave_bias]);
}

void UnetGligen::execute(Context& ctx) {
  const Tensor x = ctx[tokens];
  if (!ctx.has(boxes)) {
    ctx[out] = x;
    return;
  }
  const std::int64_t items = x.size(0), count = x.size(1), width = x.size(2);
  const Tensor seen = ops::linear(ctx, ctx[objects], ctx[enter], ctx[enter_bias]);
  const std::int64_t all = count + seen.size(1);
  const Tensor both = ctx.make({items, all, width});
  ops::copy_into(ctx, x, both.slice(1, 0, count));
  for (std::int64_t item = 0; item < items; ++item)
    ops::copy_into(ctx, seen, both.slice(0, item, item + 1).slice(1, count, all));
  const Tensor made = ops::linear(
      ctx, ops::layer_norm(ctx, both, ctx[norm1], ctx[norm1_bias], ctx[eps]), ctx[qkv], {});
  const auto split = [&](const Tensor& part) { return blocks::split_heads(part, ctx[heads]); };
  const Tensor attended = blocks::join_heads(ops::attention(
      ctx, split(thirds(made, 0, width).slice(1, 0, count)), split(thirds(made, 1, width)),
      split(thirds(made, 2, width)), {}, 1 / std::sqrt(double(width / ctx[heads]))));
  const Tensor first =
      with_share(ctx, x, ops::linear(ctx, attended, ctx[proj], ctx[proj_bias]), ctx[alpha]);
  const Tensor raised =
      ops::linear(ctx, ops::layer_norm(ctx, first, ctx[norm2], ctx[norm2_bias], ctx[eps]), ctx[up],
                  ctx[up_bias]);
  const std::int64_t inner = raised.size(2) / 2;
  const Tensor gated = ctx.make({items, count, inner});
  ops::gated_activation_into(ctx, thirds(raised, 1, inner), thirds(raised, 0, inner),
                             HEDDLE_ACT_GELU, gated);
  ctx[out] =
      with_share(ctx, first, ops::linear(ctx, gated, ctx[down], ctx[down_bias]), ctx[mlp_alpha]);
}

int UnetGligenFile::match(const Checkpoint& file, const Value&) {
  return file.has(kGligenMark) && fuser_prefix(file, "") ? 100 : 0;
}

void UnetGligenFile::build(const Checkpoint& file, const Value&, Blocks& graph) {
  const GligenSizes sizes = gligen_sizes(file, "");
  if (sizes.place == 0 || sizes.place % 8 != 0)
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() + ": GLIGEN's 'position_net.null_position_feature' has " +
                    std::to_string(sizes.place) +
                    " numbers, which are no sines and cosines of four. Use a model of boxes with "
                    "phrases (textbox).");
  graph.output("objects", add_objects(file, "", "objects",
                                      graph.input("boxes", HEDDLE_INPUT_LOOP_INVARIANT), graph));
  graph.setting("phrase_width", sizes.phrase);
  graph.setting("place_width", sizes.place);
  graph.setting("most_boxes", kMostBoxes);
}

UnetGligens::UnetGligens(const Checkpoint& file, const Value& config, Blocks& graph)
    : file_(file), graph_(graph) {
  if (!config.is(HEDDLE_KIND_RECORD)) return;
  const Value list = config.field("gligens");
  models_.reserve(list.count());  // inputs keep pointers to their names
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    Model& model = models_.emplace_back();
    model.prefix = list.item(i).get<std::string>("prefix", "");
    model.file = list.item(i).get<std::string>("file", "");
    model.path = "gligen." + std::to_string(i);
    model.input = model.path + ".boxes";
    const std::optional<std::string> fusers = fuser_prefix(file, model.prefix);
    if (!fusers) refuse_gligen(model.file, "it has no attentions ('.fuser.').");
    model.fusers = *fusers;
    model.boxes =
        graph.input(model.input.c_str(), HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL);
    try {
      model.objects = add_objects(file, model.prefix, model.path + ".objects", model.boxes, graph);
    } catch (const Error& error) {
      refuse_gligen(model.file, error.what());
    }
  }
}

Source UnetGligens::added(const UnetBlockPlace& place, Source tokens) const {
  using B = UnetGligen;
  for (const Model& model : models_) {
    const std::string path = model.path + "." + place.path;
    const std::string original = model.fusers + place.part.original + "." + place.module + "fuser.",
                      diffusers =
                          model.fusers + place.part.diffusers + "." + place.module + "fuser.";
    const std::string& at = file_.has(original + "linear.weight") ? original : diffusers;
    Block block = graph_.add<B>(path);
    block.link(B::tokens, tokens)
        .link(B::objects, model.objects)
        .link(B::boxes, model.boxes)
        .set(B::heads, place.heads);
    blocks::Slots slots(file_, block, path);
    const auto both = [&](const Weight& weight, const Weight& bias, const char* module,
                          const Shape& shape) {
      slots.fill(weight, at + module + ".weight", shape);
      slots.fill(bias, at + module + ".bias", {shape.front()});
    };
    const std::int64_t width = place.width;
    try {
      const std::int64_t raised = file_.size(at + "ff.net.0.proj.weight", 0),
                         objects = file_.size(model.prefix + "position_net.linears.4.weight", 0);
      both(B::enter, B::enter_bias, "linear", {width, objects});
      both(B::norm1, B::norm1_bias, "norm1", {width});
      slots.fill(B::qkv,
                 {{at + "attn.to_q.weight"}, {at + "attn.to_k.weight"}, {at + "attn.to_v.weight"}},
                 {3 * width, width});
      both(B::proj, B::proj_bias, "attn.to_out.0", {width, width});
      block.set(B::alpha, file_.number(at + "alpha_attn"));
      both(B::norm2, B::norm2_bias, "norm2", {width});
      both(B::up, B::up_bias, "ff.net.0.proj", {raised, width});
      both(B::down, B::down_bias, "ff.net.2", {width, raised / 2});
      block.set(B::mlp_alpha, file_.number(at + "alpha_dense"));
    } catch (const Error& error) {
      refuse_gligen(model.file, error.what());
    }
    tokens = block[B::out];
  }
  return tokens;
}

}  // namespace heddle::denoisers
