// heddle/model.hpp - declare a model family: which checkpoints are mine, and what graph of blocks
// they make.
//
//   struct Tiny {
//     static constexpr heddle::Family family{"tiny", "diffusion_model", 1, "Multiplies."};
//     static int match(const heddle::Checkpoint& file, const heddle::Value& config);
//     static void build(const heddle::Checkpoint& file, const heddle::Value& config,
//                       heddle::Blocks& graph);
//   };
#pragma once

#include <deque>

#include "node.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

struct Family {
  const char* name;
  const char* role;
  std::uint32_t version;
  const char* doc = "";
};

// Names, shapes and types of a checkpoint's tensors; never their elements. Shared, immutable.
class Checkpoint {
 public:
  static Checkpoint open(const std::string& path) {
    heddle_checkpoint* raw = nullptr;
    check(table().open(services.host, path.c_str(), &raw));
    return Checkpoint(raw);
  }
  static Checkpoint adopt(heddle_checkpoint* raw) { return Checkpoint(raw); }
  static Checkpoint share(const heddle_checkpoint* raw) {
    auto* mine = const_cast<heddle_checkpoint*>(raw);
    table().retain(mine);
    return Checkpoint(mine);
  }
  Checkpoint(const Checkpoint& other) : raw_(other.raw_) { table().retain(raw_); }
  Checkpoint& operator=(const Checkpoint&) = delete;
  ~Checkpoint() { table().release(raw_); }

  // The tensors under a prefix, named without it.
  Checkpoint sub(const std::string& prefix) const {
    heddle_checkpoint* out = nullptr;
    check(table().sub(raw_, prefix.c_str(), &out));
    return Checkpoint(out);
  }
  // The same tensors, whose matrices are kept as an f8 type where they are multiplied.
  Checkpoint cast(heddle_dtype f8) const {
    heddle_checkpoint* out = nullptr;
    check(table().cast(raw_, f8, &out));
    return Checkpoint(out);
  }
  // The same in f8_e4m3, multiplied in 8 bits by devices that can.
  Checkpoint scale_to_fp8() const {
    heddle_checkpoint* out = nullptr;
    check(table().scale_to_fp8(raw_, &out));
    return Checkpoint(out);
  }
  std::uint32_t size() const { return table().count(raw_); }
  std::string name(std::uint32_t i) const { return table().name(raw_, i); }
  std::string path() const { return table().path(raw_); }
  bool has(const std::string& name) const { return table().find(raw_, name.c_str()) != nullptr; }
  const heddle_tensor_info& info(const std::string& name) const {
    const heddle_tensor_info* info = table().find(raw_, name.c_str());
    if (info == nullptr)
      throw Error(HEDDLE_NOT_FOUND, path() + ": there is no tensor '" + name + "'");
    return *info;
  }
  std::int64_t size(const std::string& name, std::uint32_t axis) const {
    const heddle_tensor_info& i = info(name);
    if (axis >= i.rank)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  path() + ": tensor '" + name + "' has no axis " + std::to_string(axis));
    return i.shape[axis];
  }
  std::optional<std::string> meta(const char* key) const {
    const char* text = table().meta(raw_, key);
    return text == nullptr ? std::nullopt : std::optional<std::string>(text);
  }
  // The number in a tensor of one element.
  double number(const std::string& name) const {
    double out = 0;
    check(table().numbers(raw_, name.c_str(), 1, &out));
    return out;
  }
  // How many of "<prefix>0<suffix>", "<prefix>1<suffix>", ... there are: the depth of the model.
  int count(const std::string& prefix, const std::string& suffix) const {
    int n = 0;
    while (has(prefix + std::to_string(n) + suffix)) ++n;
    return n;
  }
  heddle_checkpoint* raw() const { return raw_; }

 private:
  explicit Checkpoint(heddle_checkpoint* raw) : raw_(raw) {}
  static const heddle_checkpoint_service& table() { return service<heddle_checkpoint_service>(); }
  heddle_checkpoint* raw_;
};

// The end of a link: one output of one node, or one input of the model.
struct Source {
  heddle_node_id node = HEDDLE_GRAPH_ITSELF;
  const char* port = nullptr;  // lives as long as the port or as the string given to input()
};

// Rows of a checkpoint tensor; see heddle_part.
struct Part {
  std::string tensor;
  std::int64_t begin = 0, end = HEDDLE_ALL_ROWS;
  std::int64_t frame = 0;
};

