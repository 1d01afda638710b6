// The tensors of a FLUX.1 pipeline in single files, by name, shape and element type, as they were
// published: of the true size, for files that are all header, or so small that every workflow runs
// in a second. Independent of what the loaders know. Values; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/safetensors_writer.h"

namespace heddle::test {

using FileTensors = std::vector<FileTensor>;

enum class Guidance { none, embedded };  // schnell, dev

// The widths of all four parts. The default is FLUX.1.
struct FluxSize {
  std::int64_t hidden = 3072, head = 128, mlp = 12288, doubles = 19, singles = 38;
  std::int64_t clip_width = 768, clip_layers = 12, clip_vocabulary = 49408;
  std::int64_t t5_width = 4096, t5_mlp = 10240, t5_heads = 64, t5_layers = 24,
               t5_vocabulary = 32128;
  std::array<std::int64_t, 4> vae_channels{128, 256, 512, 512};
};

// The least that the loaders take: heads of 64 in CLIP and norms of 32 groups in the autoencoder.
// The vocabularies are those of the shipped tokenizers.
inline constexpr FluxSize kSmallFlux{.hidden = 128,
                                     .head = 64,
                                     .mlp = 256,
                                     .doubles = 2,
                                     .singles = 2,
                                     .clip_width = 64,
                                     .clip_layers = 2,
                                     .clip_vocabulary = 703,
                                     .t5_width = 64,
                                     .t5_mlp = 96,
                                     .t5_heads = 2,
                                     .t5_layers = 2,
                                     .t5_vocabulary = 147,
                                     .vae_channels = {32, 32, 32, 64}};

FileTensors flux_transformer(const FluxSize&, Guidance, const std::string& dtype);
FileTensors flux_clip(const FluxSize&, const std::string& dtype);
FileTensors flux_t5(const FluxSize&, const std::string& dtype);  // the token table twice
FileTensors flux_autoencoder(const FluxSize&, const std::string& dtype);

// The parts of a pipeline: as files of their own, or together in one.
struct FluxParts {
  FileTensors transformer, clip, t5, autoencoder;
};

// As ComfyUI saves a checkpoint: every part below its prefix, T5's token table once, and beside
// CLIP its projection and logit scale, on which no picture of FLUX depends.
FileTensors all_in_one(const FluxParts&);

// Fills bf16 tensors with numbers that a network of this kind passes on at about unit size: norms
// near 1, rows of matrices scaled by their length. All of them are numbers of fp8 (e4m3), too. The
// same name and seed give the same bytes.
void fill_at_random(FileTensors&, std::uint64_t seed);

// The same numbers in fp8 (e4m3). REQUIRES: fill_at_random() made them, or there are no data.
FileTensors in_fp8(FileTensors);

std::uint64_t bytes_of(const FileTensors&);

}  // namespace heddle::test
