#include "language_model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <heddle/checked.hpp>

#include "gemma4_model.h"
#include "language_kinds.h"
#include "language_states.h"
#include "language_writing_blocks.h"
#include "plugins/blocks/slots.h"

namespace heddle::encoders {
namespace {

struct LanguageSizes {
  std::int64_t vocabulary, width, head, heads, kv_heads;
  int layers;
};

// A gguf file of llama's architecture has its rotated pairs beside each other; of Gemma's norms
// gguf files hold what is multiplied by.
bool pairs_are_neighbours(const Checkpoint& file, const LanguageNames& names) {
  return names.is_gguf() && file.meta("general.architecture").value_or("") == "llama";
}

LanguageSizes read_sizes(const Checkpoint& file, const LanguageNames& names,
                         const LanguageKind& kind, const Value& config) {
  LanguageSizes s{
      file.size(names.tokens(), 0), file.size(names.tokens(), 1), kind.head, 0, 0, names.layers()};
  if (s.head == 0) s.head = file.size(names.in_layer(0, "q_norm") + ".weight", 0);
  s.head = config.get<std::int64_t>("head_dim", s.head);
  const std::int64_t queries = file.size(names.in_layer(0, "q") + ".weight", 0),
                     keys = file.size(names.in_layer(0, "k") + ".weight", 0);
  const bool divides = s.head > 0 && s.head % 2 == 0 && queries % s.head == 0 &&
                       keys % s.head == 0 && keys > 0 && queries % keys == 0;
  if (!divides)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": queries of width " + std::to_string(queries) +
                    " and keys of width " + std::to_string(keys) + " do not divide into heads of " +
                    std::to_string(s.head) + ". Give the config.json that belongs to this file.");
  s.heads = queries / s.head, s.kv_heads = keys / s.head;
  return s;
}

// Pairs of a head by axis, where the model sees pictures; the kind's, or the config's
// mrope_section.
std::array<std::int64_t, 3> read_sections(const Checkpoint& file, const LanguageKind& kind,
                                          const Value& config, std::int64_t head) {
  std::array<std::int64_t, 3> found = kind.sections;
  if (found[0] == 0) return found;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Value listed = config.field(key).field("mrope_section");
    if (listed.count() != found.size()) continue;
    for (std::uint32_t i = 0; i < found.size(); ++i) found[i] = listed.item(i).as<std::int64_t>();
  }
  const bool fits = std::ranges::min(found) >= 0 && found[0] + found[1] + found[2] == head / 2;
  // A text alone needs none of this, so that a file without them can still encode it.
  if (!fits && found == kind.sections) return {};
  if (!fits)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": mrope_section lists " + std::to_string(found[0]) + ", " +
                    std::to_string(found[1]) + " and " + std::to_string(found[2]) +
                    " pairs, a head has " + std::to_string(head / 2) +
                    ". Give the config.json that belongs to this file.");
  return found;
}

// The vision tower beside the model has a merger for each of them.
int count_deep_layers(const Checkpoint& file) {
  const auto prefix = blocks::prefix_before(file, "deepstack_merger_list.0.norm.weight");
  return prefix ? blocks::layer_count(file, *prefix + "deepstack_merger_list.") : 0;
}

// How positions turn queries and keys: everywhere, or in the layers without a window.
struct LanguageRotation {
  double theta, factor;
  double near_theta;  // in layers with a window; 0: as the others
};

// transformers' names of three generations.
LanguageRotation read_rotation(const LanguageKind& kind, const Value& config) {
  LanguageRotation r{config.get<double>("rope_theta", kind.theta), 1, 0};
  if (kind.windows.near_theta == 0) return r;
  const bool is_told = config.has("rope_scaling");
  r.factor =
      config.field("rope_scaling").get<double>("factor", is_told ? 1 : kind.windows.rope_factor);
  r.near_theta = config.get<double>("rope_local_base_freq", kind.windows.near_theta);
  const Value both = config.field("rope_parameters"), full = both.field("full_attention");
  if (!full.is(HEDDLE_KIND_RECORD)) return r;
  return {full.get<double>("rope_theta", r.theta), full.get<double>("factor", 1),
          both.field("sliding_attention").get<double>("rope_theta", r.near_theta)};
}

// Builds the graph of one file.
class LanguageBuilder {
 public:
  LanguageBuilder(const Checkpoint& file, const LanguageNames& names, const LanguageKind& kind,
                  const Value& config, const Value& use, Blocks& graph)
      : file_(file),
        names_(names),
        kind_(kind),
        s_(read_sizes(file, names, kind, config)),
        sections_(read_sections(file, kind, config, s_.head)),
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
    if (sees_pictures())
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
    block.link(B::ids, ids).set(B::head, s_.head).set(B::theta, theta).set(B::factor, factor);
    if (extra_.unpadded) block.link(B::unpadded, *extra_.unpadded).set(B::padding_at, padding_.at);
    // Without sections all of a head turns with the time.
    if (positions)
      block.link(B::positions, *positions)
          .set(B::section_0, sees_pictures() ? sections_[0] : s_.head / 2)
          .set(B::section_1, sections_[1])
          .set(B::section_2, sections_[2])
          .set(B::interleaved, sees_pictures() && kind_.interleaved);
    return {block[B::cos], block[B::sin]};
  }

  Source add_layer(int i, const Source& hidden) {
    using B = LanguageLayer;
    const std::string path = "layer." + std::to_string(i);
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
    blocks::Slots slots(file_, block, path);
    fill_attention(slots, i);
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
    return block[B::out];
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
  }

  void fill_attention(blocks::Slots& slots, int i) {
    using B = LanguageLayer;
    const std::int64_t queries = s_.heads * s_.head, keys = s_.kv_heads * s_.head;
    const std::string q = names_.in_layer(i, "q"), k = names_.in_layer(i, "k"),
                      v = names_.in_layer(i, "v");
    const bool apart = file_.has(v + ".weight") && file_.has(q + ".weight") &&
                       file_.info(v + ".weight").dtype != file_.info(q + ".weight").dtype;
    const bool biased = file_.has(names_.in_layer(0, "k") + ".bias");
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
    slots.fill(B::proj, names_.in_layer(i, "o") + ".weight", {s_.width, queries});
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
    Turns far_turns, near_turns;  // of layers without and with a window
  } extra_;
};

}  // namespace

int LanguageModel::match(const Checkpoint& file, const Value&) {
  return LanguageNames::find(file) || LanguageNames::is_qwen35(file) ? 100 : 0;
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
  if (kind.windows.size > 0 && config.get<bool>("masks_padding", false))
    throw Error(HEDDLE_UNSUPPORTED, file.path() + ": a " + std::string(kind.name) +
                                        " model sees through windows and cannot mask padding");
  LanguageBuilder(file, *names, kind, text, config, graph).run();
}

}  // namespace heddle::encoders
