// plugins/denoisers/radiance_blocks.h - how Chroma Radiance reads and draws pixels; all between are
// Chroma's blocks (chroma_blocks.h). Source of the architecture: lodestones' published model. A
// square of p x p pixels is a token. Behind the last block each pixel of a square goes through
// small networks whose matrices are made of the square's token ("NeRF"), and knows its place by
// waves. Shapes: B batch, C colours, H, W pixels, S squares in rows of squares, P = p^2 pixels of a
// square in rows, X numbers of a pixel, R X those between the matrices, F waves along a side, T
// text tokens, D the model's width, N steps. All is f32 but the matrices that are made. Sides that
// are no multiple of p are completed by the picture's first rows and columns, as ComfyUI does. Pure
// and without an instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// x (B, C, H, W) -> tokens (B, S, D).
struct RadianceImageIn {
  static constexpr Info info{"radiance.image_in", 1,  "Chroma Radiance image projection",
                             "blocks/chroma",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Weight weight{"weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"img"};
  static constexpr auto ports = heddle::ports(x, weight, bias, out);
  static void execute(Context& ctx);
};

// The waves of the pixels of a square, (P, F^2): at pixel (r, c) number i F + j is
// cos(pi i c') cos(pi j r') / (1 + i j), where r' and c' go from 0 to 1.
struct RadianceWaves {
  static constexpr Info info{"radiance.waves", 1,  "Chroma Radiance places of pixels",
                             "blocks/chroma",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> patch{"patch", Widget{.number = 16}};
  static constexpr Input<std::int64_t> count{"count", Widget{.number = 8}, "F"};
  static constexpr Output<Tensor> out{"waves"};
  static constexpr auto ports = heddle::ports(x, patch, count, out);
  static void execute(Context& ctx);
};

// x (B, C, H, W), waves (P, F^2) -> pixels (B, S, P X): colours and waves side by side, projected.
struct RadiancePixelsIn {
  static constexpr Info info{"radiance.pixels_in", 1,  "Chroma Radiance pixels",
                             "blocks/chroma",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> waves{"waves"};
  static constexpr Input<std::int64_t> patch{"patch", Widget{.number = 16}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"pixels"};
  static constexpr auto ports = heddle::ports(x, waves, patch, weight, bias, out);
  static void execute(Context& ctx);
};

// pixels (B, S, P X), hidden (B, T + S, D) -> pixels: for each square, x + (SiLU(n G) * (n V)) O
// with n = norm(x). G, V (X, R X) and O (R X, X) are what a linear layer makes of its token, each
// column divided by its length.
struct RadianceNerf {
  static constexpr Info info{"radiance.nerf", 1,  "Chroma Radiance networks of squares",
                             "blocks/chroma", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> pixels{"pixels"};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Weight norm{"norm"};
  static constexpr Output<Tensor> out{"pixels"};
  static constexpr auto ports = heddle::ports(pixels, hidden, eps, weight, bias, norm, out);
  static void execute(Context& ctx);
};

// timestep (N) above 0 -> 1 / timestep (N, 1, 1).
struct RadianceLevel {
  static constexpr Info info{"radiance.level", 1,  "Chroma Radiance noise level",
                             "blocks/chroma",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> timestep{"timestep"};
  static constexpr Output<Tensor> out{"inverse"};
  static constexpr auto ports = heddle::ports(timestep, out);
  static void execute(Context& ctx);
};

// pixels (B, S, P X) -> out (B, C, H, W) in the picture's element type: normalised, and by a filter
// of 3x3 pixels, or by a matrix, made colours. Given `inverse` (1, 1, 1), they are the picture
// itself, and out is the velocity towards the noise, (x - colours) inverse.
template <bool is_filtered>
struct RadianceFinalOf {
  static constexpr Input<Tensor> pixels{"pixels"};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> inverse{"inverse", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> patch{"patch", Widget{.number = 16}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm{"norm"};
  static constexpr Weight weight{"weight", is_filtered ? HEDDLE_USE_CONV2D : HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports =
      heddle::ports(pixels, x, inverse, patch, eps, norm, weight, bias, out);
  static void execute(Context& ctx);
};
struct RadianceFilterFinal : RadianceFinalOf<true> {
  static constexpr Info info{"radiance.filter_final", 1,  "Chroma Radiance last filter",
                             "blocks/chroma",         "", HEDDLE_NODE_BLOCK};
};
struct RadianceLinearFinal : RadianceFinalOf<false> {
  static constexpr Info info{"radiance.linear_final", 1,  "Chroma Radiance last layer",
                             "blocks/chroma",         "", HEDDLE_NODE_BLOCK};
};

}  // namespace heddle::denoisers
