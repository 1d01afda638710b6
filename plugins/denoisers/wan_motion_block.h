// plugins/denoisers/wan_motion_block.h - the block of Wan 2.2 Animate that tells from pictures of a
// face how it moves: an encoder of pictures and a few directions, of which each picture is a sum.
// Source of the architecture: WanAnimateMotionEncoder of diffusers, after LIA (Wang et al., 2022).
// Pure, without an instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

inline constexpr int kMotionHalvings = 7;  // at most: of pictures of 512 pixels a side
inline constexpr int kMotionLinears = 5;

// face (1|B, 3, S, E, E), from -1 to 1, E = 4 times 2 for each halving -> motion (1|B, S, K) f32,
// or (1, 0, K) where there is no face. The filters' weights are scaled by their fan-in here, not in
// the file. A few frames at a time, so that what the first filters make takes little memory.
struct WanMotion {
  static constexpr Info info{"wan.motion", 1,  "Wan face motion",
                             "blocks/wan", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> face{"face", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight in{"in.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight in_bias{"in.bias"};
  static constexpr Weight first[kMotionHalvings] = {
      Weight{"half.0.conv1.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL},
      Weight{"half.1.conv1.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL},
      Weight{"half.2.conv1.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL},
      Weight{"half.3.conv1.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL},
      Weight{"half.4.conv1.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL},
      Weight{"half.5.conv1.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL},
      Weight{"half.6.conv1.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL}};
  static constexpr Weight first_bias[kMotionHalvings] = {
      Weight{"half.0.conv1.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL},
      Weight{"half.1.conv1.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL},
      Weight{"half.2.conv1.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL},
      Weight{"half.3.conv1.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL},
      Weight{"half.4.conv1.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL},
      Weight{"half.5.conv1.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL},
      Weight{"half.6.conv1.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL}};
  static constexpr Weight second[kMotionHalvings] = {
      Weight{"half.0.conv2.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL},
      Weight{"half.1.conv2.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL},
      Weight{"half.2.conv2.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL},
      Weight{"half.3.conv2.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL},
      Weight{"half.4.conv2.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL},
      Weight{"half.5.conv2.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL},
      Weight{"half.6.conv2.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL}};
  static constexpr Weight second_bias[kMotionHalvings] = {
      Weight{"half.0.conv2.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL},
      Weight{"half.1.conv2.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL},
      Weight{"half.2.conv2.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL},
      Weight{"half.3.conv2.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL},
      Weight{"half.4.conv2.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL},
      Weight{"half.5.conv2.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL},
      Weight{"half.6.conv2.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL}};
  static constexpr Weight beside[kMotionHalvings] = {
      Weight{"half.0.skip.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL},
      Weight{"half.1.skip.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL},
      Weight{"half.2.skip.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL},
      Weight{"half.3.skip.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL},
      Weight{"half.4.skip.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL},
      Weight{"half.5.skip.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL},
      Weight{"half.6.skip.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL}};
  static constexpr Weight last{"out.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight linear[kMotionLinears] = {
      Weight{"linear.0.weight", HEDDLE_USE_LINEAR}, Weight{"linear.1.weight", HEDDLE_USE_LINEAR},
      Weight{"linear.2.weight", HEDDLE_USE_LINEAR}, Weight{"linear.3.weight", HEDDLE_USE_LINEAR},
      Weight{"linear.4.weight", HEDDLE_USE_LINEAR}};
  static constexpr Weight linear_bias[kMotionLinears] = {
      Weight{"linear.0.bias"}, Weight{"linear.1.bias"}, Weight{"linear.2.bias"},
      Weight{"linear.3.bias"}, Weight{"linear.4.bias"}};
  // (K, directions), not yet at right angles to each other.
  static constexpr Weight directions{"directions"};
  static constexpr Output<Tensor> out{"motion"};
  static constexpr auto ports = heddle::ports(
      face, in, in_bias, first[0], first[1], first[2], first[3], first[4], first[5], first[6],
      first_bias[0], first_bias[1], first_bias[2], first_bias[3], first_bias[4], first_bias[5],
      first_bias[6], second[0], second[1], second[2], second[3], second[4], second[5], second[6],
      second_bias[0], second_bias[1], second_bias[2], second_bias[3], second_bias[4],
      second_bias[5], second_bias[6], beside[0], beside[1], beside[2], beside[3], beside[4],
      beside[5], beside[6], last, linear[0], linear[1], linear[2], linear[3], linear[4],
      linear_bias[0], linear_bias[1], linear_bias[2], linear_bias[3], linear_bias[4], directions,
      out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
