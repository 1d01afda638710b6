#include "onednn_primitives.h"

#include <omp.h>

#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>

#include "vector_kernels.h"

namespace heddle::cpu {

namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kBf16 = memory::data_type::bf16, kF32 = memory::data_type::f32;

// The number of threads is a setting of the calling thread, which may be somebody else's.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

class Made : public Primitive {
 public:
  template <class Description>
  Made(const dnnl::primitive& primitive, const Description& description)
      : primitive_(primitive),
        x_(description.src_desc()),
        weight_(description.weights_desc()),
        out_(description.dst_desc()),
        room_(description.scratchpad_desc()) {}

  void run(const void* x, const void* weight, float* out, Scratch& scratch) const override {
    const OneThread one_thread;
    const Scratch::Frame frame(scratch);
    const auto operand = [](const memory::desc& desc, const void* data) {
      return memory(desc, engine(), const_cast<void*>(data));
    };
    const memory operands[] = {operand(x_, x), operand(weight_, weight), operand(out_, out),
                               operand(room_, scratch.take<std::byte>(room_.get_size()))};
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, operands[0].get()},
                                         {DNNL_ARG_WEIGHTS, operands[1].get()},
                                         {DNNL_ARG_DST, operands[2].get()},
                                         {DNNL_ARG_SCRATCHPAD, operands[3].get()}};
    dnnl::stream stream(engine());
    dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), stream.get(), 4, arguments),
                            "oneDNN could not run a primitive");
  }

 private:
  dnnl::primitive primitive_;
  memory::desc x_, weight_, out_, room_;
};

// Scratch is each thread's own: one primitive runs on many threads at a time.
dnnl::primitive_attr own_scratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

// oneDNN has an implementation of everything. Those that multiply packed weights in blocks carry
// this name; the others are slow, and some are written for clarity.
template <class Kind, class Description>
std::unique_ptr<const Primitive> if_fast(const Description& description) {
  if (!std::string_view(description.impl_info_str()).starts_with("brg")) return nullptr;
  return std::make_unique<Made>(Kind(description), description);
}

std::unique_ptr<const Primitive> make(const GemmShape& s) {
  const memory::desc x({s.rows, s.length}, kBf16, Tag::ab),
      weight({s.length, s.columns}, kBf16, Tag::BA16a32b2a),
      out({s.rows, s.columns}, kF32, Tag::ab);
  return if_fast<dnnl::matmul>(
      dnnl::matmul::primitive_desc({x, weight, out}, own_scratch(), engine()));
}

std::unique_ptr<const Primitive> make(const ConvolutionShape& s) {
  const memory::desc x({1, s.channels, s.height, s.width}, kBf16, Tag::nhwc),
      weight({kPanelColumns, s.channels, s.filter[0], s.filter[1]}, kBf16, Tag::OhwI32o2i),
      out({1, kPanelColumns, s.out_height, s.out_width}, kF32, Tag::nhwc);
  return if_fast<dnnl::convolution_forward>(
      dnnl::convolution_forward::primitive_desc({dnnl::prop_kind::forward_inference,
                                                 dnnl::algorithm::convolution_direct,
                                                 x,
                                                 weight,
                                                 out,
                                                 {s.stride[0], s.stride[1]},
                                                 {s.padding[0], s.padding[1]},
                                                 {s.padding[2], s.padding[3]}},
                                                own_scratch(), engine()));
}

}  // namespace

Primitives::Primitives() = default;
Primitives::~Primitives() = default;

template <class Make>
const Primitive* Primitives::find(const Key& key, Make&& make) {
  {
    const std::shared_lock lock(mutex_);
    const auto found = made_.find(key);
    if (found != made_.end()) return found->second.get();
  }
  std::unique_ptr<const Primitive> made;
  try {
    const OneThread one_thread;
    made = make();
  } catch (const dnnl::error&) {
    // It knows no way at all: the same answer as for no fast one.
  }
  const std::unique_lock lock(mutex_);
  return made_.try_emplace(key, std::move(made)).first->second.get();
}

const Primitive* Primitives::gemm(const GemmShape& s) {
  return find({0, s.rows, s.columns, s.length}, [&] { return make(s); });
}

const Primitive* Primitives::convolution(const ConvolutionShape& s) {
  return find(
      {1, s.height, s.width, s.channels, s.out_height, s.out_width, s.filter[0] << 32 | s.filter[1],
       s.stride[0], s.stride[1], s.padding[0], s.padding[1], s.padding[2], s.padding[3]},
      [&] { return make(s); });
}

}  // namespace heddle::cpu
