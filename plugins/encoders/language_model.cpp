#include "language_model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <heddle/checked.hpp>

#include "delta_blocks.h"
#include "gemma4_model.h"
#include "language_sizes.h"
#include "language_states.h"
#include "plugins/blocks/slots.h"

namespace heddle::encoders {
namespace {

// The vision tower beside the model has a merger for each of them.
int count_deep_layers(const Checkpoint& file) {
  const auto prefix = blocks::prefix_before(file, "deepstack_merger_list.0.norm.weight");
  return prefix ? blocks::layer_count(file, *prefix + "deepstack_merger_list.") : 0;
}

// Builds the graph of one file.
class LanguageBuilder {
 public:
  LanguageBuilder(const Checkpoint& file, const LanguageNames& names, const LanguageKind& kind,
                  const Value& config, const Value& use, Blocks& graph)
      : file_(file),
        names_(names),
        kind_(kind),
        s_(read_language_sizes(file, names, kind, config)),
        sections_(read_sections(file, kind, config, s_.turned)),
        deep_layers_(sections_[0] > 0 ? count_deep_layers(file) : 0),
        wanted_(wanted_layers(file, use.field("hidden_layers"), s_.layers)),
        padding_{use.get<bool>("masks_padding", false), use.get<std::int64_t>("padding_at", -1)},
        rotation_(read_rotation(kind, config)),
        eps_(config.get<double>("rms_norm_eps", kind.eps)),
        norm_shift_(names.is_gguf() ? 0 : kind.norm_shift),
        cap_(config.get<double>("attn_logit_softcapping", kind.cap)),
        window_(config.get<std::int64_t>("sliding_window", kind.windows.size)),
        graph_(graph) {
    extra_.writes = use.get<bool>("writes_texts", false);
    extra_.all_states = use.get<bool>("all_states", false);
    extra_.full_every = config.get<std::int64_t>("sliding_window_pattern", kind.windows.full_every);
    if (names.is_hybrid()) extra_.delta = read_delta_sizes(file, names, 0, config);
    extra_.query_size = config.get<double>("query_pre_attn_scalar", kind.query_size);
  }

  void run() {
    const std::uint32_t items = extra_.writes ? 0 : HEDDLE_INPUT_BATCH;
    const Source ids = graph_.input("ids", phase() | items);
    if (padding_.is_masked) extra_.unpadded = graph_.input("unpadded", HEDDLE_INPUT_LOOP_INVARIANT);
    Source hidden = embed(ids);
    add_ropes(ids);
    std::vector<Source> states(1, hidden);
    if (deep_layers_ > 0) extra_.deep = optional_input("deep");
    if (extra_.writes) extra_.seen = optional_input("seen");
    if (extra_.writes && window_ > 0) extra_.near = optional_input("near");
    const int depth = wanted_.empty() ? s_.layers : *std::ranges::max_element(wanted_);
    for (int i = 0; i < depth; ++i) {
      hidden = add_layer(i, hidden);
      states.push_back(hidden);
    }
    if (extra_.writes) {
      add_logits(hidden);
    } else {
      graph_.output("last_hidden", choose(states));
    }
    graph_.setting("family", "language_model");
    graph_.setting("kind", std::string(kind_.name));
    graph_.setting("width", s_.width * states_told());
    graph_.setting("hidden_width", s_.width);
    graph_.setting("vocabulary", s_.vocabulary);
    graph_.setting("layers", std::int64_t(s_.layers));
  }

 private:
  struct Turns {
    Source cos, sin;
  };

  std::uint32_t phase() const {
    return extra_.writes ? HEDDLE_INPUT_PER_STEP : HEDDLE_INPUT_LOOP_INVARIANT;
  }
  // How many states of a token come out.
  std::int64_t states_told() const {
    if (extra_.all_states) return s_.layers + 1;
    return std::max<std::int64_t>(1, std::int64_t(wanted_.size()));
  }
  bool has_window(int layer) const {
    return window_ > 0 && (extra_.full_every < 1 || (layer + 1) % extra_.full_every != 0);
  }
  bool sees_pictures() const { return sections_[0] > 0; }
  Source optional_input(const char* name) {
    return graph_.input(name, phase() | HEDDLE_INPUT_OPTIONAL);
  }

