// heddle/node.hpp - write a node in C++20. Header-only; needs nothing but the ABI headers.
//
//   struct Hello {
//     static constexpr heddle::Info info{"demo.hello", 1, "Hello", "demo"};
//     static constexpr heddle::Input<std::string> name{"name", {.text = "world"}};
//     static constexpr heddle::Output<std::string> greeting{"greeting"};
//     static constexpr auto ports = heddle::ports(name, greeting);
//     void execute(heddle::Context& ctx) { ctx[greeting] = "Hello, " + ctx[name] + "!"; }
//   };
//   HEDDLE_PLUGIN("org.example.hello", "1.0.0", Hello)
//
// A node without members needs no state: execute may be static. A block (Info flag
// HEDDLE_NODE_BLOCK) has a static execute, because nothing keeps an instance. Optional members:
//   void need(Context&)                      asks for lazy inputs with ctx.want(input)
//   std::uint64_t fingerprint(Context&)      outside state that results depend on
//   static void infer(Infer&)                shapes before running
//   static Refusal validate(Validation&)     what is wrong with literals, before anything runs;
//       judged: the inputs whose ranges and choices are then its own matter, or else all;
//       judges_types: true if it looks at the types of links, too
// Throw heddle::Error (or anything) from a node: it becomes a status at the border.
#pragma once

#include "infer.hpp"
#include "validation.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

// An op of the catalogue, looked up once per plugin.
class Op {
 public:
  explicit Op(const char* name) : handle_(service<heddle_ops_service>().find(name)) {
    if (handle_ == HEDDLE_NO_OP)
      throw Error(HEDDLE_UNSUPPORTED, std::string("no device offers the op '") + name + "'");
  }
  heddle_op_id handle() const { return handle_; }

 private:
  heddle_op_id handle_;
};

// One call of one node.
class Context {
 public:
  Context(heddle_ctx* raw, const heddle_node_desc& desc) : raw_(raw), desc_(desc) {}

