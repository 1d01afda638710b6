// plugins/blocks/sparse_config.h - what a MODEL and its configuration tell of sparse attention
// (BlockSparseAttention; plugins/denoisers/minimax_cubes.h). Any thread.
#pragma once

namespace heddle::blocks {

// A model's setting: the configuration that it was built of. Only models whose layers can attend
// by cubes have it.
inline constexpr const char* kSparseConfig = "sparse_config";
// Of the configuration, a record: "share" of the cubes that a query sees, "least_tokens" below
// which attention is dense, "dense", a list of the numbers of layers that always are.
inline constexpr const char* kSparse = "sparse";
// A setting, a record: "start", "end", the levels between which the blocks at this path count.
inline constexpr const char* kSparseRange = "sparse_range";
inline constexpr const char* kCubesPath = "cubes";
// A setting: what a run of the model warns of; empty: nothing.
inline constexpr const char* kSparseNote = "sparse_note";

}  // namespace heddle::blocks
