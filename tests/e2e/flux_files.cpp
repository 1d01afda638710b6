#include "tests/e2e/flux_files.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace heddle::test {
namespace {

constexpr std::int64_t kToken = 64;       // 2x2 latent cells of 16 channels
constexpr std::int64_t kTimeWidth = 256;  // of the sinusoidal embedding
constexpr std::int64_t kPositions = 77, kBuckets = 32, kLatent = 16, kColours = 3;

class List {
 public:
  explicit List(std::string dtype) : dtype_(std::move(dtype)) {}

  void add(const std::string& name, std::vector<std::int64_t> shape) {
    all_.push_back({name, dtype_, std::move(shape)});
  }
  void linear(const std::string& module, std::int64_t rows, std::int64_t columns) {
    add(module + ".weight", {rows, columns});
    add(module + ".bias", {rows});
  }
  void conv(const std::string& module, std::int64_t out, std::int64_t in, std::int64_t side = 3) {
    add(module + ".weight", {out, in, side, side});
    add(module + ".bias", {out});
  }
  void norm(const std::string& module, std::int64_t width) {
    add(module + ".weight", {width});
    add(module + ".bias", {width});
  }
  void resnet(const std::string& module, std::int64_t before, std::int64_t after) {
    norm(module + ".norm1", before);
    conv(module + ".conv1", after, before);
    norm(module + ".norm2", after);
    conv(module + ".conv2", after, after);
    if (before != after) conv(module + ".nin_shortcut", after, before, 1);
  }
  void middle(const std::string& side, std::int64_t width) {
    resnet(side + ".mid.block_1", width, width);
    norm(side + ".mid.attn_1.norm", width);
    for (const char* name : {"q", "k", "v", "proj_out"})
      conv(side + ".mid.attn_1." + name, width, width, 1);
    resnet(side + ".mid.block_2", width, width);
  }

  FileTensors take() { return std::move(all_); }

 private:
  std::string dtype_;
  FileTensors all_;
};

void add_with_prefix(FileTensors& all, const std::string& prefix, const FileTensors& part) {
  for (const FileTensor& tensor : part) {
    if (tensor.name == "encoder.embed_tokens.weight") continue;  // "shared.weight" is the same
    all.push_back(tensor);
    all.back().name = prefix + tensor.name;
  }
}

// SplitMix64: a generator whose numbers are the same with every standard library.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  double between(double low, double high) {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return low + (high - low) * double((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

std::uint64_t seed_of(const std::string& name, std::uint64_t seed) {
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return seed;
}

constexpr int kLeastExponent = -6;  // of a normal number in e4m3; its mantissa has 3 bits

// The nearest number of e4m3. REQUIRES: |value| < 448.
float rounded_to_fp8(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  const double step = std::ldexp(1.0, std::max(exponent - 1, kLeastExponent) - 3);
  return float(std::nearbyint(value / step) * step);
}

char fp8_of_bf16(const char* bytes) {
  std::uint32_t bits =
      std::uint32_t(std::uint8_t(bytes[0])) << 16 | std::uint32_t(std::uint8_t(bytes[1])) << 24;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  int exponent = 0;
  const double mantissa = std::frexp(std::fabs(value), &exponent);  // from 1/2 to 1
  const int sign = std::signbit(value) ? 0x80 : 0;
  if (value == 0 || exponent - 1 < kLeastExponent)  // eighths of 2^-6
    return char(sign | int(std::ldexp(std::fabs(value), 3 - kLeastExponent)));
  const int eighths = int(mantissa * 16);
  return char(sign | (exponent - kLeastExponent) << 3 | (eighths - 8));
}

void put_bf16(std::string& bytes, float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  bytes += char(bits >> 16 & 0xff);
  bytes += char(bits >> 24);
}

}  // namespace

