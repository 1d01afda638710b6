// group_norm/1 of pictures whose channels come in whole eights, the channels of a pixel side by
// side. A block reads a run of pixels with all their channels once and finds mean and squared
// differences of every group in it; the runs' statistics are put together in a fixed order (Chan,
// Golub and LeVeque's formula: nothing cancels), and a second pass writes.
#include <algorithm>

#include "call.h"
#include "kernels.h"
#include "view.cuh"

namespace heddle::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kEach = 4;  // pixels that a thread has on their way
constexpr int kBlocksEach =
    4;  // on a multiprocessor at a time: more on their way, in all, than with kEach of 8
constexpr int kManyThreads = 320;    // where there are more pieces of a pixel than kThreads
constexpr int kMostChannels = 2560;  // a piece of eight for each thread
constexpr int kMostGroups = 2048;
constexpr std::int64_t kParts =
    1024;  // runs enough to keep a GPU busy; longer ones have less to put together

struct Groups {
  View x, weight, bias, out;
  std::int64_t pixels;  // of an item
  std::int32_t channels, groups, parts, part_pixels, activation;
  float eps;
  float2* parts_at;  // (N, parts, groups): mean, sum of squared differences from it
  float2* whole_at;  // (N, groups): mean, 1 / deviation
};

// Thread t has the piece t % pieces of the pixels t / pieces, t / pieces + rows, ... of its block's
// run.
struct Place {
  int pieces, rows, piece, row;
  bool works;
  __device__ explicit Place(const Groups& g)
      : pieces(g.channels / kVectorSize),
        rows(static_cast<int>(blockDim.x) / pieces),
        piece(static_cast<int>(threadIdx.x) % pieces),
        row(static_cast<int>(threadIdx.x) / pieces),
        works(row < rows) {}
};

struct Statistics {
  float count, mean, squares;
  __device__ void join(const Statistics& other) {
    if (other.count == 0) return;
    const float both = count + other.count, difference = other.mean - mean;
    const float share = other.count / both;
    mean += difference * share;
    squares += other.squares + difference * difference * (count * share);
    count = both;
  }
};

// A run of pixels: those of a block.
struct Run {
  std::int64_t begin;
  int count;
  __device__ Run(const Groups& g, std::int64_t part)
      : begin(part * g.part_pixels),
        count(static_cast<int>(min(static_cast<std::int64_t>(g.part_pixels), g.pixels - begin))) {}
};

// Loads kEach pixels of this thread, the first of them number `first` of the run; all are on their
// way before one is used.
template <bool kAll, Lies kLies>
__device__ void fetch_pixels(const Groups& g, const Place& place, const Run& run, int first,
                             Piece<kLies> (&pieces)[kEach]) {
  std::int64_t at =
      blockIdx.y * g.x.stride[0] + (run.begin + first) * g.x.stride[2] + place.piece * kVectorSize;
#pragma unroll
  for (int n = 0; n < kEach; ++n) {
    pieces[n].fetch(g.x, at, kAll || first + n * place.rows < run.count);
    at += place.rows * g.x.stride[2];
  }
}

// What a thread sums up in each of its channels: differences from the first value that it meets,
// and their squares: of numbers that lie around it, so that nothing cancels.
struct Sums {
  float pivot[kVectorSize], sums[kVectorSize], squares[kVectorSize];
  // kAll: every one of the pixels that follow `first` is there.
  template <bool kAll, Lies kLies>
  __device__ void add(const Groups& g, const Place& place, const Run& run, int first) {
    Piece<kLies> pieces[kEach];
    fetch_pixels<kAll>(g, place, run, first, pieces);
    if (first == place.row) pieces[0].get(pivot);
    float values[kVectorSize];
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      const bool inside = kAll || first + n * place.rows < run.count;
      pieces[n].get(values);
#pragma unroll
      for (int i = 0; i < kVectorSize; ++i) {
        const float difference = inside ? values[i] - pivot[i] : 0;
        sums[i] += difference;
        squares[i] = fmaf(difference, difference, squares[i]);
      }
    }
  }
};

