// The kernels of conv3d/1, as kernels.h has those of the others. Filters (O, C, F, R, S) are stored
// as (O, F, R, S, C), the layout kChannelsLast. Constants.
#pragma once

#include "heddle/abi/device.h"
#include "heddle/abi/frame_ops.h"
#include "plugins/cpu/op_check.h"

namespace heddle::cuda {

extern const heddle_kernel kConv3d;        // gemm.cu
extern const heddle_kernel kFewConv3d;     // conv_few.cu
extern const heddle_kernel kHopperConv3d;  // conv_hopper.cu: Hopper alone
extern const heddle_kernel kSummedConv3d;  // conv_summed.cpp: kernels of conv2d/1
extern const heddle_kernel kCudnnConv3d;   // in builds with cuDNN only: cudnn_frames.cpp

// Whether HEDDLE_CUDA_FRAMES is "sums": kSummedConv3d alone computes what it can, to compare it
// with the others. Read once.
bool sums_frames();

// A convolution of pictures as one of clips of a frame each.
inline heddle_tensor_info with_frames(heddle_tensor_info info, std::uint32_t at) {
  if (info.rank == 5) return info;
  for (std::uint32_t axis = info.rank++; axis > at; --axis) {
    info.shape[axis] = info.shape[axis - 1];
    info.stride[axis] = info.stride[axis - 1];
  }
  info.shape[at] = 1;
  info.stride[at] = 0;
  return info;
}
inline heddle_conv3d_attrs over_frames(const heddle_conv2d_attrs& a) {
  return {{1, a.stride[0], a.stride[1]},
          {0, a.padding[0], a.padding[1], 0, a.padding[2], a.padding[3]}};
}
inline heddle_conv3d_attrs over_frames(const heddle_conv3d_attrs& a) { return a; }

}  // namespace heddle::cuda