FileTensors flux_transformer(const FluxSize& size, Guidance guidance, const std::string& dtype) {
  List list(dtype);
  const std::int64_t hidden = size.hidden;
  list.linear("img_in", hidden, kToken);
  list.linear("txt_in", hidden, size.t5_width);
  const auto embedder = [&](const std::string& name, std::int64_t width) {
    list.linear(name + ".in_layer", hidden, width);
    list.linear(name + ".out_layer", hidden, hidden);
  };
  embedder("time_in", kTimeWidth);
  embedder("vector_in", size.clip_width);
  if (guidance == Guidance::embedded) embedder("guidance_in", kTimeWidth);
  for (std::int64_t i = 0; i < size.doubles; ++i)
    for (const char* side : {"img_", "txt_"}) {
      const std::string at = "double_blocks." + std::to_string(i) + "." + side;
      list.linear(at + "mod.lin", 6 * hidden, hidden);
      list.linear(at + "attn.qkv", 3 * hidden, hidden);
      list.add(at + "attn.norm.query_norm.scale", {size.head});
      list.add(at + "attn.norm.key_norm.scale", {size.head});
      list.linear(at + "attn.proj", hidden, hidden);
      list.linear(at + "mlp.0", size.mlp, hidden);
      list.linear(at + "mlp.2", hidden, size.mlp);
    }
  for (std::int64_t i = 0; i < size.singles; ++i) {
    const std::string at = "single_blocks." + std::to_string(i) + ".";
    list.linear(at + "modulation.lin", 3 * hidden, hidden);
    list.linear(at + "linear1", 3 * hidden + size.mlp, hidden);
    list.linear(at + "linear2", hidden, hidden + size.mlp);
    list.add(at + "norm.query_norm.scale", {size.head});
    list.add(at + "norm.key_norm.scale", {size.head});
  }
  list.linear("final_layer.adaLN_modulation.1", 2 * hidden, hidden);
  list.linear("final_layer.linear", kToken, hidden);
  return list.take();
}

FileTensors flux_clip(const FluxSize& size, const std::string& dtype) {
  List list(dtype);
  const std::int64_t width = size.clip_width;
  list.add("text_model.embeddings.token_embedding.weight", {size.clip_vocabulary, width});
  list.add("text_model.embeddings.position_embedding.weight", {kPositions, width});
  for (std::int64_t i = 0; i < size.clip_layers; ++i) {
    const std::string at = "text_model.encoder.layers." + std::to_string(i) + ".";
    for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"})
      list.linear(at + "self_attn." + name, width, width);
    list.linear(at + "mlp.fc1", 4 * width, width);
    list.linear(at + "mlp.fc2", width, 4 * width);
    list.norm(at + "layer_norm1", width);
    list.norm(at + "layer_norm2", width);
  }
  list.norm("text_model.final_layer_norm", width);
  return list.take();
}

FileTensors flux_t5(const FluxSize& size, const std::string& dtype) {
  List list(dtype);
  const std::int64_t width = size.t5_width, inner = 64 * size.t5_heads;
  list.add("shared.weight", {size.t5_vocabulary, width});
  list.add("encoder.embed_tokens.weight", {size.t5_vocabulary, width});
  for (std::int64_t i = 0; i < size.t5_layers; ++i) {
    const std::string at = "encoder.block." + std::to_string(i) + ".layer.";
    for (const char* name : {"q", "k", "v"})
      list.add(at + "0.SelfAttention." + name + ".weight", {inner, width});
    list.add(at + "0.SelfAttention.o.weight", {width, inner});
    if (i == 0)
      list.add(at + "0.SelfAttention.relative_attention_bias.weight", {kBuckets, size.t5_heads});
    list.add(at + "0.layer_norm.weight", {width});
    list.add(at + "1.DenseReluDense.wi_0.weight", {size.t5_mlp, width});
    list.add(at + "1.DenseReluDense.wi_1.weight", {size.t5_mlp, width});
    list.add(at + "1.DenseReluDense.wo.weight", {width, size.t5_mlp});
    list.add(at + "1.layer_norm.weight", {width});
  }
  list.add("encoder.final_layer_norm.weight", {width});
  return list.take();
}

