#include "flux.h"

#include "flux_names.h"
#include "plugins/blocks/slots.h"

namespace heddle::denoisers {
namespace {

constexpr std::int64_t kArea = 4;      // latent pixels in a token: 2x2

// Numbers of an MLP that stay together when devices divide it: a vector register's worth.
std::int64_t mlp_unit(std::int64_t width) { return width % 16 == 0 ? 16 : 1; }

// What the tensors and the config say about one model.
struct Dimensions {
  std::int64_t hidden, heads, head_size, in_width, out_width, context_width, pooled_width,
      time_width;
  std::int64_t axes[3];
  double theta = 10000;
  int doubles, singles;
  bool guided;         // trained with the guidance as an input
  bool expose_blocks;  // every block's result is an output, too
};

void read_axes(const Checkpoint& file, const Value& config, Dimensions& d) {
  const Value axes = config.field("axes_dims_rope");
  if (!axes || axes.is(HEDDLE_KIND_NONE)) {
    d.axes[0] = 16;
    d.axes[1] = d.axes[2] = (d.head_size - 16) / 2;
  } else {
    if (axes.count() != 3)
      throw Error(HEDDLE_UNSUPPORTED, file.path() + ": axes_dims_rope lists " +
                                          std::to_string(axes.count()) + " axes, FLUX has 3");
    for (std::uint32_t i = 0; i < 3; ++i) d.axes[i] = axes.item(i).as<std::int64_t>();
  }
  std::int64_t sum = 0;
  for (const std::int64_t axis : d.axes) {
    sum += axis;
    if (axis <= 0 || axis % 2 != 0) sum = -1 << 20;
  }
  if (sum != d.head_size)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": rotary axes " +
                                             blocks::shape_text({d.axes[0], d.axes[1], d.axes[2]}) +
                                             " do not make up a head of size " +
                                             std::to_string(d.head_size) +
                                             ": each has to be even, and their sum the head size");
}

Dimensions read_dimensions(const Checkpoint& file, const Value& config, const FluxNames& names) {
  const auto size = [&](const std::vector<Part>& parts, std::uint32_t axis) {
    return file.size(names.one(parts), axis);
  };
  Dimensions d{};
  d.hidden = size(names.top("img_in", "weight"), 0);
  d.in_width = size(names.top("img_in", "weight"), 1);
  d.out_width = size(names.top("final_layer.linear", "weight"), 0);
  d.context_width = size(names.top("txt_in", "weight"), 1);
  d.pooled_width = size(names.top("vector_in.in_layer", "weight"), 1);
  d.time_width = size(names.top("time_in.in_layer", "weight"), 1);
  d.head_size = size(names.in_double(0, "img_attn.norm.query_norm", "weight"), 0);
  d.guided = file.has(names.one(names.top("guidance_in.in_layer", "weight")));
  d.doubles =
      int(config.get<std::int64_t>("num_layers", blocks::layer_count(file, names.double_prefix())));
  d.singles = int(config.get<std::int64_t>("num_single_layers",
                                           blocks::layer_count(file, names.single_prefix())));
  d.expose_blocks = config.get<bool>("expose_blocks", false);
  if (d.head_size <= 0 || d.hidden % d.head_size != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": a width of " + std::to_string(d.hidden) +
                                             " is no multiple of the head size " +
                                             std::to_string(d.head_size));
  d.heads = d.hidden / d.head_size;
  if (d.in_width % kArea != 0 || d.out_width % kArea != 0 || d.out_width > d.in_width)
    throw Error(HEDDLE_UNSUPPORTED, file.path() + ": tokens of " + std::to_string(d.in_width) +
                                        " numbers in, " + std::to_string(d.out_width) +
                                        " out are no 2x2 patches of a latent");
  read_axes(file, config, d);
  return d;
}

// Builds the graph of one file.
class Builder {
 public:
  Builder(const Checkpoint& file, const FluxNames& names, const Dimensions& dimensions,
          Blocks& graph)
      : file_(file), names_(names), d_(dimensions), graph_(graph) {}