  template <class T>
  T operator[](const Input<T>& input) const {
    const heddle_value* v = service<heddle_io_service>().input(raw_, index(input));
    if (v == nullptr)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  std::string("input '") + input.port.name + "' is absent");
    return Wire<T>::read(v);
  }
  template <class T>
  bool has(const Input<T>& input) const {
    return service<heddle_io_service>().input(raw_, index(input)) != nullptr;
  }

  template <class T>
  struct Slot {
    Context& ctx;
    std::uint32_t index;
    template <class U>
    void operator=(U&& value) const {
      set(Wire<T>::write(std::forward<U>(value)));
    }
    void block(std::string_view message = {}) const { set(blocker(message).release()); }
    void set(heddle_value* value) const {
      check(service<heddle_io_service>().set_output(ctx.raw_, index, value));
    }
  };
  template <class T>
  Slot<T> operator[](const Output<T>& output) {
    return {*this, port_position(&output.port, desc_.outputs, desc_.output_count)};
  }
  // Blocks only. Empty when an optional slot is not given.
  Tensor operator[](const Weight& weight) const {
    return Tensor::share(service<heddle_block_service>().weight(
        raw_, port_position(&weight.slot, desc_.weights, desc_.weight_count)));
  }
  template <class T>
  std::uint32_t index(const Input<T>& input) const {
    return port_position(&input.port, desc_.inputs, desc_.input_count);
  }
  // All outputs are blocked: whoever would read one is not called.
  void block(std::string_view message = {}) {
    for (std::uint32_t o = 0; o < desc_.output_count; ++o) Slot<Value>{*this, o}.block(message);
  }
  template <class T>
  void want(const Input<T>& input) {
    check(service<heddle_io_service>().want(raw_, input.port.name));
  }
  bool cancelled() const { return service<heddle_call_service>().cancelled(raw_) != 0; }
  void progress(double fraction, const char* note = nullptr) {
    service<heddle_report_service>().progress(raw_, fraction, note);
  }
  void warn(const std::string& message) {
    service<heddle_report_service>().warn(raw_, message.c_str());
  }
  // As heddle_cache_service.
  void do_not_cache() { service<heddle_cache_service>().do_not_cache(raw_); }
  // Pictures of work under way: made only when somebody looks. pixels: height x width x 3.
  bool wants_preview() const { return preview_method() != HEDDLE_PREVIEW_NONE; }
  std::int32_t preview_method() const {
    const auto* previews = optional_service<heddle_preview_service>();
    return previews == nullptr ? HEDDLE_PREVIEW_NONE : previews->wanted(raw_);
  }
  void preview(const heddle_preview& picture) {
    if (const auto* previews = optional_service<heddle_preview_service>())
      previews->show(raw_, &picture);
  }
  std::string node() const { return service<heddle_call_service>().node(raw_); }
  heddle_dtype compute() const { return service<heddle_call_service>().compute(raw_); }

  // New tensors: on the device of the call, or in host memory. Contents undefined.
  Tensor make(const Shape& shape, heddle_dtype dtype) {
    const heddle_tensor_info info = tensor_info(dtype, shape);
    heddle_tensor* t = nullptr;
    check(services.tensor->make(raw_, &info, &t));
    return Tensor::adopt(t);
  }
  Tensor make(const Shape& shape) { return make(shape, compute()); }
  Tensor make_like(const Tensor& t) { return make(t.shape(), t.dtype()); }
  Tensor make_host(const Shape& shape, heddle_dtype dtype) {
    const heddle_tensor_info info = tensor_info(dtype, shape);
    heddle_tensor* t = nullptr;
    check(services.tensor->make_host(raw_, &info, &t));
    return Tensor::adopt(t);
  }
  Tensor upload(const Shape& shape, heddle_dtype dtype, const void* src) {
    const heddle_tensor_info info = tensor_info(dtype, shape);
    heddle_tensor* t = nullptr;
    check(services.tensor->upload(raw_, &info, src, &t));
    return Tensor::adopt(t);
  }
  // Row-major elements in host memory. Waits.
  template <class T>
  std::vector<T> read(const Tensor& t) {
    std::vector<T> out(std::size_t(t.count()));
    check(services.tensor->read(raw_, t.raw(), out.data(), out.size() * sizeof(T)));
    return out;
  }

  template <class Attrs>
  void op(const Op& op, std::initializer_list<heddle_tensor*> in,
          std::initializer_list<heddle_tensor*> out, const Attrs& attrs) {
    check(service<heddle_ops_service>().enqueue(raw_, op.handle(), std::uint32_t(in.size()),
                                                in.begin(), std::uint32_t(out.size()), out.begin(),
                                                &attrs, sizeof attrs));
  }
  void op(const Op& op, std::initializer_list<heddle_tensor*> in,
          std::initializer_list<heddle_tensor*> out) {
    check(service<heddle_ops_service>().enqueue(raw_, op.handle(), std::uint32_t(in.size()),
                                                in.begin(), std::uint32_t(out.size()), out.begin(),
                                                nullptr, 0));
  }
  heddle_ctx* raw() const { return raw_; }

  // Blocks: the group of devices that this trace is a rank of, and its shard of an input's tokens.
  heddle_group group() const {
    heddle_group group{sizeof(heddle_group), HEDDLE_GROUP_NONE, 0, 1};
    service<heddle_block_service>().group(raw_, &group);
    return group;
  }
  template <class T>
  heddle_shard shard(const Input<T>& input) const {
    heddle_shard shard{sizeof(heddle_shard), 0, 0, 0};
    check(service<heddle_block_service>().shard(raw_, index(input), &shard));
    return shard;
  }

 private:
  heddle_ctx* raw_;
  const heddle_node_desc& desc_;
};

// ---- the border  ----

