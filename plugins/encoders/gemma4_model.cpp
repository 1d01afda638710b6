#include "gemma4_model.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

#include "gemma4_blocks.h"
#include "gemma4_sizes.h"
#include "language_states.h"
#include "language_writing_blocks.h"
#include "plugins/blocks/slots.h"

namespace heddle::encoders {
namespace {

// Places for pictures and sounds, which 12B is not to write.
constexpr std::int64_t kUnwritten[] = {258882, 258883};

class Gemma4Builder {
 public:
  Gemma4Builder(const Checkpoint& file, const LanguageNames& names, const Value& text,
                const Value& use, Blocks& graph)
      : file_(file),
        names_(names),
        s_(read_gemma4_sizes(file, names, text)),
        wanted_(wanted_layers(file, use.field("hidden_layers"), int(s_.layers.size()))),
        writes_(use.get<bool>("writes_texts", false)),
        all_states_(use.get<bool>("all_states", false)),
        graph_(graph),
        owns_(s_.layers.size()) {}

  void run() {
    const Source ids = graph_.input("ids", phase() | (writes_ ? 0 : HEDDLE_INPUT_BATCH));
    Source hidden = embed(ids);
    add_ropes(ids);
    if (s_.told > 0) links_.told = add_told(ids, hidden);
    if (writes_) links_.seen = optional_input("seen");
    if (writes_) links_.near = optional_input("near");
    if (s_.sees_groups) links_.groups = optional_input("groups");
    std::vector<Source> states(1, hidden);
    const int layers = int(s_.layers.size()),
              depth = wanted_.empty() ? layers : *std::ranges::max_element(wanted_);
    for (int i = 0; i < depth; ++i) {
      hidden = add_layer(i, hidden);
      states.push_back(hidden);
    }
    if (writes_)
      add_logits(hidden);
    else
      graph_.output("last_hidden", choose(states));
    add_settings();
  }

 private:
  struct Turns {
    Source cos, sin;
  };

  std::uint32_t phase() const {
    return writes_ ? HEDDLE_INPUT_PER_STEP : HEDDLE_INPUT_LOOP_INVARIANT;
  }
  Source optional_input(const std::string& name) {
    return graph_.input(input_names_.emplace_back(name).c_str(), phase() | HEDDLE_INPUT_OPTIONAL);
  }
  // Whether a layer behind it has its keys and values.
  bool is_source(int layer) const {
    return std::ranges::any_of(s_.layers, [&](const auto& l) { return l.source == layer; });
  }

  Source embed(const Source& ids) {
    using B = LanguageEmbed;
    Block block = graph_.add<B>("embed");
    block.link(B::ids, ids).set(B::scale, std::sqrt(double(s_.width)));
    block.link(B::pictures, optional_input("pictures"));
    block.link(B::is_text, optional_input("is_text"));
    blocks::Slots(file_, block, "embed")
        .fill(B::tokens, names_.tokens(), {s_.vocabulary, s_.width});
    return block[B::out];
  }

  void add_ropes(const Source& ids) {
    std::optional<Source> positions;
    if (writes_) positions = graph_.input("positions", HEDDLE_INPUT_PER_STEP);
    for (const bool near : {true, false}) {
      const auto first = std::ranges::find_if(
          s_.layers, [&](const Gemma4LayerSizes& layer) { return layer.is_near == near; });
      if (first == s_.layers.end()) continue;
      (near ? links_.near_turns : links_.far_turns) = add_rope(near, first->head, ids, positions);
    }
  }

  Turns add_rope(bool near, std::int64_t head, const Source& ids,
                 const std::optional<Source>& positions) {
    using B = LanguageRope;
    Block block = graph_.add<B>(near ? "rope.near" : "rope");
    block.link(B::ids, ids).set(B::head, head);
    block.set(B::theta, near ? s_.near_theta : s_.far_theta);
    if (!near)
      block.set(B::turning,
                std::max<std::int64_t>(1, std::int64_t(s_.far_part * double(head) / 2)));
    if (positions)
      block.link(B::positions, *positions)
          .set(B::section_0, head / 2)
          .set(B::section_1, std::int64_t{0})
          .set(B::section_2, std::int64_t{0});
    return {block[B::cos], block[B::sin]};
  }

