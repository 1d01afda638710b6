#include "tests/e2e/single_files.h"

#include <array>
#include <map>
#include <regex>
#include <stdexcept>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/tensor_file.h"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;
using Entry = TensorFile::Entry;
using Tensors = std::map<std::string, Entry>;
using Names = std::vector<std::pair<const char*, const char*>>;  // diffusers', original

constexpr std::array kKinds{".weight", ".bias"};

// All tensors of one part, from one file or several.
Tensors read_part(const fs::path& folder) {
  Tensors all;
  for (const auto& file : fs::directory_iterator(folder))
    if (file.path().extension() == ".safetensors")
      all.merge(Tensors(TensorFile(file.path()).entries()));
  if (all.empty()) throw std::runtime_error(folder.string() + ": there are no tensors");
  return all;
}

// One part's tensors, moved one by one from their old names to their new ones.
class Mover {
 public:
  explicit Mover(Tensors from) : from_(std::move(from)) {}

  bool has(const std::string& name) const { return from_.contains(name); }

  void move(const std::string& from, const std::string& to) { put(to, take(from)); }
  void move_module(const std::string& from, const std::string& to) {
    for (const char* kind : kKinds) move(from + kind, to + kind);
  }
  // Several modules as one, their rows one after another.
  void stack(const std::string& at, const std::vector<const char*>& from, const std::string& to) {
    for (const char* kind : kKinds) {
      Entry all = take(at + from.front() + kind);
      for (std::size_t i = 1; i < from.size(); ++i) {
        const Entry next = take(at + from[i] + kind);
        all.shape[0] += next.shape[0];
        all.bytes += next.bytes;
      }
      put(to + kind, std::move(all));
    }
  }
  void swap_halves(const std::string& from, const std::string& to) {
    for (const char* kind : kKinds) {
      Entry entry = take(from + kind);
      const std::size_t half = entry.bytes.size() / 2;
      entry.bytes = entry.bytes.substr(half) + entry.bytes.substr(0, half);
      put(to + kind, std::move(entry));
    }
  }

  FileTensors finish() {
    if (!from_.empty()) throw std::runtime_error("no new name for " + from_.begin()->first);
    return std::move(to_);
  }

 private:
  Entry take(const std::string& name) {
    auto node = from_.extract(name);
    if (node.empty()) throw std::runtime_error("there is no tensor " + name);
    return std::move(node.mapped());
  }
  void put(const std::string& name, Entry entry) {
    to_.push_back({name, entry.dtype, std::move(entry.shape), std::move(entry.bytes)});
  }

  Tensors from_;
  FileTensors to_;
};

void move_double(Mover& mover, const std::string& from, const std::string& to) {
  const Names modules{
      {"norm1.linear", "img_mod.lin"},        {"norm1_context.linear", "txt_mod.lin"},
      {"attn.to_out.0", "img_attn.proj"},     {"attn.to_add_out", "txt_attn.proj"},
      {"ff.net.0.proj", "img_mlp.0"},         {"ff.net.2", "img_mlp.2"},
      {"ff_context.net.0.proj", "txt_mlp.0"}, {"ff_context.net.2", "txt_mlp.2"}};
  for (const auto& [old_name, name] : modules) mover.move_module(from + old_name, to + name);
  mover.stack(from + "attn.", {"to_q", "to_k", "to_v"}, to + "img_attn.qkv");
  mover.stack(from + "attn.", {"add_q_proj", "add_k_proj", "add_v_proj"}, to + "txt_attn.qkv");
  const Names norms{{"norm_q", "img_attn.norm.query_norm"},
                    {"norm_k", "img_attn.norm.key_norm"},
                    {"norm_added_q", "txt_attn.norm.query_norm"},
                    {"norm_added_k", "txt_attn.norm.key_norm"}};
  for (const auto& [old_name, name] : norms)
    mover.move(from + "attn." + old_name + ".weight", to + name + ".scale");
}

void move_single(Mover& mover, const std::string& from, const std::string& to) {
  mover.move_module(from + "norm.linear", to + "modulation.lin");
  mover.stack(from, {"attn.to_q", "attn.to_k", "attn.to_v", "proj_mlp"}, to + "linear1");
  mover.move_module(from + "proj_out", to + "linear2");
  mover.move(from + "attn.norm_q.weight", to + "norm.query_norm.scale");
  mover.move(from + "attn.norm_k.weight", to + "norm.key_norm.scale");
}

