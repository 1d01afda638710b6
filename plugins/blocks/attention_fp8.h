// Attention in 8 bits: what devices do whose option "attention_dtype" is "fp8_e4m3fn". The operands
// of both products are numbers of f8_e4m3 times scales in f32, and the sums are of f32.
//
//   k', v'   = k and v less the mean of up to 256 rows of their head, evenly spaced: row
//              i * rows / count. For k the softmax does not change by that (SageAttention: Zhang et
//              al. 2024), for v the mean is added to the result
//   rounded  = f8(x / scale), scale = max(|x|) / 448, at least 2^-60: of a row of q, of 64 keys of
//   a
//              head of k' and of v' (the first 64, the next ones and so on)
//   s_ij     = (q_i k'_j) * scale * log2(e) + log2(scale of v' at j)
//   weight   = f8(2^(s_ij - m_i + 8)), m_i = max over j of s_ij; a device that goes over the keys
//              once may take one that is up to 0.8 less
//   out_i    = sum of weight * f8(v'_j) / sum of 2^(s_ij - m_i + 8) / (scale of v' at j) + mean of
//   v
//
// The scale of a block of v' is a part of its weights, so that both sums go over all blocks in one
// unit.
#pragma once

#include <cstdint>
#include <string>

#include "heddle/device.hpp"

namespace heddle::blocks {

constexpr std::int64_t kFp8Block = 64;    // keys that have one scale
constexpr std::int64_t kFp8Sample = 256;  // rows that a mean is of, at most
constexpr std::int64_t kFp8LeastKeys = 256;
constexpr float kFp8Largest = 448, kFp8LeastScale = 0x1p-60f;
constexpr float kFp8Top = 8;  // log2 of the largest weight
// Behind the model's name: what such a device computes is not what others of the model compute, and
// is kept, measured and placed apart.
constexpr const char* kFp8AttentionModel = ", attention in fp8_e4m3fn";

// "default" or "fp8_e4m3fn"; throws for anything else. Returns whether it is the latter.
inline bool asks_for_fp8_attention(const device::Options& options) {
  const std::string dtype = options.text("attention_dtype", "default");
  if (dtype != "default" && dtype != "fp8_e4m3fn")
    device::fail(HEDDLE_INVALID_ARGUMENT, "option 'attention_dtype' is '", dtype,
                 "', has to be default or fp8_e4m3fn");
  return dtype == "fp8_e4m3fn";
}

// Whether a call is one for 8 bits. Not so: attentions to few keys, as to the tokens of a text,
// which take no time, those with a bias, a causal mask or a cap, and head widths that no model of
// pictures has. REQUIRES: check_attention() has passed.
inline bool is_for_fp8_attention(const heddle_op_call& call) {
  const auto& attrs = *static_cast<const heddle_attention_attrs*>(call.attrs);
  const heddle_tensor_info &q = call.in[0]->info, &k = call.in[1]->info, &v = call.in[2]->info;
  const std::int64_t width = q.shape[3];
  return device::operand(call, 3) == nullptr && attrs.causal == 0 && attrs.cap == 0 &&
         attrs.scale > 0 && (width == 64 || width == 128) && v.shape[3] == width &&
         k.shape[1] >= kFp8LeastKeys;
}

}  // namespace heddle::blocks