  void run() {
    const Source x = graph_.input("x", HEDDLE_INPUT_STEP | HEDDLE_INPUT_BATCH);
    const Source timestep = graph_.input("timestep", HEDDLE_INPUT_SCHEDULED);
    const Source context = graph_.input("context", HEDDLE_INPUT_CONSTANT | HEDDLE_INPUT_BATCH);
    const Source vector = embed_vector(timestep, graph_.input("y", HEDDLE_INPUT_CONSTANT | HEDDLE_INPUT_BATCH));
    const Block rope = add_rope(x, context);
    cos_ = rope[FluxRope::cos];
    sin_ = rope[FluxRope::sin];
    Source txt = embed_text(context, x), img = embed_image(x);
    for (int i = 0; i < d_.doubles; ++i) {
      add_double(i, vector, img, txt);
      expose("double." + std::to_string(i) + ".img", img);
      expose("double." + std::to_string(i) + ".txt", txt);
    }
    Block join = graph_.add<FluxJoin>("join");
    join.link(FluxJoin::txt, txt).link(FluxJoin::img, img);
    Source hidden = join[FluxJoin::out];
    for (int i = 0; i < d_.singles; ++i) {
      hidden = add_single(i, vector, hidden);
      expose("single." + std::to_string(i), hidden);
    }
    graph_.output("out", add_final(vector, hidden, x));
  }

 private:
  void expose(const std::string& name, const Source& from) {
    if (d_.expose_blocks) graph_.output(name.c_str(), from);
  }

  // A linear layer of a block: matrix (out, in) and bias (out).
  template <class Find>
  void linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias, Find&& find,
              std::int64_t out, std::int64_t in) {
    slots.fill(matrix, find("weight"), {out, in});
    slots.fill(bias, find("bias"), {out});
  }
  auto top(std::string_view module) const {
    return [this, module](const char* kind) { return names_.top(module, kind); };
  }

  Source embed_vector(const Source& timestep, const Source& y) {
    using B = FluxVector;
    Block block = graph_.add<B>("embed.vector");
    block.link(B::timestep, timestep).link(B::y, y);
    blocks::Slots slots(file_, block, "embed.vector");
    linear(slots, B::time_in, B::time_in_bias, top("time_in.in_layer"), d_.hidden, d_.time_width);
    linear(slots, B::time_out, B::time_out_bias, top("time_in.out_layer"), d_.hidden, d_.hidden);
    linear(slots, B::text_in, B::text_in_bias, top("vector_in.in_layer"), d_.hidden,
           d_.pooled_width);
    linear(slots, B::text_out, B::text_out_bias, top("vector_in.out_layer"), d_.hidden, d_.hidden);
    if (d_.guided) {
      block.link(B::guidance,
                 graph_.input("guidance", HEDDLE_INPUT_CONSTANT | HEDDLE_INPUT_OPTIONAL | HEDDLE_INPUT_BATCH));
      linear(slots, B::guidance_in, B::guidance_in_bias, top("guidance_in.in_layer"), d_.hidden,
             d_.time_width);
      linear(slots, B::guidance_out, B::guidance_out_bias, top("guidance_in.out_layer"), d_.hidden,
             d_.hidden);
    }
    return block[B::out];
  }

  Block add_rope(const Source& x, const Source& context) {
    using B = FluxRope;
    Block block = graph_.add<B>("embed.rope");
    block.link(B::x, x).link(B::context, context);
    block.set(B::axis_0, d_.axes[0])
        .set(B::axis_1, d_.axes[1])
        .set(B::axis_2, d_.axes[2])
        .set(B::theta, d_.theta);
    return block;
  }

  Source embed_text(const Source& context, const Source& x) {
    using B = FluxTextIn;
    Block block = graph_.add<B>("embed.text");
    block.link(B::context, context).link(B::x, x);
    blocks::Slots slots(file_, block, "embed.text");
    linear(slots, B::weight, B::bias, top("txt_in"), d_.hidden, d_.context_width);
    return block[B::out];
  }

  Source embed_image(const Source& x) {
    using B = FluxImageIn;
    Block block = graph_.add<B>("embed.image");
    block.link(B::x, x);
    if (d_.in_width > d_.out_width)
      block.link(B::concat, graph_.input("concat", HEDDLE_INPUT_CONSTANT | HEDDLE_INPUT_BATCH));
    blocks::Slots slots(file_, block, "embed.image");
    linear(slots, B::weight, B::bias, top("img_in"), d_.hidden, d_.in_width);
    return block[B::out];
  }