// Parts of a checkpoint as the ABI takes them. Borrows their names.
class RawParts {
 public:
  explicit RawParts(const std::vector<Part>& parts) {
    for (const Part& part : parts)
      raw_.push_back({sizeof(heddle_part), part.tensor.c_str(), part.begin, part.end, part.frame});
    for (const heddle_part& part : raw_) pointers_.push_back(&part);
  }
  RawParts(const RawParts&) = delete;
  std::uint32_t size() const { return std::uint32_t(pointers_.size()); }
  const heddle_part* const* data() const { return pointers_.data(); }

 private:
  std::vector<heddle_part> raw_;
  std::vector<const heddle_part*> pointers_;
};

// A block that was added: links and fills its ports.
class Blocks;
class Block {
 public:
  Block(Blocks& graph, heddle_node_id id) : graph_(graph), id_(id) {}
  template <class T>
  Block& link(const Input<T>& input, const Source& from);
  template <class T, class U>
  Block& set(const Input<T>& input, U&& literal);
  Block& weight(const Weight& slot, const std::vector<Part>& parts);
  Block& weight(const Weight& slot, const std::string& tensor) {
    return weight(slot, std::vector<Part>{{tensor}});
  }
  // Devices may divide a filled slot along an axis, in whole units of each segment (length, unit).
  Block& shard(const Weight& slot, int axis,
               const std::vector<std::pair<std::int64_t, std::int64_t>>& segments);
  template <class T>
  Source operator[](const Output<T>& output) const {
    return {id_, output.port.name};
  }

 private:
  Blocks& graph_;
  heddle_node_id id_;
};

class Blocks {
 public:
  Blocks(heddle_graph* raw) : raw_(raw) {}
  // name: a string literal, or one that outlives the build.
  Source input(const char* name, std::uint32_t flags) {
    check(service<heddle_graph_service>().input(raw_, name, flags));
    return {HEDDLE_GRAPH_ITSELF, name};
  }
  void output(const char* name, const Source& from) {
    check(service<heddle_graph_service>().output(raw_, from.node, from.port, name));
  }
  template <class N>
  Block add(const std::string& path) {
    heddle_node_id id = 0;
    check(service<heddle_graph_service>().add(raw_, N::info.type, path.c_str(), &id));
    return Block(*this, id);
  }
  // What readers of the MODEL want to know: a record's field, such as the latent's channels.
  template <class T>
  void setting(const char* key, T&& value) {
    check(service<heddle_graph_service>().setting(raw_, key,
                                                  value_of(std::forward<T>(value)).release()));
  }

 private:
  friend class Block;
  heddle_graph* raw_;
};

template <class T>
Block& Block::link(const Input<T>& input, const Source& from) {
  check(service<heddle_graph_service>().link(graph_.raw_, from.node, from.port, id_,
                                             input.port.name));
  return *this;
}
template <class T, class U>
Block& Block::set(const Input<T>& input, U&& literal) {
  check(service<heddle_graph_service>().set(graph_.raw_, id_, input.port.name,
                                            Wire<T>::write(T(std::forward<U>(literal)))));
  return *this;
}
inline Block& Block::shard(const Weight& slot, int axis,
                           const std::vector<std::pair<std::int64_t, std::int64_t>>& segments) {
  std::vector<heddle_segment> raw;
  for (const auto& [length, unit] : segments) raw.push_back({sizeof(heddle_segment), length, unit});
  std::vector<const heddle_segment*> pointers;
  for (const heddle_segment& segment : raw) pointers.push_back(&segment);
  check(service<heddle_graph_service>().shard(graph_.raw_, id_, slot.slot.name, axis,
                                              std::uint32_t(raw.size()), pointers.data()));
  return *this;
}
inline Block& Block::weight(const Weight& slot, const std::vector<Part>& parts) {
  const RawParts raw(parts);
  check(service<heddle_graph_service>().weight(graph_.raw_, id_, slot.slot.name, raw.size(),
                                               raw.data()));
  return *this;
}

template <class M>
struct ModelGlue {
  static std::int32_t match(const heddle_host*, const heddle_checkpoint* raw,
                            const heddle_value* config) {
    std::int32_t score = 0;
    heddle_status* status =
        guard([&] { score = M::match(Checkpoint::share(raw), Value::share(config)); });
    services.host->status_free(status);
    return status == nullptr ? score : 0;
  }
  static heddle_status* build(const heddle_host*, const heddle_checkpoint* raw,
                              const heddle_value* config, heddle_graph* graph) {
    return guard([&] {
      Blocks blocks(graph);
      M::build(Checkpoint::share(raw), Value::share(config), blocks);
    });
  }
  static constexpr heddle_model_desc desc{sizeof(heddle_model_desc),
                                          M::family.version,
                                          M::family.name,
                                          M::family.role,
                                          &match,
                                          &build,
                                          M::family.doc};
};

