// Pictures and their sound as one point of a sampler. A LATENT of both has a list of two tensors,
// the pictures (B, C, F, H, W) and the sound (B, C', L, K); samplers work on one tensor (B, 1, N),
// as ComfyUI packs them: of each item all numbers of the pictures, then those of the sound. Only
// what a model is given, and what it makes, are two tensors again. One call's thread.
#pragma once

#include <memory_resource>
#include <vector>

#include <heddle/node.hpp>

#include "latent.h"

namespace heddle::samplers {

// The model's input beside "x", and its output beside "out".
inline constexpr const char* kSound = "audio";
inline constexpr const char* kSoundOut = "audio_out";

// Samples, or masks, of both.
bool is_pair(const Value& samples);
// The two. Throws where the list has another length.
std::vector<Tensor> parts_of(const Value& samples);

// As read_latent(), for a model that makes both; any other latent is an error.
Latent read_pair(Context& ctx, const Value& record, const LatentFormat& format,
                 std::pmr::memory_resource& memory);
// The noise of the pictures, then that of the sound, by one generator, as ComfyUI draws it.
std::pmr::vector<float> pair_noise(const Latent& latent, std::uint64_t seed,
                                   std::pmr::memory_resource& memory);

// Part `index` of a packed point, contiguous and its own.
Tensor part_of_pair(Context& ctx, const Tensor& point, const std::vector<Shape>& parts,
                    std::size_t index);
// Both, as a list, the sound as records have it.
Value unpacked(Context& ctx, const Tensor& point, const Latent& latent);

// A point as inputs of the model. parts: empty where it is one tensor.
Value point_input(Context& ctx, const Tensor& point, const std::vector<Shape>& parts);
// What the model made of it, packed where that is two tensors.
Tensor point_output(Context& ctx, const Value& made);

// As samplers pack them: (items, 1, numbers).
Shape packed_shape(const std::vector<Shape>& parts);

}  // namespace heddle::samplers