  void add_double(int index, const Source& vector, Source& img, Source& txt) {
    using B = FluxDouble;
    using M = FluxDoubleModulation;
    const std::string path = "double." + std::to_string(index);
    const auto find = [&](std::string_view module) {
      return
          [this, index, module](const char* kind) { return names_.in_double(index, module, kind); };
    };
    Block modulation = graph_.add<M>(path + ".modulation");
    modulation.link(M::vector, vector);
    blocks::Slots mod(file_, modulation, path + ".modulation");
    linear(mod, M::img_weight, M::img_bias, find("img_mod.lin"), 6 * d_.hidden, d_.hidden);
    linear(mod, M::txt_weight, M::txt_bias, find("txt_mod.lin"), 6 * d_.hidden, d_.hidden);

    Block block = graph_.add<B>(path + ".block");
    block.link(B::img, img).link(B::txt, txt).link(B::cos, cos_).link(B::sin, sin_);
    block.link(B::img_mod, modulation[M::img])
        .link(B::txt_mod, modulation[M::txt])
        .set(B::heads, d_.heads);
    blocks::Slots slots(file_, block, path + ".block");
    const std::int64_t mlp = mlp_width(names_.in_double(index, "img_mlp.0", "bias"));
    linear(slots, B::img_qkv, B::img_qkv_bias, find("img_attn.qkv"), 3 * d_.hidden, d_.hidden);
    linear(slots, B::img_proj, B::img_proj_bias, find("img_attn.proj"), d_.hidden, d_.hidden);
    linear(slots, B::img_up, B::img_up_bias, find("img_mlp.0"), mlp, d_.hidden);
    linear(slots, B::img_down, B::img_down_bias, find("img_mlp.2"), d_.hidden, mlp);
    linear(slots, B::txt_qkv, B::txt_qkv_bias, find("txt_attn.qkv"), 3 * d_.hidden, d_.hidden);
    linear(slots, B::txt_proj, B::txt_proj_bias, find("txt_attn.proj"), d_.hidden, d_.hidden);
    linear(slots, B::txt_up, B::txt_up_bias, find("txt_mlp.0"), mlp, d_.hidden);
    linear(slots, B::txt_down, B::txt_down_bias, find("txt_mlp.2"), d_.hidden, mlp);
    shard_stream(block, B::img_qkv, B::img_qkv_bias, B::img_proj, B::img_up, B::img_up_bias, B::img_down, mlp);
    shard_stream(block, B::txt_qkv, B::txt_qkv_bias, B::txt_proj, B::txt_up, B::txt_up_bias, B::txt_down, mlp);
    slots.fill(B::img_q_norm, names_.in_double(index, "img_attn.norm.query_norm", "weight"),
               {d_.head_size});
    slots.fill(B::img_k_norm, names_.in_double(index, "img_attn.norm.key_norm", "weight"),
               {d_.head_size});
    slots.fill(B::txt_q_norm, names_.in_double(index, "txt_attn.norm.query_norm", "weight"),
               {d_.head_size});
    slots.fill(B::txt_k_norm, names_.in_double(index, "txt_attn.norm.key_norm", "weight"),
               {d_.head_size});
    img = block[B::img_out];
    txt = block[B::txt_out];
  }

  // One stream of a double block, divided among devices: heads, and stretches of the MLP.
  void shard_stream(Block& block, const Weight& qkv, const Weight& qkv_bias, const Weight& proj, const Weight& up, const Weight& up_bias,
                    const Weight& down, std::int64_t mlp) {
    const std::int64_t d = d_.hidden, head = d_.head_size;
    block.shard(qkv, 0, {{d, head}, {d, head}, {d, head}}).shard(qkv_bias, 0, {{d, head}, {d, head}, {d, head}}).shard(proj, 1, {{d, head}});
    block.shard(up, 0, {{mlp, mlp_unit(mlp)}}).shard(up_bias, 0, {{mlp, mlp_unit(mlp)}}).shard(down, 1, {{mlp, mlp_unit(mlp)}});
  }

