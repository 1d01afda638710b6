#include "radiance.h"

#include <algorithm>
#include <cmath>

#include "flux_blocks.h"
#include "plugins/blocks/slots.h"
#include "radiance_blocks.h"

namespace heddle::denoisers {
namespace {

constexpr const char* kEmbedder = "nerf_image_embedder.embedder.0";
constexpr const char* kFilterHead = "nerf_final_layer_conv";
constexpr const char* kLinearHead = "nerf_final_layer";

std::string scale_of(const FluxNames& names, const std::string& module) {
  return names.prefix() + module + ".norm.scale";
}
std::string network(int index) { return "nerf_blocks." + std::to_string(index); }

}  // namespace

FindModule radiance_modules(const FluxNames& names) {
  return {[&names](std::string_view module, const char* kind) {
    return names.top(module == "img_in" ? "img_in_patch" : module, kind);
  }};
}

std::optional<RadianceSizes> find_radiance(const Checkpoint& file, const Value& config,
                                           const FluxNames& names) {
  const std::string& prefix = names.prefix();
  const std::string first = prefix + "img_in_patch.weight",
                    embedder = prefix + kEmbedder + ".weight", norm = scale_of(names, network(0));
  const int depth = names.network_depth();
  if (depth == 0 && !file.has(first)) return std::nullopt;
  for (const std::string& needed : {first, embedder, norm})
    if (!file.has(needed))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() + ": '" + needed +
                      "' is missing, which Chroma Radiance has. The file is damaged, or another "
                      "model's.");
  RadianceSizes r{};
  const heddle_tensor_info& given = file.info(first);
  const Shape filter(given.shape, given.shape + given.rank);
  if (filter.size() != 4 || filter[1] < 1 || filter[2] != filter[3] || filter[2] < 2)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": '" + first + "' is " +
                                             blocks::shape_text(filter) +
                                             ", no filter of squares of pixels");
  r.colours = filter[1];
  r.patch = filter[2];
  r.pixel_width = file.size(norm, 0);
  const std::int64_t read = file.size(embedder, 1) - r.colours;
  r.waves = std::int64_t(std::lround(std::sqrt(double(std::max<std::int64_t>(read, 0)))));
  r.made = file.size(prefix + network(0) + ".param_generator.weight", 0);
  r.depth = depth;
  if (r.waves < 1 || r.waves * r.waves != read)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": '" + embedder + "' reads " + std::to_string(read) +
                    " waves, which are no square of those along a side. The file is damaged.");
  constexpr std::int64_t kMostWide = 1 << 16;  // so that products of widths are numbers
  if (r.pixel_width < 1 || r.pixel_width > kMostWide || r.made < 1 ||
      r.made % (3 * r.pixel_width * r.pixel_width) != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": '" + prefix + network(0) + ".param_generator.weight' makes " +
                    std::to_string(r.made) + " numbers, no three matrices of pixels of " +
                    std::to_string(r.pixel_width) + " numbers. The file is damaged.");
  r.is_filtered = file.has(scale_of(names, kFilterHead));
  r.makes_picture = file.has(prefix + "__x0__");
  r.is_sequential =
      file.has(prefix + "__sequential__") || config.get<bool>("sequential_text", false);
  return r;
}

Source RadianceParts::embed_image(const Source& x) const {
  using B = RadianceImageIn;
  Block block = graph_.add<B>("embed.image");
  block.link(B::x, x);
  blocks::Slots slots(file_, block, "embed.image");
  slots.fill(B::weight, names_.top("img_in_patch", "weight"),
             {s_.hidden, r_.colours, r_.patch, r_.patch});
  slots.fill(B::bias, names_.top("img_in_patch", "bias"), {s_.hidden});
  return block[B::out];
}

AttentionInputs RadianceParts::add_rope(const Source& x, const Source& context,
                                        const Source& positions) const {
  using B = FluxRope;
  Block block = graph_.add<B>("embed.rope");
  block.link(B::x, x).link(B::context, context).link(B::positions, positions);
  block.set(B::patch, r_.patch).set(B::sequential, r_.is_sequential);
  block.set(B::axis_0, s_.axes[0]).set(B::axis_1, s_.axes[1]).set(B::axis_2, s_.axes[2]);
  return {block[B::cos], block[B::sin], {}};
}

template <class B>
Source RadianceParts::add_final(const Source& pixels, const Source& x, const Source& timestep,
                                const char* module, const char* layer, const Shape& shape) const {
  Block block = graph_.add<B>("nerf.final");
  block.link(B::pixels, pixels).link(B::x, x).set(B::patch, r_.patch);
  if (r_.makes_picture) {
    Block level = graph_.add<RadianceLevel>("nerf.level");
    level.link(RadianceLevel::timestep, timestep);
    block.link(B::inverse, level[RadianceLevel::out]);
  }
  blocks::Slots slots(file_, block, "nerf.final");
  slots.fill(B::norm, scale_of(names_, module), {r_.pixel_width});
  const std::string last = std::string(module) + "." + layer;
  slots.fill(B::weight, names_.top(last, "weight"), shape);
  slots.fill(B::bias, names_.top(last, "bias"), {r_.colours});
  return block[B::out];
}

Source RadianceParts::draw(const Source& hidden, const Source& x, const Source& timestep) const {
  Block waves = graph_.add<RadianceWaves>("nerf.waves");
  waves.link(RadianceWaves::x, x);
  waves.set(RadianceWaves::patch, r_.patch).set(RadianceWaves::count, r_.waves);
  using In = RadiancePixelsIn;
  Block first = graph_.add<In>("nerf.in");
  first.link(In::x, x).link(In::waves, waves[RadianceWaves::out]).set(In::patch, r_.patch);
  blocks::Slots first_slots(file_, first, "nerf.in");
  DualStreams::linear(
      first_slots, In::weight, In::bias,
      [&](const char* kind) { return names_.top(kEmbedder, kind); }, r_.pixel_width,
      r_.colours + r_.waves * r_.waves);
  Source pixels = first[In::out];
  using B = RadianceNerf;
  for (int i = 0; i < r_.depth; ++i) {
    const std::string path = "nerf." + std::to_string(i) + ".block";
    Block block = graph_.add<B>(path);
    block.link(B::pixels, pixels).link(B::hidden, hidden);
    blocks::Slots slots(file_, block, path);
    DualStreams::linear(
        slots, B::weight, B::bias, [&](const char* kind) { return names_.in_network(i, kind); },
        r_.made, s_.hidden);
    slots.fill(B::norm, scale_of(names_, network(i)), {r_.pixel_width});
    pixels = block[B::out];
  }
  if (!r_.is_filtered)
    return add_final<RadianceLinearFinal>(pixels, x, timestep, kLinearHead, "linear",
                                          {r_.colours, r_.pixel_width});
  return add_final<RadianceFilterFinal>(pixels, x, timestep, kFilterHead, "conv",
                                        {r_.colours, r_.pixel_width, 3, 3});
}

}  // namespace heddle::denoisers