template <class T>
concept IsModel = requires {
  T::family;
};

template <IsModel T>
struct Provide<T> {
  static constexpr int tag = 2;
  static constexpr std::string_view kind = HEDDLE_MODELS;
  static constexpr const void* desc = &ModelGlue<T>::desc;
};

// ---- models inside nodes  ----

inline Value build_model(Context& ctx, const char* role, const Checkpoint& file,
                         const Value& config) {
  heddle_value* out = nullptr;
  check(service<heddle_model_service>().build(ctx.raw(), role, file.raw(), config.raw(), &out));
  return Value::adopt(out);
}
inline Value model_settings(const Value& model) {
  const heddle_value* record = nullptr;
  check(service<heddle_model_service>().settings(model.raw(), &record));
  return Value::share(record);
}
inline Value with_settings(const Value& model, const Value& record) {
  heddle_value* out = nullptr;
  check(service<heddle_model_service>().with_settings(model.raw(), record.raw(), &out));
  return Value::adopt(out);
}
inline bool model_takes(const Value& model, std::string_view input) {
  const auto& models = service<heddle_model_service>();
  for (std::uint32_t i = 0; i < models.input_count(model.raw()); ++i)
    if (std::uint32_t flags = 0; input == models.input(model.raw(), i, &flags)) return true;
  return false;
}

inline std::string model_family(const Value& model) {
  const char* name = nullptr;
  check(service<heddle_model_service>().family(model.raw(), &name));
  return name;
}
inline Checkpoint model_checkpoint(const Value& model) {
  heddle_checkpoint* out = nullptr;
  check(service<heddle_model_service>().checkpoint(model.raw(), &out));
  return Checkpoint::adopt(out);
}

// Rows of the model's tensors become keep * rows + scale * up * down; see heddle_patch. `down`
// empty: up is the whole difference; `up` empty, too: nothing is added.
struct Patch {
  std::string up, down;
  double scale = 1;
  std::vector<Part> rows;
  double keep = 1;
};

// Patches as the ABI takes them. Borrows their names.
class RawPatches {
 public:
  explicit RawPatches(const std::vector<Patch>& patches) {
    const auto name = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
    for (const Patch& patch : patches) {
      const RawParts& parts = rows_.emplace_back(patch.rows);
      raw_.push_back({sizeof(heddle_patch), parts.size(), name(patch.up), name(patch.down),
                      patch.scale, parts.data(), patch.keep});
    }
    for (const heddle_patch& patch : raw_) pointers_.push_back(&patch);
  }
  RawPatches(const RawPatches&) = delete;
  std::uint32_t size() const { return std::uint32_t(pointers_.size()); }
  const heddle_patch* const* data() const { return pointers_.data(); }

 private:
  std::deque<RawParts> rows_;  // they stay where they are
  std::vector<heddle_patch> raw_;
  std::vector<const heddle_patch*> pointers_;
};

inline Value with_patches(const Value& model, const Checkpoint& file,
                          const std::vector<Patch>& patches) {
  const RawPatches raw(patches);
  heddle_value* out = nullptr;
  check(service<heddle_model_service>().with_patches(model.raw(), file.raw(), raw.size(),
                                                     raw.data(), &out));
  return Value::adopt(out);
}
// The same with tensors of another model as `up`, as its own patches make them.
inline Value merged_with(const Value& model, const Value& other,
                         const std::vector<Patch>& patches) {
  const RawPatches raw(patches);
  heddle_value* out = nullptr;
  check(service<heddle_model_service>().merge(model.raw(), other.raw(), raw.size(), raw.data(),
                                              &out));
  return Value::adopt(out);
}

// The model of another configuration over the same weights, with their patches.
inline Value rebuilt_model(Context& ctx, const Value& model, const Value& config) {
  heddle_value* out = nullptr;
  check(service<heddle_model_service>().rebuild(ctx.raw(), model.raw(), config.raw(), &out));
  return Value::adopt(out);
}

// The model, to run on these devices where such are there.
inline Value preferring(const Value& model, const std::string& devices) {
  heddle_value* out = nullptr;
  check(service<heddle_model_service>().prefer(model.raw(), devices.c_str(), &out));
  return Value::adopt(out);
}

// The model without blocks and groups of blocks, by their paths; see heddle_model_service.
inline Value without_blocks(const Value& model, const std::vector<std::string>& paths) {
  std::vector<const char*> raw;
  for (const std::string& path : paths) raw.push_back(path.c_str());
  heddle_value* out = nullptr;
  check(service<heddle_model_service>().without_blocks(model.raw(), std::uint32_t(raw.size()),
                                                       raw.data(), &out));
  return Value::adopt(out);
}

}  // namespace heddle