template <class N>
struct Glue {
  static const heddle_node_desc desc;
  static constexpr bool is_block = (N::info.flags & HEDDLE_NODE_BLOCK) != 0;
  // Nothing to keep: each call has an N of its own on the stack, and none is made on the heap.
  static constexpr bool is_stateless = std::is_empty_v<N> &&
                                       std::is_trivially_default_constructible_v<N> &&
                                       std::is_trivially_destructible_v<N>;
  template <class Call>
  static void with_node(void* self, Call&& call) {
    if constexpr (is_stateless) {
      N node;
      call(node);
    } else {
      call(*static_cast<N*>(self));
    }
  }
  static heddle_status* create(const heddle_host*, void** self) {
    return guard([&] { *self = new N(); });
  }
  static void destroy(void* self) { delete static_cast<N*>(self); }
  static heddle_status* execute(void* self, heddle_ctx* raw) {
    return guard([&] {
      Context ctx(raw, desc);
      if constexpr (is_block)
        N::execute(ctx);
      else
        with_node(self, [&](N& node) { node.execute(ctx); });
    });
  }
  static heddle_status* need(void* self, heddle_ctx* raw) {
    return guard([&] {
      Context ctx(raw, desc);
      with_node(self, [&](N& node) { node.need(ctx); });
    });
  }
  static heddle_status* fingerprint(void* self, heddle_ctx* raw, std::uint64_t* hash) {
    return guard([&] {
      Context ctx(raw, desc);
      with_node(self, [&](N& node) { *hash = node.fingerprint(ctx); });
    });
  }
  static heddle_status* infer(const heddle_host*, heddle_infer* raw) {
    return guard([&] {
      Infer question(raw, desc);
      N::infer(question);
    });
  }
  static heddle_status* validate(const heddle_host*, heddle_validation* raw) {
    Refusal refusal;
    heddle_status* failed = guard([&] {
      Validation question(raw, desc);
      refusal = N::validate(question);
    });
    if (failed != nullptr || !refusal) return failed;
    return services.host->fail(services.host, HEDDLE_INVALID_ARGUMENT, refusal->c_str());
  }
  static constexpr bool has_validator = requires(Validation & q) { N::validate(q); };
  static constexpr heddle_validator make_validator() {
    heddle_validator made{sizeof(heddle_validator), 0, nullptr, nullptr};
    if constexpr (has_validator) {
      made.validate = &validate;
      if constexpr (requires { N::judged; }) made.inputs = N::judged.data();
      if constexpr (requires { N::judges_types; })
        made.flags = N::judges_types ? HEDDLE_VALIDATOR_TYPES : 0;
    }
    return made;
  }
  static const heddle_validator validator;
  static constexpr auto need_or_null() {
    if constexpr (requires(N n, Context & c) { n.need(c); })
      return &need;
    else
      return decltype(&need){nullptr};
  }
  static constexpr auto fingerprint_or_null() {
    if constexpr (requires(N n, Context & c) { n.fingerprint(c); })
      return &fingerprint;
    else
      return decltype(&fingerprint){nullptr};
  }
  static constexpr auto infer_or_null() {
    if constexpr (requires(Infer & q) { N::infer(q); })
      return &infer;
    else
      return decltype(&infer){nullptr};
  }
};

template <class N>
constexpr heddle_validator Glue<N>::validator = Glue<N>::make_validator();

template <class N>
constexpr heddle_node_desc Glue<N>::desc{
    sizeof(heddle_node_desc),
    N::info.version,
    N::info.type,
    N::info.title,
    N::info.category,
    N::info.doc,
    N::info.flags,
    std::uint32_t(N::ports.in.size()),
    std::uint32_t(N::ports.out.size()),
    std::uint32_t(N::ports.weights.size()),
    N::ports.in.data(),
    N::ports.out.data(),
    N::ports.weights.data(),
    &Glue<N>::execute,
    Glue<N>::is_block || Glue<N>::is_stateless ? nullptr : &Glue<N>::create,
    Glue<N>::is_block || Glue<N>::is_stateless ? nullptr : &Glue<N>::destroy,
    need_or_null(),
    fingerprint_or_null(),
    infer_or_null(),
    has_validator ? &validator : nullptr};

template <class T>
concept IsNode = requires {
  T::ports;
};

template <IsNode T>
struct Provide<T> {
  static constexpr int tag = 1;
  static constexpr std::string_view kind = HEDDLE_NODES;
  static constexpr const void* desc = &Glue<T>::desc;
};

}  // namespace heddle
