// Convolutions of pictures and clips on Hopper as one product: rows are pixels of the output,
// columns its channels, terms the channels under each tap of the filter. Nothing is written down
// for it: a tile of rows is a rectangle of the picture, so what one tap sees of it is a rectangle
// again, which the card copies into shared memory, with zeros where it lies in the padding.
//
// A block has one group of warps that brings tiles and two that multiply, each half of a tile's
// rows; it does one tile after the other, so the next one is on its way while this one is written.
// Terms are summed tap by tap, channel by channel, whatever the tiles: every pixel's bytes are the
// same alone and in a batch, and in every split of a picture.
#pragma once

#include "hopper_16.cuh"
#include "view.cuh"

namespace heddle::cuda {

// kColumns of the product, kChannels of one tap at a time. A tile has 16 pixels across, and as many
// down as give all groups the sums that fit their registers. What is written goes through shared
// memory, kParts of a tile one after the other, kBoxColumns in a box.
template <int kColumns_, int kChannels_, int kParts_>
struct ConvTile {
  static constexpr int kColumns = kColumns_, kChannels = kChannels_, kParts = kParts_;
  static constexpr int kGroups = 2;
  static constexpr int kBlocks = kColumns <= 128 ? 2 : 1;  // of 64 rows, for each group
  static constexpr int kGroupRows = 64 * kBlocks, kRows = kGroups * kGroupRows;
  static constexpr int kAcross = 16, kGroupDown = kGroupRows / kAcross, kDown = kRows / kAcross;
  static constexpr int kRowBytes = 2 * kChannels;
  static constexpr int kPixelBytes = kRows * kRowBytes, kFilterBytes = kColumns * kRowBytes;
  static constexpr int kStageBytes = kPixelBytes + kFilterBytes;
  static constexpr int kBoxColumns = 32, kBoxRowBytes = 2 * kBoxColumns,
                       kBoxBytes = kGroupRows * kBoxRowBytes;
  static constexpr int kPartColumns = kColumns / kParts;
  static constexpr int kOutBytes = kGroupRows * kPartColumns * 2;  // of a group
  static constexpr int kBesides =
      kGroups * (kOutBytes + kColumns * static_cast<int>(sizeof(float))) + 256;  // barriers
  static constexpr int kFitting = ((227 << 10) - kBesides) / kStageBytes;
  static constexpr int kStages = kFitting < 8 ? kFitting : 8;
  static constexpr int kSharedBytes = kStages * kStageBytes + kBesides;
  static_assert(kPixelBytes % 1024 == 0 && kFilterBytes % 1024 == 0 && kOutBytes % 1024 == 0);
  static_assert(kStages >= 3 && kPartColumns % kBoxColumns == 0 && kBoxBytes % 1024 == 0);
};

// A step by each axis but the channels', in elements.
struct ConvSteps {
  std::int64_t item, frame, row, pixel;
};

// Over 15 members: what a launch is told, most of it sizes.
struct HopperConv {
  CUtensorMap x;         // boxes (kChannels, kAcross, kDown, 1, 1) of (C, W, H, T, N)
  CUtensorMap filter;    // boxes (kChannels, kColumns) of (F R S C, O)
  CUtensorMap made;      // boxes (kBoxColumns, kAcross, kGroupDown, 1, 1) of (O, W, H, T, N)
  void* out;             // the same, of f32: then there is no map
  const void* residual;  // of the output's type; nullptr: none
  const void* bias;      // of O, of bias_dtype; nullptr: none
  ConvSteps out_steps, residual_steps;
  std::int32_t wide, down, frames, items, outs;      // of the output
  std::int32_t parts;                                // of the channels, kChannels each
  std::int32_t taps_frames, taps_down, taps_across;  // of the filter
  std::int32_t channels, step, front, top, left;     // step: of frames
  std::int32_t tiles_out, tiles_across, tiles_down;
  std::int32_t bias_dtype, out_dtype;
};

namespace conv {

constexpr int kGroup = 128;  // threads
constexpr int kThreads = 3 * kGroup;

struct Place {
  int out, across, down, frame, item;  // out: the first channel; in pixels of the output
};

// Tiles of the same pixels are neighbours, so that they are read from memory once.
template <class Tile>
__device__ __forceinline__ Place place_of(const HopperConv& c, int tile) {
  Place at;
  at.out = tile % c.tiles_out * Tile::kColumns;
  tile /= c.tiles_out;
  at.across = tile % c.tiles_across * Tile::kAcross;
  tile /= c.tiles_across;
  at.down = tile % c.tiles_down * Tile::kDown;
  tile /= c.tiles_down;
  at.frame = tile % c.frames;
  at.item = tile / c.frames;
  return at;
}

struct Stage {
  int index = 0;
  unsigned parity = 0;
  template <int kStages>
  __device__ __forceinline__ void next() {
    if (++index == kStages) index = 0, parity ^= 1;
  }
};

struct Shared {
  unsigned char *stages, *outs;   // outs: kOutBytes for each group
  float* bias;                    // kColumns for each group
  hopper::Barrier *full, *empty;  // of each stage
};

// By one thread.
template <class Tile>
__device__ __forceinline__ void bring(const HopperConv& c, const Shared& shared, int tiles) {
  hopper::fetch(c.x);
  hopper::fetch(c.filter);
  Stage stage;
  for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
    const Place at = place_of<Tile>(c, tile);
    int term = 0;
    for (int f = 0; f < c.taps_frames; ++f)
      for (int r = 0; r < c.taps_down; ++r)
        for (int s = 0; s < c.taps_across; ++s, term += c.channels)
          for (int part = 0; part < c.parts; ++part) {
            hopper::wait(shared.empty + stage.index, stage.parity ^ 1);
            unsigned char* const to = shared.stages + stage.index * Tile::kStageBytes;
            hopper::Barrier* const full = shared.full + stage.index;
            hopper::expect(full, Tile::kStageBytes);
            const int channel = part * Tile::kChannels;
            hopper::copy_box(to, c.x, channel, at.across + s - c.left, at.down + r - c.top,
                             at.frame * c.step + f - c.front, at.item, full);
            hopper::copy_box(to + Tile::kPixelBytes, c.filter, term + channel, at.out, full);
            stage.next<Tile::kStages>();
          }
  }
}

__device__ __forceinline__ float2 both_of(unsigned pair, __nv_bfloat16) {
  return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(pair));
}
__device__ __forceinline__ float2 both_of(unsigned pair, __half) {
  return __half22float2(reinterpret_cast<const __half2&>(pair));
}
__device__ __forceinline__ unsigned pair_of(float low, float high, __nv_bfloat16) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const unsigned&>(pair);
}
__device__ __forceinline__ unsigned pair_of(float low, float high, __half) {
  const __half2 pair = __floats2half2_rn(low, high);
  return reinterpret_cast<const unsigned&>(pair);
}

