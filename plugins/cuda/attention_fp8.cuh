// Attention in 8 bits (plugins/blocks/attention_fp8.h) on the products of Hopper's warp groups: its
// operands and its kernel. A block has two warp groups that attend, of 64 queries each, and one
// that brings keys and values into shared memory, some tiles ahead. Blocks stay and take one tile
// of queries after the other. While one group weighs its scores the other one multiplies.
//
// The weights of a tile are the first operand of the second product and never leave their
// registers: keys stand in v8 in the order in which the registers of the scores hold them
// (place_of_key()). Tensor cores sum products of 8 bits in some 13 bits, so the sums of each tile
// are added in f32.
#pragma once

#include "hopper.cuh"
#include "plugins/blocks/attention_fp8.h"
#include "view.cuh"

namespace heddle::cuda {

constexpr int kBlockKeys = static_cast<int>(blocks::kFp8Block);  // that have one scale
constexpr int kTileKeys = 2 * kBlockKeys;
constexpr int kGroupQueries = 64, kGroups = 2, kTileQueries = kGroups * kGroupQueries;
constexpr int kGroupThreads = 128, kThreads = (kGroups + 1) * kGroupThreads;
constexpr int kStages = 4;      // tiles of keys and of values in shared memory
constexpr float kSlack = 0.8f;  // by which the largest score may be more than is assumed

// Weights in registers are 2^-8 of what they are as numbers of 8 bits.
static_assert(blocks::kFp8Top == 8);
constexpr float kWeightUnit = 0x1p-8f;

// By item and head, and in it by block of keys: k8 has rows of a key, v8 has rows of a channel,
// both as products want them in shared memory.
struct Fp8Operands {
  View q, k, v, out;
  unsigned char *k8, *v8;
  float4* scales;  // of each block: that of k, log2 of that of v, one by that of v
  float* means;    // of k, of all items and heads; then of v
  std::int32_t blocks, queries, keys, heads, items;
  float scale;  // times log2(e)
};

// Where a key stands in a row of v8, in each 16.
__host__ __device__ constexpr int key_at_place(int place) {
  return place / 16 * 16 + place % 4 / 2 * 8 + place % 16 / 4 * 2 + place % 2;
}

template <int kWidth>
constexpr int kTileBytes = kTileKeys* kWidth;  // of keys, and of values

// Bytes of shared memory, and 1024 for the multiple of it that it begins at.
template <int kWidth>
constexpr int kFp8SharedBytes = (2 * kStages * kTileKeys + kTileQueries) * kWidth +
                                4 * kStages * 8 + 1024;

struct Fp8Shared {
  unsigned char *keys, *values, *queries;
  hopper::Barrier *keys_full, *keys_free, *values_full, *values_free;
};

// A tile of the ring.
struct Stage {
  int at = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void advance() {
    if (++at == kStages) at = 0, parity ^= 1;
  }
};

// Four neighbours of 16 bits.
template <class Stored>
__device__ __forceinline__ void widen(const uint2& raw, float (&to)[4]) {
  const auto* values = reinterpret_cast<const Stored*>(&raw);
#pragma unroll
  for (int i = 0; i < 4; ++i) to[i] = static_cast<float>(values[i]);
}
__device__ __forceinline__ __nv_bfloat162 pair_of(float a, float b, const __nv_bfloat16*) {
  return __floats2bfloat162_rn(a, b);
}
__device__ __forceinline__ __half2 pair_of(float a, float b, const __half*) {
  return __floats2half2_rn(a, b);
}

// Of the rows of a tile of queries, a thread has `row` and row + 8 of its group.
struct Place {
  int group, lane, row;
  __device__ explicit Place(int thread)
      : group(thread / kGroupThreads),
        lane(thread % 4),
        row(thread % kGroupThreads / 32 * 16 + thread % 32 / 4) {}
  __device__ __forceinline__ int query(int tile, int half) const {
    return tile * kTileQueries + group * kGroupQueries + row + 8 * half;
  }
};

// What a thread of a group that attends keeps of its two queries.
template <int kWidth, class Stored>
struct Attending {
  static constexpr int kSteps = kWidth / 32;
  float scores[kTileKeys / 2], sums[kWidth / 2] = {}, added[kWidth / 2];
  unsigned weights[kTileKeys / 32][4];
  float largest[2] = {-INFINITY, -INFINITY}, total[2] = {}, scale[2];
  uint2 next[kSteps][4];  // the queries of the next tile