FileTensors flux_autoencoder(const FluxSize& size, const std::string& dtype) {
  List list(dtype);
  const auto& channels = size.vae_channels;
  const int levels = int(channels.size());
  list.conv("encoder.conv_in", channels[0], kColours);
  std::int64_t before = channels[0];
  for (int level = 0; level < levels; ++level) {
    const std::string at = "encoder.down." + std::to_string(level);
    for (int i = 0; i < 2; ++i) {
      list.resnet(at + ".block." + std::to_string(i), before, channels[std::size_t(level)]);
      before = channels[std::size_t(level)];
    }
    if (level + 1 < levels) list.conv(at + ".downsample.conv", before, before);
  }
  list.middle("encoder", before);
  list.norm("encoder.norm_out", before);
  list.conv("encoder.conv_out", 2 * kLatent, before);
  list.conv("decoder.conv_in", before, kLatent);
  list.middle("decoder", before);
  for (int level = levels - 1; level >= 0; --level) {
    const std::string at = "decoder.up." + std::to_string(level);
    for (int i = 0; i < 3; ++i) {
      list.resnet(at + ".block." + std::to_string(i), before, channels[std::size_t(level)]);
      before = channels[std::size_t(level)];
    }
    if (level > 0) list.conv(at + ".upsample.conv", before, before);
  }
  list.norm("decoder.norm_out", before);
  list.conv("decoder.conv_out", kColours, before);
  return list.take();
}

FileTensors all_in_one(const FluxParts& parts) {
  FileTensors all;
  add_with_prefix(all, "model.diffusion_model.", parts.transformer);
  add_with_prefix(all, "text_encoders.clip_l.transformer.", parts.clip);
  const std::int64_t width = parts.clip.front().shape.back();
  FileTensor projection{"text_encoders.clip_l.transformer.text_projection.weight",
                        parts.clip.front().dtype,
                        {width, width}};
  FileTensor scale{"text_encoders.clip_l.logit_scale", "F32", {}};
  if (!parts.clip.front().bytes.empty()) {  // data only where the others have some
    projection.bytes.assign(bytes_of(projection), '\0');
    scale.bytes = bytes_of_floats({4.6f});
  }
  all.push_back(std::move(projection));
  all.push_back(std::move(scale));
  add_with_prefix(all, "text_encoders.t5xxl.transformer.", parts.t5);
  add_with_prefix(all, "vae.", parts.autoencoder);
  return all;
}

void fill_at_random(FileTensors& tensors, std::uint64_t seed) {
  for (FileTensor& tensor : tensors) {
    if (tensor.dtype != "BF16") throw std::logic_error(tensor.name + " is not bf16");
    const std::string& name = tensor.name;
    Numbers numbers(seed_of(name == "encoder.embed_tokens.weight" ? "shared.weight" : name, seed));
    const bool is_norm = tensor.shape.size() == 1 && !name.ends_with(".bias");
    std::uint64_t count = 1, row = 1;
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      count *= std::uint64_t(tensor.shape[axis]);
      if (axis > 0) row *= std::uint64_t(tensor.shape[axis]);
    }
    // A table is looked up, not multiplied with.
    const bool is_table = name.find("embed") != std::string::npos || name == "shared.weight" ||
                          name.find("relative_attention_bias") != std::string::npos;
    const double reach = is_table                   ? 1.0
                         : tensor.shape.size() == 1 ? 0.1
                                                    : std::sqrt(3.0 / double(row));
    tensor.bytes.clear();
    for (std::uint64_t i = 0; i < count; ++i)
      put_bf16(tensor.bytes,
               rounded_to_fp8((is_norm ? 1.0 : 0.0) + numbers.between(-reach, reach)));
  }
}

FileTensors in_fp8(FileTensors tensors) {
  for (FileTensor& tensor : tensors) {
    tensor.dtype = "F8_E4M3";
    std::string bytes;
    for (std::size_t at = 0; at < tensor.bytes.size(); at += 2)
      bytes += fp8_of_bf16(tensor.bytes.data() + at);
    tensor.bytes = std::move(bytes);
  }
  return tensors;
}

std::uint64_t bytes_of(const FileTensors& tensors) {
  std::uint64_t bytes = 0;
  for (const FileTensor& tensor : tensors) bytes += bytes_of(tensor);
  return bytes;
}

}  // namespace heddle::test