// grid: (parts, N). From the last run to the first: what was written last is still near, and what
// is read last is what normalise() reads first.
template <Lies kLies, int kBlock>
__global__ void __launch_bounds__(kBlock, kBlocksEach)
    part_statistics(const __grid_constant__ Groups g) {
  __shared__ float2 partials[kBlock * kVectorSize];  // (rows, channels): mean, squares
  const Place place(g);
  const std::int64_t part = gridDim.x - 1 - std::int64_t{blockIdx.x};
  const Run run(g, part);
  const int here = run.count, ahead = (kEach - 1) * place.rows;
  Sums mine{};
  if (place.works) {
    int first = place.row;
    for (; first + ahead < here; first += kEach * place.rows)
      mine.add<true, kLies>(g, place, run, first);
    if (first < here) mine.add<false, kLies>(g, place, run, first);
  }
  const auto pixels_of = [&](int row) {
    return static_cast<float>(row < here ? (here - row + place.rows - 1) / place.rows : 0);
  };
  if (place.works) {
    const float count = max(pixels_of(place.row), 1.0f);
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i)
      partials[place.row * g.channels + place.piece * kVectorSize + i] =
          make_float2(mine.pivot[i] + mine.sums[i] / count,
                      max(mine.squares[i] - mine.sums[i] * (mine.sums[i] / count), 0.0f));
  }
  __syncthreads();
  for (int c = threadIdx.x; c < g.channels; c += kBlock) {
    Statistics all{0, 0, 0};
    for (int row = 0; row < place.rows; ++row)
      all.join(
          {pixels_of(row), partials[row * g.channels + c].x, partials[row * g.channels + c].y});
    partials[c] = make_float2(all.mean, all.squares);  // of row 0: read by this thread only
  }
  __syncthreads();
  const int width = g.channels / g.groups;
  float2* to = g.parts_at + (std::int64_t{blockIdx.y} * g.parts + part) * g.groups;
  for (int group = threadIdx.x; group < g.groups; group += kBlock) {
    Statistics all{0, 0, 0};
    for (int i = 0; i < width; ++i)
      all.join(
          {static_cast<float>(here), partials[group * width + i].x, partials[group * width + i].y});
    to[group] = make_float2(all.mean, all.squares);
  }
}

// grid: N * groups
__global__ void __launch_bounds__(kThreads) whole_statistics(const __grid_constant__ Groups g) {
  __shared__ Statistics all[kThreads];
  const std::int64_t item = blockIdx.x / g.groups, group = blockIdx.x % g.groups;
  const auto width = static_cast<float>(g.channels / g.groups);
  Statistics mine{0, 0, 0};
  for (int part = threadIdx.x; part < g.parts; part += kThreads) {
    const float2 found = g.parts_at[(item * g.parts + part) * g.groups + group];
    const std::int64_t here = min(static_cast<std::int64_t>(g.part_pixels),
                                  g.pixels - std::int64_t{part} * g.part_pixels);
    mine.join({static_cast<float>(here) * width, found.x, found.y});
  }
  all[threadIdx.x] = mine;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) all[threadIdx.x].join(all[threadIdx.x + half]);
  }
  if (threadIdx.x == 0)
    g.whole_at[blockIdx.x] =
        make_float2(all[0].mean, 1 / sqrtf(all[0].squares / all[0].count + g.eps));
}

// A thread's pixels from `first` on: x * scale + shift, activated; kActivation -1: as the call
// says.
template <bool kAll, Lies kLies, int kActivation>
__device__ void normalise_pixels(const Groups& g, const Place& place, const Run& run, int first,
                                 const float (&scale)[kVectorSize],
                                 const float (&shift)[kVectorSize]) {
  Piece<kLies> pieces[kEach];
  fetch_pixels<kAll>(g, place, run, first, pieces);
  std::int64_t at = blockIdx.y * g.out.stride[0] + (run.begin + first) * g.out.stride[2] +
                    place.piece * kVectorSize;
#pragma unroll
  for (int n = 0; n < kEach; ++n) {
    if (!kAll && first + n * place.rows >= run.count) break;
    float values[kVectorSize];
    pieces[n].get(values);
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i)
      values[i] = activate(kActivation < 0 ? g.activation : kActivation,
                           fmaf(values[i], scale[i], shift[i]));
    Piece<kLies>::put(g.out, at, values);
    at += place.rows * g.out.stride[2];
  }
}

// grid: (parts, N)
template <Lies kLies, int kActivation, int kBlock>
__global__ void __launch_bounds__(kBlock, kBlocksEach) normalise(const __grid_constant__ Groups g) {
  const Place place(g);
  if (!place.works) return;
  const int width = g.channels / g.groups, column = place.piece * kVectorSize;
  const Run run(g, blockIdx.x);
  float scale[kVectorSize], shift[kVectorSize];
  load_vector(g.weight.data, g.weight.dtype, column, kVectorSize, scale);
  load_vector(g.bias.data, g.bias.dtype, column, kVectorSize, shift);
#pragma unroll
  for (int i = 0; i < kVectorSize; ++i) {
    const float2 found = g.whole_at[blockIdx.y * g.groups + (column + i) / width];
    scale[i] *= found.y;
    shift[i] -= found.x * scale[i];  // an error of the mean's own size, as the mean is rounded
  }
  int first = place.row;
  for (; first + (kEach - 1) * place.rows < run.count; first += kEach * place.rows)
    normalise_pixels<true, kLies, kActivation>(g, place, run, first, scale, shift);
  if (first < run.count)
    normalise_pixels<false, kLies, kActivation>(g, place, run, first, scale, shift);
}