  __device__ __forceinline__ void load_queries(const Fp8Operands& a, int head, int tile,
                                               Place place) {
    const auto* from = static_cast<const Stored*>(a.q.data) + head / a.heads * a.q.stride[0] +
                       head % a.heads * a.q.stride[2] + place.lane * 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const auto* row = from + min(place.query(tile, half), a.queries - 1) * a.q.stride[1];
#pragma unroll
      for (int k = 0; k < kSteps; ++k) {
        next[k][half] = __ldg(reinterpret_cast<const uint2*>(row + 32 * k));
        next[k][half + 2] = __ldg(reinterpret_cast<const uint2*>(row + 32 * k + 16));
      }
    }
  }

  __device__ __forceinline__ void take_queries(const Fp8Operands& a, unsigned char* to,
                                               Place place) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = 0, x[4];
#pragma unroll
      for (int i = 0; i < 2 * kSteps; ++i) {
        widen<Stored>(next[i / 2][half + i % 2 * 2], x);
#pragma unroll
        for (int j = 0; j < 4; ++j) most = fmaxf(most, fabsf(x[j]));
      }
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
      const float unit = fmaxf(__fdiv_rn(most, blocks::kFp8Largest), blocks::kFp8LeastScale),
                  by = __frcp_rn(unit);
      const int row = place.row + 8 * half;
#pragma unroll
      for (int i = 0; i < 2 * kSteps; ++i) {
        widen<Stored>(next[i / 2][half + i % 2 * 2], x);
        const int at = row * kWidth + hopper::place_of<kWidth>(row, i) * 16 + place.lane * 4;
        *reinterpret_cast<unsigned*>(to + at) =
            hopper::to_fp8(x[0] * by, x[1] * by, x[2] * by, x[3] * by);
      }
      scale[half] = unit * a.scale;
      largest[half] = -INFINITY;
      total[half] = 0;
    }
#pragma unroll
    for (int i = 0; i < kWidth / 2; ++i) sums[i] = 0;
    hopper::publish();
    hopper::meet(8 + place.group, kGroupThreads);
  }

  __device__ __forceinline__ void begin_scores(unsigned queries, unsigned keys) {
#pragma unroll
    for (int k = 0; k < kSteps; ++k)
      hopper::multiply(scores, hopper::operand<kWidth>(queries + 32 * k),
                       hopper::operand<kWidth>(keys + 32 * k), k > 0);
    hopper::end_group();
  }
  __device__ __forceinline__ void begin_values(unsigned values) {
#pragma unroll
    for (int k = 0; k < kTileKeys / 32; ++k)
      hopper::multiply(
          added, weights[k],
          hopper::operand<kBlockKeys>(values + k / 2 * (kBlockKeys * kWidth) + k % 2 * 32), k > 0);
    hopper::end_group();
  }

  // The largest of a row's scores, in the units of the weights' exponents.
  __device__ __forceinline__ float largest_score(const float4 (&units)[2], int half) const {
    float most = -INFINITY;
#pragma unroll
    for (int block = 0; block < 2; ++block) {
      float m[4];
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const float x = scores[block * 32 + i / 2 * 4 + 2 * half + i % 2];
        m[i % 4] = i < 4 ? x : fmaxf(m[i % 4], x);
      }
      most = fmaxf(most, fmaf(fmaxf(fmaxf(m[0], m[1]), fmaxf(m[2], m[3])),
                              units[block].x * scale[half], units[block].y));
    }
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
    return fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
  }

  // Scores become weights, rounded. Returns whether the sums have to be multiplied with `keep`. Of
  // the tile there are `here` keys.
  template <bool kIsLast>
  __device__ __forceinline__ bool weigh(const float4 (&units)[2], int here, Place place,
                                        float (&keep)[2]) {
    if (kIsLast && here < kTileKeys) {
#pragma unroll
      for (int i = 0; i < kTileKeys / 2; ++i)
        if (i / 4 * 8 + place.lane * 2 + i % 2 >= here) scores[i] = -INFINITY;
    }
    const float now[2] = {largest_score(units, 0), largest_score(units, 1)};
    const bool grows =
        __any_sync(0xffffffffu, now[0] > largest[0] + kSlack || now[1] > largest[1] + kSlack);
    if (grows) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float before = largest[half];
        largest[half] = fmaxf(before, now[half]);
        keep[half] = hopper::exp2_of(before - largest[half]);
        total[half] *= keep[half];
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int block = 0; block < 2; ++block) {
        const float by = units[block].x * scale[half], from = units[block].y - largest[half];
        float parts[2] = {};
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          float& x = scores[block * 32 + i / 2 * 4 + 2 * half + i % 2];
          x = hopper::exp2_of(fmaf(x, by, from));
          parts[i % 2] += x;
        }
        total[half] = fmaf(parts[0] + parts[1], units[block].z, total[half]);
      }