  Source embed(const Source& ids) {
    using B = LanguageEmbed;
    Block block = graph_.add<B>("embed");
    block.link(B::ids, ids);
    if (sees_pictures() || kind_.takes_states)
      block.link(B::pictures, optional_input("pictures"))
          .link(B::is_text, optional_input("is_text"));
    block.set(B::scale, kind_.scales_embedding ? std::sqrt(double(s_.width)) : 1.0);
    blocks::Slots(file_, block, "embed")
        .fill(B::tokens, names_.tokens(), {s_.vocabulary, s_.width});
    return block[B::out];
  }

  void add_ropes(const Source& ids) {
    std::optional<Source> positions;
    if (extra_.writes)
      positions = graph_.input("positions", HEDDLE_INPUT_PER_STEP);
    else if (sees_pictures())
      positions = optional_input("positions");
    extra_.far_turns = add_rope("rope", ids, positions, rotation_.theta, rotation_.factor);
    extra_.near_turns = rotation_.near_theta > 0
                            ? add_rope("rope.near", ids, positions, rotation_.near_theta, 1)
                            : extra_.far_turns;
  }

  Turns add_rope(const char* path, const Source& ids, const std::optional<Source>& positions,
                 double theta, double factor) {
    using B = LanguageRope;
    Block block = graph_.add<B>(path);
    block.link(B::ids, ids).set(B::head, s_.turned).set(B::theta, theta).set(B::factor, factor);
    block.set(B::still_pairs, (s_.head - s_.turned) / 2);
    if (extra_.unpadded) block.link(B::unpadded, *extra_.unpadded).set(B::padding_at, padding_.at);
    // Without sections all of a head turns with the time.
    if (positions)
      block.link(B::positions, *positions)
          .set(B::section_0, sees_pictures() ? sections_[0] : s_.turned / 2)
          .set(B::section_1, sections_[1])
          .set(B::section_2, sections_[2])
          .set(B::interleaved, sees_pictures() && kind_.interleaved);
    return {block[B::cos], block[B::sin]};
  }

  bool has_attention(int layer) const { return (layer + 1) % names_.attention_every() == 0; }

  Source add_layer(int i, const Source& hidden) {
    using B = LanguageLayer;
    const std::string path = "layer." + std::to_string(i);
    if (!has_attention(i)) return add_delta_layer(i, path, hidden);
    Block block = extra_.writes ? graph_.add<LanguageKeptLayer>(path) : graph_.add<B>(path);
    const Turns& turns = has_window(i) ? extra_.near_turns : extra_.far_turns;
    block.link(B::hidden, hidden).link(B::cos, turns.cos).link(B::sin, turns.sin);
    if (extra_.writes) keep_states(i, block);
    if (extra_.unpadded) block.link(B::unpadded, *extra_.unpadded);
    if (i < deep_layers_) block.link(B::deep, *extra_.deep).set(B::deep_row, std::int64_t(i));
    block.set(B::heads, s_.heads).set(B::kv_heads, s_.kv_heads).set(B::eps, eps_);
    block.set(B::window, has_window(i) ? window_ : 0).set(B::norm_shift, norm_shift_);
    block.set(B::query_size, extra_.query_size);
    block.set(B::activation, std::int64_t(kind_.activation)).set(B::cap, cap_);
    block.set(B::neighbours, pairs_are_neighbours(file_, names_));
    block.set(B::gates_results, kind_.gates_results);
    if (s_.turned < s_.head) block.set(B::turned, s_.turned);
    blocks::Slots slots(file_, block, path);
    fill_attention(slots, i);
    fill_mlp(slots, i);
    return block[B::out];
  }

  // Norms and the MLP, which layers of all kinds have.
  void fill_mlp(blocks::Slots& slots, int i) {
    using B = LanguageLayer;
    const auto weight = [&](const char* module) { return names_.in_layer(i, module) + ".weight"; };
    const std::int64_t inner =
        file_.has(weight("gate")) ? file_.size(weight("gate"), 0) : 4 * s_.width;
    slots.fill(B::up, {{weight("gate")}, {weight("up")}}, {2 * inner, s_.width});
    slots.fill(B::down, weight("down"), {s_.width, inner});
    slots.fill(B::norm1, weight("norm1"), {s_.width});
    slots.fill(B::norm2, weight("norm2"), {s_.width});
    if (names_.has("after2")) {
      slots.fill(B::after1, weight("after1"), {s_.width});
      slots.fill(B::after2, weight("after2"), {s_.width});
    }
  }