  Source add_told(const Source& ids, const Source& hidden) {
    using B = Gemma4Told;
    const std::int64_t all = s_.told * std::int64_t(s_.layers.size());
    const auto weight = [&](const char* module) {
      return names_.beside_layers(module) + ".weight";
    };
    Block block = graph_.add<B>("told");
    block.link(B::ids, ids).link(B::hidden, hidden).set(B::eps, s_.eps);
    blocks::Slots slots(file_, block, "told");
    slots.fill(B::tokens, weight("embed_tokens_per_layer"), {s_.told_vocabulary, all});
    slots.fill(B::projection, weight("per_layer_model_projection"), {all, s_.width});
    slots.fill(B::norm, weight("per_layer_projection_norm"), {s_.told});
    return block[B::out];
  }

  Source add_layer(int i, const Source& hidden) {
    using B = Gemma4Layer;
    const Gemma4LayerSizes& layer = s_.layers[std::size_t(i)];
    const bool shares = layer.source >= 0, keeps = !shares && (writes_ || is_source(i));
    const std::string path = "layer." + std::to_string(i);
    Block block = shares  ? graph_.add<Gemma4SharingLayer>(path)
                  : keeps ? graph_.add<Gemma4KeptLayer>(path)
                          : graph_.add<B>(path);
    const Turns& turns = layer.is_near ? *links_.near_turns : *links_.far_turns;
    block.link(B::hidden, hidden).link(B::cos, turns.cos).link(B::sin, turns.sin);
    if (links_.told) block.link(B::told, *links_.told).set(B::told_at, std::int64_t(i) * s_.told);
    if (links_.groups) block.link(B::groups, *links_.groups);
    if (shares) see_other(layer, block);
    if (keeps) keep(i, layer, block);
    block.set(B::heads, layer.heads).set(B::kv_heads, layer.kv_heads).set(B::eps, s_.eps);
    block.set(B::window, layer.is_near ? s_.window : 0);
    if (!shares) block.set(B::own_values, layer.own_values);
    blocks::Slots slots(file_, block, path);
    fill_attention(slots, i, layer);
    fill_rest(slots, i, layer);
    return block[B::out];
  }

  const Source& seen_in(const Gemma4LayerSizes& layer) const {
    return layer.is_near ? *links_.near : *links_.seen;
  }
  void keep(int i, const Gemma4LayerSizes& layer, Block& block) {
    using B = Gemma4KeptLayer;
    owns_[std::size_t(i)].made = block[B::kept_out];
    if (!writes_) return;
    const std::string name = "kept." + std::to_string(i);
    const Source before = optional_input(name);
    owns_[std::size_t(i)].before = before;
    block.link(B::kept, before).link(B::seen, seen_in(layer));
    graph_.output(name.c_str(), block[B::kept_out]);
  }
  void see_other(const Gemma4LayerSizes& layer, Block& block) {
    using B = Gemma4SharingLayer;
    const Own& own = owns_[std::size_t(layer.source)];
    block.link(B::own, *own.made);
    if (writes_) block.link(B::kept, *own.before).link(B::seen, seen_in(layer));
  }

  void fill_attention(blocks::Slots& slots, int i, const Gemma4LayerSizes& layer) {
    using B = Gemma4Layer;
    const std::int64_t queries = layer.heads * layer.head, keys = layer.kv_heads * layer.head;
    const auto weight = [&](const char* module) { return names_.in_layer(i, module) + ".weight"; };
    const std::string q = weight("q"), k = weight("k"), v = weight("v");
    slots.fill(B::q_norm, weight("q_norm"), {layer.head});
    slots.fill(B::proj, weight("o"), {s_.width, queries});
    if (layer.source >= 0) {
      slots.fill(B::qkv, q, {queries, s_.width});
      return;
    }
    slots.fill(B::k_norm, weight("k_norm"), {layer.head});
    const bool apart = layer.own_values && file_.info(v).dtype != file_.info(q).dtype;
    if (layer.own_values && file_.size(v, 0) != keys)
      throw Error(HEDDLE_INVALID_ARGUMENT, file_.path() + ": tensor '" + v + "' has " +
                                               std::to_string(file_.size(v, 0)) +
                                               " rows, expected " + std::to_string(keys) +
                                               ". The file is damaged or of another model.");
    std::vector<Part> parts{{q, 0, queries}, {k, 0, keys}};
    const bool joined = layer.own_values && !apart;
    if (joined) parts.push_back({v, 0, keys});
    slots.fill(B::qkv, parts, {queries + keys + (joined ? keys : 0), s_.width});
    if (apart) slots.fill(B::v, v, {keys, s_.width});
  }