#pragma unroll
    for (int i = 0; i < kTileKeys / 8; ++i) {
      const float* x = scores + i / 4 * 16 + i / 2 % 2 * 8 + i % 2 * 2;
      weights[i / 4][i % 4] = hopper::to_fp8_of_256(x[0], x[1], x[4], x[5]);
    }
    return grows;
  }

  __device__ __forceinline__ void add(bool grows, const float (&keep)[2]) {
    if (grows) {
#pragma unroll
      for (int i = 0; i < kWidth / 2; ++i) sums[i] = fmaf(sums[i], keep[i / 2 % 2], added[i]);
    } else {
#pragma unroll
      for (int i = 0; i < kWidth / 2; ++i) sums[i] += added[i];
    }
  }

  __device__ __forceinline__ void write(const Fp8Operands& a, int head, int tile,
                                        Place place) const {
    const float* mean =
        a.means + (std::int64_t{a.items} * a.heads + head) * kWidth + place.lane * 2;
    auto* to = static_cast<Stored*>(a.out.data) + head / a.heads * a.out.stride[0] +
               head % a.heads * a.out.stride[2] + place.lane * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float all = total[half];
      all += __shfl_xor_sync(0xffffffffu, all, 1);
      all += __shfl_xor_sync(0xffffffffu, all, 2);
      const float by = __frcp_rn(all) * kWeightUnit;
      const int query = place.query(tile, half);
      if (query >= a.queries) continue;
      Stored* const row = to + query * a.out.stride[1];
#pragma unroll
      for (int n = 0; n < kWidth / 8; ++n) {
        const float2 m = __ldg(reinterpret_cast<const float2*>(mean + 8 * n));
        const float x = fmaf(sums[4 * n + 2 * half], by, m.x),
                    y = fmaf(sums[4 * n + 2 * half + 1], by, m.y);
        const auto pair = pair_of(x, y, row);
        *reinterpret_cast<std::uint32_t*>(row + 8 * n) =
            reinterpret_cast<const std::uint32_t&>(pair);
      }
    }
  }
};

// Behind this the tiles of a block's queries, one after the other: tile numbers go over the queries
// of a head first, so that blocks which run at a time read the same keys.
template <int kWidth>
__device__ __forceinline__ void bring_tiles(const Fp8Operands& a, const Fp8Shared& shared,
                                            int query_tiles, int tiles) {
  const int steps = (a.keys + kTileKeys - 1) / kTileKeys;
  Stage stage;
  for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
    const std::int64_t from = std::int64_t{tile / query_tiles} * a.blocks * (kBlockKeys * kWidth);
    for (int step = 0; step < steps; ++step) {
      const std::int64_t at = from + std::int64_t{step} * kTileBytes<kWidth>;
      const int to = stage.at * kTileBytes<kWidth>;
      hopper::wait(shared.keys_free + stage.at, stage.parity ^ 1);
      hopper::copy(shared.keys + to, a.k8 + at, kTileBytes<kWidth>, shared.keys_full + stage.at);
      hopper::wait(shared.values_free + stage.at, stage.parity ^ 1);
      hopper::copy(shared.values + to, a.v8 + at, kTileBytes<kWidth>,
                   shared.values_full + stage.at);
      stage.advance();
    }
  }
}

