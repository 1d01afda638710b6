// What decoders of videos draw that are told a noise level: models whose setting noise_planes is a
// list of numbers of planes. Inputs: "noise" of the latent's shape, and "noise.0", "noise.1", ...
// (n, h 2^i, w 2^i), n the list's number i; none for 0. Those that make pixels of noise have a list
// cell_noise of three numbers f, s and n; their input "cell_noise" is (B, f F - f + 1, s h, s w,
// n). ComfyUI draws other numbers in each run; these are the same in all, so that a workflow gives
// the same bytes. One call's thread.
#pragma once

#include <heddle/node.hpp>
#include <vector>

namespace heddle::vae {

// Normal numbers: the nth of a stream is sqrt(-2 ln a) cos(2 pi b), where a, in (0, 1], and b, in
// [0, 1), are the upper and the lower half of the hash of 2^40 stream + n by splitmix64.
float drawn_number(std::uint64_t stream, std::uint64_t n);

// Sets these inputs for latents z (B, C, F, h, w) or (B, C, h, w), on the device of the call. Does
// nothing for other models.
void set_decoder_noise(Context& ctx, const Value& decoder, const Tensor& z, Record& inputs);

// Of "cell_noise" for latents of z's shape what is of `frames` frames of one video, from `begin`
// on: (1, frames, s h, s w, n). Throws where the decoder has none.
Tensor drawn_cells(Context& ctx, const Value& decoder, const Shape& z, std::int64_t video,
                   std::int64_t begin, std::int64_t frames);

// The same before a run, by z's shape.
void tell_decoder_noise(const Value& decoder, const Shape& z, std::vector<Infer::Named>& inputs);

}  // namespace heddle::vae