  void fill_rest(blocks::Slots& slots, int i, const Gemma4LayerSizes& layer) {
    using B = Gemma4Layer;
    const auto weight = [&](const char* module) { return names_.in_layer(i, module) + ".weight"; };
    slots.fill(B::up, {{weight("gate")}, {weight("up")}}, {2 * layer.inner, s_.width});
    slots.fill(B::down, weight("down"), {s_.width, layer.inner});
    slots.fill(B::norm1, weight("norm1"), {s_.width});
    slots.fill(B::after1, weight("after1"), {s_.width});
    slots.fill(B::norm2, weight("norm2"), {s_.width});
    slots.fill(B::after2, weight("after2"), {s_.width});
    slots.fill(B::scalar, names_.in_layer(i, "scalar"), {1});
    if (s_.told == 0) return;
    slots.fill(B::told_gate, weight("told_gate"), {s_.told, s_.width});
    slots.fill(B::told_proj, weight("told_proj"), {s_.width, s_.told});
    slots.fill(B::told_norm, weight("told_norm"), {s_.width});
  }

  Source choose(std::vector<Source>& states) {
    if (!wanted_.empty()) {
      std::vector<Source> chosen;
      for (const int number : wanted_) chosen.push_back(states[std::size_t(number)]);
      return join_states(graph_, chosen, "join");
    }
    using B = LanguageFinish;
    Block block = graph_.add<B>("finish");
    block.link(B::hidden, states.back()).set(B::eps, s_.eps);
    blocks::Slots(file_, block, "finish").fill(B::norm, names_.final_norm(), {s_.width});
    states.back() = block[B::out];
    return all_states_ ? join_states(graph_, states, "join") : states.back();
  }

  void add_logits(const Source& hidden) {
    using B = LanguageLogits;
    Block block = graph_.add<B>("logits");
    block.link(B::hidden, hidden).set(B::eps, s_.eps);
    blocks::Slots slots(file_, block, "logits");
    slots.fill(B::norm, names_.final_norm(), {s_.width});
    slots.fill(B::matrix, names_.logits(), {s_.vocabulary, s_.width});
    graph_.output("logits", block[B::out]);
    std::vector<Value> widths;
    for (int i = 0; i < s_.own_layers; ++i) {
      const Gemma4LayerSizes& layer = s_.layers[std::size_t(i)];
      widths.push_back(value_of(2 * layer.kv_heads * layer.head));
    }
    graph_.setting("kept_widths", list_of(widths));
    graph_.setting("window", s_.window);
    graph_.setting("logit_cap", s_.logit_cap);
    if (s_.told > 0) return;
    std::vector<Value> unwritten;
    for (const std::int64_t token : kUnwritten) unwritten.push_back(value_of(token));
    graph_.setting("unwritten", list_of(unwritten));
  }

  void add_settings() {
    const auto layers = std::int64_t(s_.layers.size());
    const std::int64_t told = all_states_ ? layers + 1 : std::max<std::size_t>(1, wanted_.size());
    graph_.setting("family", "language_model");
    // Those whose layers are told of tokens are talked to in another way.
    graph_.setting("kind", std::string(s_.told > 0 ? "gemma4_e" : "gemma4"));
    graph_.setting("width", s_.width * told);
    graph_.setting("hidden_width", s_.width);
    graph_.setting("vocabulary", s_.vocabulary);
    graph_.setting("layers", layers);
  }

  const Checkpoint& file_;
  const LanguageNames& names_;
  const Gemma4Sizes s_;
  const std::vector<int> wanted_;
  const bool writes_, all_states_;
  Blocks& graph_;
  // What a layer keeps: of its tokens, and of those before.
  struct Own {
    std::optional<Source> made, before;
  };
  std::vector<Own> owns_;
  std::deque<std::string> input_names_;  // which sources point to
  struct {
    std::optional<Source> told, seen, near, groups;
    std::optional<Turns> near_turns, far_turns;
  } links_;
};

}  // namespace

void build_gemma4(const Checkpoint& file, const LanguageNames& names, const Value& text,
                  const Value& use, Blocks& graph) {
  if (names.is_gguf())
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() +
                    ": Gemma 4 is not read out of gguf files. Take one in safetensors, such as "
                    "gemma4_e2b_it_int8_convrot.safetensors.");
  if (use.get<bool>("masks_padding", false))
    throw Error(HEDDLE_UNSUPPORTED, file.path() +
                                        ": a gemma4 model sees through windows and cannot mask "
                                        "padding");
  Gemma4Builder(file, names, text, use, graph).run();
}

}  // namespace heddle::encoders