// Of one group in a launch.
struct Writer {
  int group, thread;  // of the group
  unsigned char* outs;
  const float* bias;
  __device__ __forceinline__ int row_of(int block, int side) const {
    return block * 64 + thread / 32 * 16 + thread % 32 / 4 + side * 8;
  }
  __device__ __forceinline__ void meet() const { hopper::meet(1 + group, kGroup); }
};

// Where the row's first channel of the tile lies, and whether the pixel is one of the picture's.
template <class Tile>
__device__ __forceinline__ bool find_pixel(const HopperConv& c, const Place& at,
                                           const Writer& writer, int row, const ConvSteps& steps,
                                           std::int64_t& place) {
  row += writer.group * Tile::kGroupRows;
  const int y = at.down + row / Tile::kAcross, z = at.across + row % Tile::kAcross;
  place = at.item * steps.item + at.frame * steps.frame + y * steps.row + z * steps.pixel + at.out;
  return y < c.down && z < c.wide;
}

template <class Tile>
using Sums = float[Tile::kBlocks][Tile::kColumns / 2];

// Numbers of 16 bits: the group writes its rows to shared memory, and the card takes them from
// there while the next tile is under way.
template <class Tile, class Element, bool kHasResidual>
__device__ __forceinline__ void write_tile(const HopperConv& c, const Place& at,
                                           const Writer& writer, const Sums<Tile>& sums) {
  constexpr int kEights = Tile::kPartColumns / 8;
  const int lane = writer.thread % 32, pair = lane % 4 * 2;
#pragma unroll
  for (int part = 0; part < Tile::kParts; ++part) {
    const int first = part * Tile::kPartColumns;
    unsigned added[kHasResidual ? Tile::kBlocks : 1][2][kHasResidual ? kEights : 1];
    if constexpr (kHasResidual) {  // all of them are under way before the first is used
#pragma unroll
      for (int block = 0; block < Tile::kBlocks; ++block)
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          std::int64_t from;
          const bool inside =
              find_pixel<Tile>(c, at, writer, writer.row_of(block, side), c.residual_steps, from);
          const auto* const row = static_cast<const Element*>(c.residual) + from + first + pair;
#pragma unroll
          for (int i = 0; i < kEights; ++i)
            added[block][side][i] = inside && at.out + first + 8 * i < c.outs
                                        ? *reinterpret_cast<const unsigned*>(row + 8 * i)
                                        : 0;
        }
    }
    if (writer.thread == 0) hopper::wait_for_reads();
    writer.meet();
#pragma unroll
    for (int block = 0; block < Tile::kBlocks; ++block) {
      const int row = block * 64 + writer.thread / 32 * 16 + lane % 16;
#pragma unroll
      for (int i = 0; i < kEights; i += 2) {
        unsigned made[2][2];
#pragma unroll
        for (int next = 0; next < 2; ++next) {
          const int eight = i + next;
          const float2 bias =
              *reinterpret_cast<const float2*>(writer.bias + first + 8 * eight + pair);
#pragma unroll
          for (int side = 0; side < 2; ++side) {
            const float* const mine = &sums[block][first / 2 + 4 * eight + 2 * side];
            float low = mine[0] + bias.x, high = mine[1] + bias.y;
            if constexpr (kHasResidual) {
              const float2 more = both_of(added[block][side][eight], Element());
              low += more.x, high += more.y;
            }
            made[next][side] = pair_of(low, high, Element());
          }
        }
        const int eight = i + lane / 16;
        hopper::store_matrices(
            hopper::address(writer.outs + eight / 4 * Tile::kBoxBytes + row * Tile::kBoxRowBytes +
                            hopper::place_of<Tile::kBoxRowBytes>(row, eight % 4) * 16),
            made[0][0], made[0][1], made[1][0], made[1][1]);
      }
    }
    hopper::publish();
    writer.meet();
    if (writer.thread == 0) {
#pragma unroll
      for (int box = 0; box < Tile::kPartColumns / Tile::kBoxColumns; ++box)
        hopper::write_box(c.made, writer.outs + box * Tile::kBoxBytes,
                          at.out + first + box * Tile::kBoxColumns, at.across,
                          at.down + writer.group * Tile::kGroupDown, at.frame, at.item);
      hopper::end_writes();
    }
  }
}