FileTensors original_transformer(Tensors tensors) {
  Mover mover(std::move(tensors));
  const Names modules{{"x_embedder", "img_in"},
                      {"context_embedder", "txt_in"},
                      {"time_text_embed.timestep_embedder.linear_1", "time_in.in_layer"},
                      {"time_text_embed.timestep_embedder.linear_2", "time_in.out_layer"},
                      {"time_text_embed.text_embedder.linear_1", "vector_in.in_layer"},
                      {"time_text_embed.text_embedder.linear_2", "vector_in.out_layer"},
                      {"time_text_embed.guidance_embedder.linear_1", "guidance_in.in_layer"},
                      {"time_text_embed.guidance_embedder.linear_2", "guidance_in.out_layer"},
                      {"proj_out", "final_layer.linear"}};
  for (const auto& [old_name, name] : modules)
    if (mover.has(std::string(old_name) + ".weight")) mover.move_module(old_name, name);
  // diffusers has (scale, shift) where the first publishers had (shift, scale).
  mover.swap_halves("norm_out.linear", "final_layer.adaLN_modulation.1");
  const auto each_layer = [&](const std::string& from, const std::string& probe, auto&& move,
                              const std::string& to) {
    for (int i = 0; mover.has(from + std::to_string(i) + probe); ++i)
      move(mover, from + std::to_string(i) + ".", to + std::to_string(i) + ".");
  };
  each_layer("transformer_blocks.", ".norm1.linear.weight", move_double, "double_blocks.");
  each_layer("single_transformer_blocks.", ".norm.linear.weight", move_single, "single_blocks.");
  return mover.finish();
}

FileTensors original_clip(const Tensors& tensors) {
  FileTensors all;
  for (const auto& [name, entry] : tensors) {
    const bool complete = name.starts_with("text_model.") || name == "text_projection.weight";
    all.push_back({complete ? name : "text_model." + name, entry.dtype, entry.shape, entry.bytes});
  }
  return all;
}

FileTensors original_t5(const Tensors& tensors) {
  FileTensors all;
  for (const auto& [name, entry] : tensors) {
    all.push_back({name, entry.dtype, entry.shape, entry.bytes});
    if (name == "shared.weight")
      all.push_back({"encoder.embed_tokens.weight", entry.dtype, entry.shape, entry.bytes});
  }
  return all;
}

std::string autoencoder_name(const std::string& name, int levels) {
  std::string changed = name;
  // Levels of the decoder count from the other end.
  static const std::regex up(R"(decoder\.up_blocks\.(\d+)\.(.*))");
  if (std::smatch match; std::regex_match(name, match, up)) {
    const int level = levels - 1 - std::stoi(match[1]);
    changed = "decoder.up." + std::to_string(level) + "." + match[2].str();
  }
  static const std::vector<std::pair<std::regex, const char*>> changes{
      {std::regex(R"(down_blocks\.)"), "down."},
      {std::regex(R"((down|up)\.(\d+)\.resnets\.)"), "$1.$2.block."},
      {std::regex(R"((down|up)samplers\.0)"), "$1sample"},
      {std::regex(R"(mid_block\.resnets\.0)"), "mid.block_1"},
      {std::regex(R"(mid_block\.resnets\.1)"), "mid.block_2"},
      {std::regex(R"(mid_block\.attentions\.0\.group_norm)"), "mid.attn_1.norm"},
      {std::regex(R"(mid_block\.attentions\.0\.to_out\.0)"), "mid.attn_1.proj_out"},
      {std::regex(R"(mid_block\.attentions\.0\.to_)"), "mid.attn_1."},
      {std::regex("conv_norm_out"), "norm_out"},
      {std::regex("conv_shortcut"), "nin_shortcut"}};
  for (const auto& [pattern, to] : changes) changed = std::regex_replace(changed, pattern, to);
  return changed;
}

FileTensors original_autoencoder(const Tensors& tensors) {
  int levels = 0;
  while (
      tensors.contains("decoder.up_blocks." + std::to_string(levels) + ".resnets.0.conv1.weight"))
    ++levels;
  FileTensors all;
  for (const auto& [name, entry] : tensors) {
    FileTensor tensor{autoencoder_name(name, levels), entry.dtype, entry.shape, entry.bytes};
    const bool is_matrix =
        tensor.name.find(".attn_1.") != std::string::npos && tensor.shape.size() == 2;
    if (is_matrix) tensor.shape.insert(tensor.shape.end(), {1, 1});  // filters of one pixel there
    all.push_back(std::move(tensor));
  }
  return all;
}

}  // namespace

FluxParts original_parts(const fs::path& folder) {
  return {original_transformer(read_part(folder / "transformer")),
          original_clip(read_part(folder / "text_encoder")),
          original_t5(read_part(folder / "text_encoder_2")),
          original_autoencoder(read_part(folder / "vae"))};
}

FileMetadata latent_metadata(const fs::path& folder) {
  const std::string path = (folder / "vae/config.json").string();
  const engine::Json config = engine::parse_json(read_text(path), path);
  FileMetadata metadata{{"format", "pt"}};
  for (const char* key : {"scaling_factor", "shift_factor"})
    metadata.emplace_back(key, engine::write_json(config.at(key)));
  return metadata;
}

}  // namespace heddle::test
