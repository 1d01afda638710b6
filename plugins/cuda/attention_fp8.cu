// attention/1 in 8 bits, on Hopper, where the device is asked for it:
// plugins/blocks/attention_fp8.h says what it computes, attention_fp8.cuh how. Operands of 16 bits
// alone: whoever computes in f32 wants what f32 gives.
#include "plugins/blocks/attention_fp8.h"

#include <algorithm>

#include "attention_fp8.cuh"
#include "attention_fp8_operands.cuh"
#include "call.h"
#include "kernels.h"

namespace heddle::cuda {

namespace {

// Parts of the workspace, in bytes.
struct Fp8Parts {
  std::size_t v8, scales, means, bytes;  // k8 is the first
  std::int64_t blocks;
};

Fp8Parts parts_of(const heddle_op_call& call) {
  const heddle_tensor_info& k = call.in[1]->info;
  const auto aligned = [](std::size_t bytes) { return (bytes + 255) / 256 * 256; };
  Fp8Parts parts{};
  parts.blocks = (k.shape[1] + kTileKeys - 1) / kTileKeys * (kTileKeys / kBlockKeys);
  const auto heads = static_cast<std::size_t>(k.shape[0] * k.shape[2]),
             blocks = heads * static_cast<std::size_t>(parts.blocks),
             width = static_cast<std::size_t>(k.shape[3]);
  parts.v8 = aligned(blocks * kBlockKeys * width);
  parts.scales = 2 * parts.v8;
  parts.means = parts.scales + aligned(blocks * sizeof(float4));
  parts.bytes = parts.means + aligned(2 * heads * width * sizeof(float));
  return parts;
}

// Narrower heads have half the products and as many exponentials: cuDNN's 16 bits are faster there.
constexpr int kFp8Width = 128;

// Rows of eight neighbours at multiples of 16 bytes, one type, and counts that fit a launch.
bool lies_well(const heddle_op_call& call) {
  const heddle_dtype dtype = call.in[0]->info.dtype;
  if (call.in[0]->info.shape[3] != kFp8Width) return false;
  if (dtype != HEDDLE_BF16 && dtype != HEDDLE_F16) return false;
  for (const heddle_view* view : {call.in[0], call.in[1], call.in[2], call.out[0]}) {
    const heddle_tensor_info& info = view->info;
    if (info.dtype != dtype || info.stride[3] != 1) return false;
    for (int axis = 0; axis < 3; ++axis)
      if (info.shape[axis] > 1 && (info.stride[axis] < 0 || info.stride[axis] % kVectorSize != 0))
        return false;
  }
  const heddle_tensor_info &q = call.in[0]->info, &k = call.in[1]->info;
  constexpr std::int64_t kMostHeads = 65535, kMost = 1 << 24;
  const std::int64_t heads = q.shape[0] * q.shape[2],
                     tiles = (q.shape[1] + kTileQueries - 1) / kTileQueries;
  return heads > 0 && heads <= kMostHeads && q.shape[1] > 0 && q.shape[1] < kMost &&
         k.shape[1] < kMost && heads * tiles < kMost;
}

template <class Stored>
void launch(Stream& stream, const Fp8Operands& a) {
  constexpr int kWidth = kFp8Width, kBytes = kFp8SharedBytes<kWidth>;
  const auto heads = static_cast<unsigned>(a.items * a.heads),
             blocks = static_cast<unsigned>(a.blocks);
  const unsigned tiles = blocks_for(a.queries, kTileQueries) * heads,
                 grid = std::min(tiles, static_cast<unsigned>(stream.device().multiprocessors()));
  check(cudaFuncSetAttribute(attend_fp8<kWidth, Stored>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
        "cudaFuncSetAttribute");
  mean_of_rows<kWidth, Stored><<<dim3(heads, 2), kMeanThreads, 0, stream.raw()>>>(a);
  round_rows<kWidth, Stored><<<dim3(blocks, heads, 2), kRoundThreads<kWidth>, 0, stream.raw()>>>(a);
  attend_fp8<kWidth, Stored><<<grid, kThreads, kBytes, stream.raw()>>>(a);
}

struct Fp8Attention {
  static constexpr const char* op = HEDDLE_OP_ATTENTION;
  static constexpr const char* name = "f8";
  static void check(const heddle_op_call& call) { cpu::check_attention(call); }

  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    return device.settings().attention_fp8 && has_hopper_kernels(device.card()) &&
                   blocks::is_for_fp8_attention(call) && lies_well(call)
               ? 30
               : 0;
  }

  static std::size_t workspace(Device& device, const heddle_op_call& call) {
    return fits(device, call) != 0 ? parts_of(call).bytes : 0;
  }

  static void run(Stream& stream, const heddle_op_call& call, void* workspace) {
    for (const heddle_view* view : {call.in[0], call.in[1], call.in[2], call.out[0]})
      if (!lies_at_16(view->data)) return launch_other(kAttention, stream, call);
    const auto own = [](const heddle_view& view) { return view_of(&view, view.info); };
    const Fp8Parts parts = parts_of(call);
    auto* const memory = static_cast<unsigned char*>(workspace);
    const heddle_tensor_info &q = in(call, 0).info, &k = in(call, 1).info;
    const Fp8Operands a{
        own(in(call, 0)),
        own(in(call, 1)),
        own(in(call, 2)),
        own(out(call)),
        memory,
        memory + parts.v8,
        reinterpret_cast<float4*>(memory + parts.scales),
        reinterpret_cast<float*>(memory + parts.means),
        static_cast<std::int32_t>(parts.blocks),
        static_cast<std::int32_t>(q.shape[1]),
        static_cast<std::int32_t>(k.shape[1]),
        static_cast<std::int32_t>(q.shape[2]),
        static_cast<std::int32_t>(q.shape[0]),
        static_cast<float>(attrs<heddle_attention_attrs>(call).scale * 1.4426950408889634)};
    if (q.dtype == HEDDLE_BF16)
      launch<__nv_bfloat16>(stream, a);
    else
      launch<__half>(stream, a);
  }
};

}  // namespace

constexpr heddle_kernel kFp8Attention = kernel_table<Fp8Attention>();

}  // namespace heddle::cuda
