// Tiny autoencoders of LTX-Video 0.9 and LTX 2 whose weights follow from their names, latents and
// pictures for them, and workflows that decode and encode by pieces.
#pragma once

#include "tests/plugins/nodes/staged_fixture.h"

namespace heddle::test {

struct LtxvPieces : StagedFixture {
  // "0.9.0" halves sizes by strides, "0.9.1" and "0.9.5" are told a noise level, the first draws in
  // its residual blocks, too; the decoder of "2.3" is causal, the others look ahead.
  static constexpr const char* kVersions[] = {"0.9.0", "0.9.1", "0.9.5", "2", "2.3"};
  static constexpr const char* kCausalConfig =
      R"({\"vae\": {\"causal_decoder\": true, \"decoder_spatial_padding_mode\": \"zeros\"}})";
  const std::filesystem::path given = folder / "given.safetensors";

  LtxvPieces() {
    for (const std::string version : kVersions) {
      const bool is_first = version == "0.9.0";
      std::vector<FileTensor> tensors = seeded_model(is_first ? "flow" : version, false,
                                                     is_first ? "ltxv_vae" : "ltxv_later_vae");
      for (FileTensor& tensor : tensors)
        if (tensor.name.ends_with("std-of-means"))
          tensor = seeded_tensor(tensor.name, tensor.shape, "std.norm.weight");
      if (version == "0.9.1" || version == "0.9.5")
        tensors.push_back(
            {"decoder.timestep_scale_multiplier", "F32", {}, bytes_of_floats({1000.0f})});
      FileMetadata metadata;
      if (version == "2.3") metadata.push_back({"config", kCausalConfig});
      std::filesystem::create_directories(folder / "models/vae");
      write_safetensors(file(version), tensors, metadata);
    }
    std::vector<FileTensor> tensors;
    for (const std::int64_t frames : {2, 14})
      for (const std::int64_t channels : {8, 128})
        tensors.push_back(numbers(cat("z.", channels, ".", frames), {1, channels, frames, 2, 2}));
    tensors.push_back(numbers("pictures", {42, 64, 32, 3}, 0.5f, 0.5f));
    tensors.push_back(numbers("clip.image", {42, 64, 32, 3}, 1.0f, 0.0f, "pictures"));
    write_safetensors(given, tensors);
  }

  std::filesystem::path file(const std::string& version) const {
    return folder / "models/vae" / (version + ".safetensors");
  }
  static FileTensor numbers(const std::string& name, const std::vector<std::int64_t>& shape,
                            float factor = 1.0f, float offset = 0.0f,
                            const std::string& seed = "") {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    const std::uint32_t start = seeded::hash_of(seed.empty() ? name : seed);
    return {name, "F32", shape, seeded::number_bytes(start, std::size_t(count), factor, offset)};
  }
  std::string input(const char* type, const std::string& name) const {
    return cat(R"({"class_type": ")", type, R"(", "inputs": {"path": ")", given.string(),
               R"(", "name": ")", name, R"("}})");
  }
  static std::string flow(const std::string& version, const std::string& type,
                          const std::string& in, const std::string& more,
                          const std::string& hints = "") {
    return cat(R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": ")", version,
               R"(.safetensors"}}, "in": )", in, R"(, "out": {"class_type": ")", type,
               R"(", "inputs": {"vae": ["vae", 0], )", more, "}", hints, "}, ", kLook, "}");
  }
  std::string decode(const std::string& version, int frames, bool whole = false,
                     const std::string& hints = "") const {
    // A tile that holds all of a video is decoded at once.
    const char* more =
        whole
            ? R"("samples": ["in", 0], "tile_size": 512, "overlap": 64, "temporal_size": 4096, "temporal_overlap": 8)"
            : R"("samples": ["in", 0])";
    return flow(version, whole ? "VAEDecodeTiled" : "VAEDecode",
                input("test.latent", cat("z.", version == "0.9.0" ? 128 : 8, ".", frames)), more,
                hints);
  }
  std::string encode(const std::string& version, const std::string& hints = "") const {
    return flow(version, "VAEEncode", input("test.image", "pictures"), R"("pixels": ["in", 0])",
                hints);
  }
};

}  // namespace heddle::test