// Numbers of f32, each pair from its registers.
template <class Tile>
__device__ __forceinline__ void write_tile_f32(const HopperConv& c, const Place& at,
                                               const Writer& writer, const Sums<Tile>& sums) {
  const int pair = writer.thread % 4 * 2;
  writer.meet();
#pragma unroll
  for (int block = 0; block < Tile::kBlocks; ++block)
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      std::int64_t to, from;
      const int row = writer.row_of(block, side);
      find_pixel<Tile>(c, at, writer, row, c.residual_steps, from);
      if (!find_pixel<Tile>(c, at, writer, row, c.out_steps, to)) continue;
#pragma unroll
      for (int i = 0; i < Tile::kColumns / 8; ++i) {
        if (at.out + 8 * i >= c.outs) continue;
        const float2 bias = *reinterpret_cast<const float2*>(writer.bias + 8 * i + pair);
        float2 made = make_float2(sums[block][4 * i + 2 * side] + bias.x,
                                  sums[block][4 * i + 2 * side + 1] + bias.y);
        if (c.residual != nullptr) {
          const float2 added = *reinterpret_cast<const float2*>(
              static_cast<const float*>(c.residual) + from + 8 * i + pair);
          made.x += added.x, made.y += added.y;
        }
        *reinterpret_cast<float2*>(static_cast<float*>(c.out) + to + 8 * i + pair) = made;
      }
    }
  writer.meet();  // the bias has been read
}

