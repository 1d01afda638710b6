#include "ltx2_sizes.h"

namespace heddle::denoisers {

void check_ltx2_heads(const Checkpoint& file, std::int64_t width, std::int64_t heads) {
  if (width % (2 * heads) == 0 && width >= 6) return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              file.path() + ": a width of " + std::to_string(width) + " does not divide into " +
                  std::to_string(heads) +
                  " heads of pairs ('num_attention_heads', 'audio_num_attention_heads'). The file "
                  "is damaged or of another model.");
}

Ltx2Sizes read_ltx2_sizes(const Checkpoint& file, const LtxvNames& names, const std::string& prefix,
                          std::int64_t heads) {
  const auto size = [&](const std::string& name, std::uint32_t axis) {
    return file.size(names.one(name), axis);
  };
  const std::string first = "transformer_blocks.0." + prefix,
                    projection = prefix + "caption_projection.linear_1.weight";
  Ltx2Sizes s;
  s.heads = heads;
  s.width = size(prefix + "patchify_proj.weight", 0);
  s.channels = size(prefix + "patchify_proj.weight", 1);
  s.text = names.has(projection) ? size(projection, 1) : size(first + "attn2.to_k.weight", 1);
  s.mlp = size(first + "ff.net.0.proj.weight", 0);
  s.pieces = size(first + "scale_shift_table", 0);
  check_ltx2_heads(file, s.width, heads);
  if (s.pieces != 6 && s.pieces != 9)
    throw Error(HEDDLE_UNSUPPORTED, file.path() + ": '" + names.one(first) +
                                        "scale_shift_table' has " + std::to_string(s.pieces) +
                                        " rows; models of LTX 2 and 2.3 have 6 or 9.");
  return s;
}

}  // namespace heddle::denoisers
