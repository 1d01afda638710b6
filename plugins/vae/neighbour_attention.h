// plugins/vae/neighbour_attention.h - attention in which a cell of a video sees those around it.
// Used in blocks, as they are traced; any thread.
#pragma once

#include <heddle/node.hpp>

#include <array>

namespace heddle::vae {

// Frames, rows and columns that a cell sees.
using Neighbourhood = std::array<std::int64_t, 3>;

// q (T', H, W, n, d), k, v (T, H, W, n, d) without gaps -> (T', H, W, n d), all in the compute
// type; the queries are those of T' frames from frame `begin` on. A cell sees as many cells along
// each axis as the neighbourhood says, or all of them where there are not so many: those around it,
// half of them before it; at an end of an axis those at that end (NATTEN's na3d). Queries are taken
// in squares of rows and columns, each with the keys around the square, so that what is computed
// grows with the video as it does; a bias hides the keys that a query is too far from.
Tensor attended_by_neighbours(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                              const Neighbourhood& sees, std::int64_t begin = 0);

}  // namespace heddle::vae