// By two groups.
template <class Tile, class Element>
__device__ __forceinline__ void multiply(const HopperConv& c, const Shared& shared, int tiles) {
  const int group = static_cast<int>(threadIdx.x) / kGroup - 1;
  const int terms = c.taps_frames * c.taps_down * c.taps_across * c.parts;
  constexpr int kBlocks = Tile::kBlocks, kBlockBytes = 64 * Tile::kRowBytes;
  float* const bias = shared.bias + group * Tile::kColumns;
  const Writer writer{group, static_cast<int>(threadIdx.x) % kGroup,
                      shared.outs + group * Tile::kOutBytes, bias};
  Stage stage;
  for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
    const Place at = place_of<Tile>(c, tile);
    for (int i = writer.thread; i < Tile::kColumns; i += kGroup)
      bias[i] =
          c.bias != nullptr && at.out + i < c.outs ? load(c.bias, c.bias_dtype, at.out + i) : 0.0f;
    float sums[kBlocks][Tile::kColumns / 2];
    hopper::Barrier* before = nullptr;
    for (int term = 0; term < terms; ++term) {
      hopper::wait(shared.full + stage.index, stage.parity);
      const unsigned pixels = hopper::address(shared.stages + stage.index * Tile::kStageBytes),
                     filter = pixels + Tile::kPixelBytes;
      hopper::begin_products();
#pragma unroll
      for (int at_byte = 0; at_byte < Tile::kRowBytes; at_byte += 32)
#pragma unroll
        for (int block = 0; block < kBlocks; ++block)
          hopper::multiply16<Element>(
              sums[block],
              hopper::operand<Tile::kRowBytes>(
                  pixels +
                  static_cast<unsigned>((group * kBlocks + block) * kBlockBytes + at_byte)),
              hopper::operand<Tile::kRowBytes>(filter + static_cast<unsigned>(at_byte)),
              term != 0 || at_byte != 0);
      hopper::end_group();
      // The products before these are done, so nobody reads their stage any more.
      hopper::wait_for_groups<1>();
      if (before != nullptr && writer.thread == 0) hopper::arrive(before);
      before = shared.empty + stage.index;
      stage.next<Tile::kStages>();
    }
    hopper::wait_for_groups<0>();
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) hopper::have_changed(sums[block]);
    if (writer.thread == 0) hopper::arrive(before);
    if (c.out_dtype == HEDDLE_F32)
      write_tile_f32<Tile>(c, at, writer, sums);
    else if (c.residual != nullptr)
      write_tile<Tile, Element, true>(c, at, writer, sums);
    else
      write_tile<Tile, Element, false>(c, at, writer, sums);
  }
  if (writer.thread == 0) hopper::wait_for_reads();
}

template <class Tile, class Element>
__global__ void __launch_bounds__(kThreads, 1) convolve(const __grid_constant__ HopperConv c) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) unsigned char memory[];
  unsigned char* const outs = memory + Tile::kStages * Tile::kStageBytes;
  auto* const bias = reinterpret_cast<float*>(outs + Tile::kGroups * Tile::kOutBytes);
  auto* const barriers = reinterpret_cast<hopper::Barrier*>(bias + Tile::kGroups * Tile::kColumns);
  const Shared shared{memory, outs, bias, barriers, barriers + Tile::kStages};
  if (threadIdx.x == 0) {
    for (int i = 0; i < Tile::kStages; ++i) {
      hopper::initialise(shared.full + i, 1);
      hopper::initialise(shared.empty + i, Tile::kGroups);
    }
    hopper::publish();
  }
  __syncthreads();
  const int tiles = c.tiles_out * c.tiles_across * c.tiles_down * c.frames * c.items;
  // The registers of the group that brings tiles go to the others.
  if (threadIdx.x < kGroup) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) bring<Tile>(c, shared, tiles);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    multiply<Tile, Element>(c, shared, tiles);
  }
#endif
}

}  // namespace conv

}  // namespace heddle::cuda