  Source add_delta_layer(int i, const std::string& path, const Source& hidden) {
    using B = LanguageDeltaLayer;
    using L = LanguageLayer;
    const DeltaSizes& d = extra_.delta;
    Block block = extra_.writes ? graph_.add<LanguageKeptDeltaLayer>(path) : graph_.add<B>(path);
    block.link(L::hidden, hidden);
    if (extra_.writes) keep_memory(i, block);
    block.set(B::pairs, d.pairs).set(B::depth, d.depth).set(B::value_heads, d.heads);
    block.set(L::activation, std::int64_t(kind_.activation)).set(L::eps, eps_);
    block.set(L::norm_shift, norm_shift_);
    blocks::Slots slots(file_, block, path);
    const auto weight = [&](const char* module) { return names_.in_layer(i, module) + ".weight"; };
    slots.fill(B::channels, weight("delta_qkv"), {d.channels(), s_.width});
    slots.fill(B::gate, weight("delta_z"), {d.values(), s_.width});
    slots.fill(B::rates, {{weight("delta_a")}, {weight("delta_b")}}, {2 * d.heads, s_.width});
    slots.fill(B::conv, weight("delta_conv"), {d.channels(), 1, d.taps});
    slots.fill(B::log_rate, names_.in_delta(i, "A_log"), {d.heads});
    slots.fill(B::rate_shift, names_.in_delta(i, "dt_bias"), {d.heads});
    slots.fill(B::norm, weight("delta_norm"), {d.width});
    slots.fill(B::proj, weight("delta_out"), {s_.width, d.values()});
    fill_mlp(slots, i);
    return block[L::out];
  }

  // What a layer's delta rule remembers.
  void keep_memory(int i, Block& block) {
    using B = LanguageKeptDeltaLayer;
    const std::string tail = "tail." + std::to_string(i), state = "state." + std::to_string(i);
    block.link(B::tail, optional_input(tail.c_str()));
    block.link(B::state, optional_input(state.c_str()));
    graph_.output(tail.c_str(), block[B::tail_out]);
    graph_.output(state.c_str(), block[B::state_out]);
  }

  // Keys and values of the layer's tokens, and of those before.
  void keep_states(int i, Block& block) {
    using B = LanguageKeptLayer;
    const std::string name = "kept." + std::to_string(i);
    const bool is_near = extra_.near && has_window(i);
    block.link(B::kept, optional_input(name.c_str()));
    block.link(B::seen, is_near ? *extra_.near : *extra_.seen);
    graph_.output(name.c_str(), block[B::kept_out]);
  }

  void add_logits(const Source& hidden) {
    using B = LanguageLogits;
    Block block = graph_.add<B>("logits");
    block.link(B::hidden, hidden).set(B::eps, eps_).set(B::norm_shift, norm_shift_);
    blocks::Slots slots(file_, block, "logits");
    slots.fill(B::norm, names_.final_norm(), {s_.width});
    slots.fill(B::matrix, names_.logits(), {s_.vocabulary, s_.width});
    graph_.output("logits", block[B::out]);
    graph_.setting("kept_width", 2 * s_.kv_heads * s_.head);
    graph_.setting("window", window_);
    graph_.setting("logit_cap", kind_.logit_cap);
    graph_.setting("attention_every", std::int64_t(names_.attention_every()));
    if (!names_.is_hybrid()) return;
    const DeltaSizes& d = extra_.delta;
    graph_.setting("tail_tokens", d.taps - 1);
    graph_.setting("tail_width", d.channels());
    graph_.setting("state_heads", d.heads);
    graph_.setting("state_depth", d.depth);
    graph_.setting("state_width", d.width);
  }