  Source add_single(int index, const Source& vector, const Source& hidden) {
    using B = FluxSingle;
    const std::string path = "single." + std::to_string(index);
    const auto find = [&](std::string_view module) {
      return
          [this, index, module](const char* kind) { return names_.in_single(index, module, kind); };
    };
    Block modulation = add_modulation(path + ".modulation", vector, find("modulation.lin"), 3);
    Block block = graph_.add<B>(path + ".block");
    block.link(B::hidden, hidden).link(B::cos, cos_).link(B::sin, sin_);
    block.link(B::mod, modulation[FluxModulation::out]).set(B::heads, d_.heads);
    blocks::Slots slots(file_, block, path + ".block");
    // The last projection reads attention and MLP side by side: its columns tell the width of the
    // MLP.
    const std::string down = names_.one(names_.in_single(index, "linear2", "weight"));
    const std::int64_t mlp = file_.has(down) ? file_.size(down, 1) - d_.hidden : 4 * d_.hidden;
    linear(slots, B::qkv, B::qkv_bias, find("linear1.qkv"), 3 * d_.hidden, d_.hidden);
    linear(slots, B::up, B::up_bias, find("linear1.mlp"), mlp, d_.hidden);
    linear(slots, B::down, B::down_bias, find("linear2"), d_.hidden, d_.hidden + mlp);
    const std::int64_t d = d_.hidden, head = d_.head_size;
    block.shard(B::qkv, 0, {{d, head}, {d, head}, {d, head}}).shard(B::qkv_bias, 0, {{d, head}, {d, head}, {d, head}});
    block.shard(B::up, 0, {{mlp, mlp_unit(mlp)}}).shard(B::up_bias, 0, {{mlp, mlp_unit(mlp)}}).shard(B::down, 1, {{d, head}, {mlp, mlp_unit(mlp)}});
    slots.fill(B::q_norm, names_.in_single(index, "norm.query_norm", "weight"), {d_.head_size});
    slots.fill(B::k_norm, names_.in_single(index, "norm.key_norm", "weight"), {d_.head_size});
    return block[B::out];
  }

  Source add_final(const Source& vector, const Source& hidden, const Source& x) {
    using B = FluxFinal;
    Block modulation =
        add_modulation("final.modulation", vector, top("final_layer.adaLN_modulation.1"), 2);
    Block block = graph_.add<B>("final.block");
    block.link(B::hidden, hidden).link(B::mod, modulation[FluxModulation::out]).link(B::x, x);
    blocks::Slots slots(file_, block, "final.block");
    linear(slots, B::weight, B::bias, top("final_layer.linear"), d_.out_width, d_.hidden);
    return block[B::out];
  }

  template <class Find>
  Block add_modulation(const std::string& path, const Source& vector, Find&& find, int parts) {
    using B = FluxModulation;
    Block block = graph_.add<B>(path);
    block.link(B::vector, vector);
    blocks::Slots slots(file_, block, path);
    linear(slots, B::weight, B::bias, find, parts * d_.hidden, d_.hidden);
    return block;
  }

  // The MLP's width is its first bias's length; when that is missing, filling the slot says so.
  std::int64_t mlp_width(const std::vector<Part>& bias) const {
    return file_.has(names_.one(bias)) ? file_.size(names_.one(bias), 0) : 4 * d_.hidden;
  }

  const Checkpoint& file_;
  const FluxNames& names_;
  const Dimensions& d_;
  Blocks& graph_;
  Source cos_, sin_;
};

void add_settings(const Dimensions& d, Blocks& graph) {
  graph.setting("family", "flux");
  graph.setting("latent_channels", d.out_width / kArea);
  graph.setting("latent_downscale", std::int64_t{8});
  graph.setting("patch", std::int64_t{2});
  graph.setting("guidance_embedded", d.guided);
  graph.setting("context_width", d.context_width);
  graph.setting("pooled_width", d.pooled_width);
  // How noise levels are spaced when no node says otherwise, as ComfyUI does: distilled with
  // guidance, FLUX.1 dev's table with mu = 1.15; else schnell's unshifted one. `sampling`: the
  // output is the velocity of a straight flow.
  graph.setting("sampling", "flow");
  graph.setting("noise_table", d.guided ? "flux" : "discrete_flow");
  graph.setting("noise_mu", d.guided ? 1.15 : 0.0);
  graph.setting("noise_shift", 1.0);
}

}  // namespace

int Flux::match(const Checkpoint& file, const Value&) { return FluxNames::find(file) ? 100 : 0; }

void Flux::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<FluxNames> names = FluxNames::find(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no FLUX model");
  const Dimensions dimensions = read_dimensions(file, config, *names);
  Builder(file, *names, dimensions, graph).run();
  add_settings(dimensions, graph);
}

}  // namespace heddle::denoisers