bool pixels_are_even(const heddle_tensor_info& info) {
  return info.shape[1] == 1 || info.stride[1] == info.shape[2] * info.stride[2];
}

struct VectorGroupNorm {
  static constexpr const char* op = HEDDLE_OP_GROUP_NORM;
  static constexpr const char* name = "vector";
  static void check(const heddle_op_call& call) { cpu::check_group_norm(call); }

  static int threads(std::int64_t channels) {
    return channels > kThreads * kVectorSize ? kManyThreads : kThreads;
  }
  static std::int64_t part_pixels(const heddle_tensor_info& info) {
    const std::int64_t once = threads(info.shape[3]) / (info.shape[3] / kVectorSize) *
                              kEach;  // what a block has on its way together
    const std::int64_t all = info.shape[0] * info.shape[1] * info.shape[2];
    return once * std::clamp<std::int64_t>(all / (once * kParts), 1, 16);
  }
  static std::int64_t parts(const heddle_tensor_info& info) {
    return (info.shape[1] * info.shape[2] + part_pixels(info) - 1) / part_pixels(info);
  }

  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    const heddle_tensor_info &x = call.in[0]->info, &whole = call.out[0]->info;
    const std::int64_t channels = whole.shape[3];
    const std::int32_t groups = attrs<heddle_group_norm_attrs>(call).groups;
    if (device.settings().reference_only || channels == 0 || channels % kVectorSize != 0 ||
        channels > kMostChannels || groups > kMostGroups)
      return 0;
    return whole.shape[0] <= 65535 && whole.shape[2] > 1 && pixels_are_even(x) &&
                   pixels_are_even(whole)
               ? 10
               : 0;
  }
  static std::size_t workspace(Device&, const heddle_op_call& call) {
    const heddle_tensor_info& whole = call.out[0]->info;
    return static_cast<std::size_t>(whole.shape[0] * attrs<heddle_group_norm_attrs>(call).groups *
                                    (parts(whole) + 1)) *
           sizeof(float2);
  }
  static void run(Stream& stream, const heddle_op_call& call, void* workspace) {
    const heddle_tensor_info& whole = out(call).info;
    const auto& a = attrs<heddle_group_norm_attrs>(call);
    if (device::element_count(whole) == 0) return;
    const auto count = static_cast<std::int32_t>(parts(whole));
    auto* const memory = static_cast<float2*>(workspace);
    const Groups g{view_of(call.in[0], whole),
                   view_of(call.in[1], in(call, 1).info),
                   view_of(call.in[2], in(call, 2).info),
                   view_of(call.out[0], whole),
                   whole.shape[1] * whole.shape[2],
                   static_cast<std::int32_t>(whole.shape[3]),
                   a.groups,
                   count,
                   static_cast<std::int32_t>(part_pixels(whole)),
                   a.activation,
                   static_cast<float>(a.eps),
                   memory,
                   memory + whole.shape[0] * count * a.groups};
    const dim3 grid(static_cast<unsigned>(count), static_cast<unsigned>(whole.shape[0]));
    if (threads(whole.shape[3]) == kThreads)
      launch_by_type<kThreads>(stream, g, grid);
    else
      launch_by_type<kManyThreads>(stream, g, grid);
  }
  template <int kBlock>
  static void launch_by_type(Stream& stream, const Groups& g, dim3 grid) {
    const Lies lies = how_lies(g.x);
    if (lies == Lies::kBf16 && how_lies(g.out) == lies)
      launch<Lies::kBf16, kBlock>(stream, g, grid);
    else if (lies == Lies::kF16 && how_lies(g.out) == lies)
      launch<Lies::kF16, kBlock>(stream, g, grid);
    else
      launch<Lies::kAnyhow, kBlock>(stream, g, grid);
  }
  template <Lies kLies, int kBlock>
  static void launch(Stream& stream, const Groups& g, dim3 grid) {
    part_statistics<kLies, kBlock><<<grid, kBlock, 0, stream.raw()>>>(g);
    whole_statistics<<<grid.y* static_cast<unsigned>(g.groups), kThreads, 0, stream.raw()>>>(g);
    if (g.activation == HEDDLE_ACT_SILU)
      normalise<kLies, HEDDLE_ACT_SILU, kBlock><<<grid, kBlock, 0, stream.raw()>>>(g);
    else
      normalise<kLies, -1, kBlock><<<grid, kBlock, 0, stream.raw()>>>(g);
  }
};

}  // namespace

constexpr heddle_kernel kVectorGroupNorm = kernel_table<VectorGroupNorm>();

}  // namespace heddle::cuda