  void fill_attention(blocks::Slots& slots, int i) {
    using B = LanguageLayer;
    const std::int64_t results = s_.heads * s_.head, keys = s_.kv_heads * s_.head,
                       queries = kind_.gates_results ? 2 * results : results;
    const std::string q = names_.in_layer(i, "q"), k = names_.in_layer(i, "k"),
                      v = names_.in_layer(i, "v");
    const bool apart = file_.has(v + ".weight") && file_.has(q + ".weight") &&
                       file_.info(v + ".weight").dtype != file_.info(q + ".weight").dtype;
    const bool biased = file_.has(names_.in_layer(names_.attention_layer(), "k") + ".bias");
    const auto fill = [&](const Weight& slot, const char* kind, bool with_v, Shape below) {
      for (const std::string* module : {&q, &k, &v})
        require_rows(*module + kind, module == &q ? queries : keys);
      std::vector<Part> parts{{q + kind, 0, queries}, {k + kind, 0, keys}};
      if (with_v) parts.push_back({v + kind, 0, keys});
      below.insert(below.begin(), queries + keys + (with_v ? keys : 0));
      slots.fill(slot, parts, below);
    };
    fill(B::qkv, ".weight", !apart, {s_.width});
    if (apart) slots.fill(B::v, v + ".weight", {keys, s_.width});
    if (biased) fill(B::qkv_bias, ".bias", !apart, {});
    if (biased && apart) slots.fill(B::v_bias, v + ".bias", {keys});
    slots.fill(B::proj, names_.in_layer(i, "o") + ".weight", {s_.width, results});
    if (!names_.has("q_norm")) return;
    slots.fill(B::q_norm, names_.in_layer(i, "q_norm") + ".weight", {s_.head});
    slots.fill(B::k_norm, names_.in_layer(i, "k_norm") + ".weight", {s_.head});
  }

  // Parts that are joined may have more rows than are taken of them: here none has.
  void require_rows(const std::string& tensor, std::int64_t rows) const {
    if (!file_.has(tensor) || file_.size(tensor, 0) == rows) return;
    throw Error(HEDDLE_INVALID_ARGUMENT, file_.path() + ": tensor '" + tensor + "' has " +
                                             std::to_string(file_.size(tensor, 0)) +
                                             " rows, expected " + std::to_string(rows) +
                                             ". The file is damaged or of another model.");
  }

  Source finish(const Source& hidden) {
    using B = LanguageFinish;
    Block block = graph_.add<B>("finish");
    block.link(B::hidden, hidden).set(B::eps, eps_).set(B::norm_shift, norm_shift_);
    blocks::Slots(file_, block, "finish").fill(B::norm, names_.final_norm(), {s_.width});
    return block[B::out];
  }

  // What is told of the states after 0, 1, 2 ... layers.
  Source choose(std::vector<Source>& states) {
    if (!wanted_.empty()) {
      std::vector<Source> chosen;
      for (const int number : wanted_) chosen.push_back(states[std::size_t(number)]);
      return join_states(graph_, chosen, "join");
    }
    const bool is_cut = kind_.may_be_cut && !file_.has(names_.final_norm());
    if (!is_cut) states.back() = finish(states.back());
    return extra_.all_states ? join_states(graph_, states, "join") : states.back();
  }

  const Checkpoint& file_;
  const LanguageNames& names_;
  const LanguageKind& kind_;
  const LanguageSizes s_;
  const std::array<std::int64_t, 3> sections_;
  const int deep_layers_;  // behind which what pictures show is added
  const std::vector<int> wanted_;
  const struct {
    bool is_masked;
    std::int64_t at;  // its position; negative: each has its own
  } padding_;
  const LanguageRotation rotation_;
  const double eps_, norm_shift_, cap_;
  const std::int64_t window_;
  Blocks& graph_;
  // What some models have, and what all layers are linked to.
  struct {
    std::optional<Source> unpadded, deep, seen, near;
    bool writes = false;      // texts, token by token
    bool all_states = false;  // of every layer are told
    std::int64_t full_every = 0;
    double query_size = 0;
    DeltaSizes delta = {};        // of hybrid models
    Turns far_turns, near_turns;  // of layers without and with a window
  } extra_;
};

}  // namespace

int LanguageModel::match(const Checkpoint& file, const Value&) {
  return LanguageNames::find(file) || LanguageNames::is_hybrid_gguf(file) ? 100 : 0;
}

void LanguageModel::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<LanguageNames> names = LanguageNames::find(file);
  if (!names) LanguageNames::refuse(file);
  const Value part = config.field("text_config"),
              &text = part.is(HEDDLE_KIND_RECORD) ? part : config;
  if (names->is_gemma4()) {
    build_gemma4(file, *names, text, config, graph);
    return;
  }
  const LanguageKind& kind = language_kind(file, *names, text);
  if ((kind.windows.size > 0 || names->is_hybrid()) && config.get<bool>("masks_padding", false))
    throw Error(HEDDLE_UNSUPPORTED, file.path() + ": a " + std::string(kind.name) +
                                        " model sees through windows or by a delta rule and cannot "
                                        "mask padding");
  LanguageBuilder(file, *names, kind, text, config, graph).run();
}

}  // namespace heddle::encoders