template <int kWidth, class Stored>
__device__ __forceinline__ void attend_tiles(const Fp8Operands& a, const Fp8Shared& shared,
                                             int query_tiles, int tiles) {
  const int steps = (a.keys + kTileKeys - 1) / kTileKeys;
  const Place place(static_cast<int>(threadIdx.x) - kGroupThreads);
  const bool tells = threadIdx.x % 32 == 0;
  unsigned char* const own = shared.queries + place.group * kGroupQueries * kWidth;
  const unsigned keys = hopper::address(shared.keys), values = hopper::address(shared.values),
                 queries = hopper::address(own);
  Attending<kWidth, Stored> now;
  Stage stage;
  int tile = static_cast<int>(blockIdx.x);
  now.load_queries(a, tile / query_tiles, tile % query_tiles, place);
  for (; tile < tiles; tile += static_cast<int>(gridDim.x)) {
    const int head = tile / query_tiles;
    const float4* scales = a.scales + std::int64_t{head} * a.blocks;
    float4 units[2];
    float keep[2];
    const auto load_units = [&](int step) {
      units[0] = __ldg(scales + 2 * step);
      units[1] = __ldg(scales + 2 * step + 1);
    };
    now.take_queries(a, own, place);
    hopper::wait(shared.keys_full + stage.at, stage.parity);
    hopper::begin_products();
    now.begin_scores(queries, keys + stage.at * kTileBytes<kWidth>);
    load_units(0);
    hopper::wait_for_groups<0>();
    hopper::have_changed(now.scores);
    if (tells) hopper::arrive(shared.keys_free + stage.at);
    for (int step = 0; step + 1 < steps; ++step) {
      const bool grows = now.template weigh<false>(units, kTileKeys, place, keep);
      const Stage before = stage;
      hopper::wait(shared.values_full + before.at, before.parity);
      stage.advance();
      hopper::wait(shared.keys_full + stage.at, stage.parity);
      hopper::begin_products();
      now.begin_values(values + before.at * kTileBytes<kWidth>);
      now.begin_scores(queries, keys + stage.at * kTileBytes<kWidth>);
      load_units(step + 1);
      hopper::wait_for_groups<1>();
      hopper::have_changed(now.added);
      hopper::were_needed(now.weights);
      if (tells) hopper::arrive(shared.values_free + before.at);
      now.add(grows, keep);
      hopper::wait_for_groups<0>();
      hopper::have_changed(now.scores);
      if (tells) hopper::arrive(shared.keys_free + stage.at);
    }
    const bool grows =
        now.template weigh<true>(units, a.keys - (steps - 1) * kTileKeys, place, keep);
    hopper::wait(shared.values_full + stage.at, stage.parity);
    hopper::begin_products();
    now.begin_values(values + stage.at * kTileBytes<kWidth>);
    const int next = tile + static_cast<int>(gridDim.x);
    if (next < tiles) now.load_queries(a, next / query_tiles, next % query_tiles, place);
    hopper::wait_for_groups<0>();
    hopper::have_changed(now.added);
    hopper::were_needed(now.weights);
    if (tells) hopper::arrive(shared.values_free + stage.at);
    now.add(grows, keep);
    stage.advance();
    now.write(a, head, tile % query_tiles, place);
  }
}

template <int kWidth, class Stored>
__global__ void __launch_bounds__(kThreads, 1) attend_fp8(const __grid_constant__ Fp8Operands a) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ unsigned char memory[];
  unsigned char* const base = memory + (1024 - (hopper::address(memory) & 1023)) % 1024;
  constexpr int kRing = kStages * kTileBytes<kWidth>;
  auto* const barriers =
      reinterpret_cast<hopper::Barrier*>(base + 2 * kRing + kTileQueries * kWidth);
  const Fp8Shared shared{base,
                         base + kRing,
                         base + 2 * kRing,
                         barriers,
                         barriers + kStages,
                         barriers + 2 * kStages,
                         barriers + 3 * kStages};
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      hopper::initialise(shared.keys_full + i, 1);
      hopper::initialise(shared.values_full + i, 1);
      hopper::initialise(shared.keys_free + i, kGroups * kGroupThreads / 32);
      hopper::initialise(shared.values_free + i, kGroups * kGroupThreads / 32);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int query_tiles = (a.queries + kTileQueries - 1) / kTileQueries,
            tiles = query_tiles * a.heads * a.items;
  // The registers of the group that brings tiles go to the others.
  if (threadIdx.x < kGroupThreads) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x == 0) bring_tiles<kWidth>(a, shared, query_tiles, tiles);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    attend_tiles<kWidth, Stored>(a, shared, query_tiles, tiles);
  }
#endif
}

}  // namespace heddle::cuda
