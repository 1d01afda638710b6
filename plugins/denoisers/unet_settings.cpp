#include "unet_settings.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "plugins/blocks/playground_latents.h"
#include "preview_factors.h"

namespace heddle::denoisers {
namespace {

constexpr double kSdLatentScale = 0.18215, kSdxlLatentScale = 0.13025;
constexpr double kX4LatentScale = 0.08333, kX4FirstBeta = 0.0001, kX4LastBeta = 0.02;
constexpr std::int64_t kX4Picture = 3, kX4MostNoise = 350, kX4Downscale = 4;
constexpr std::int64_t kBaseNumbers = 6, kRefinerNumbers = 5;
constexpr std::int64_t kLotusNumbers = 4;
constexpr std::int64_t kVideoNumbers = 3;
constexpr std::int64_t kCameraLabel = 256 + 512 + 512;  // of SV3D that is told cameras
// Where files of SV3D have the autoencoder of pictures that draws their frames.
constexpr const char* kCameraAutoencoder = "conditioner.embedders.1.encoder.";
// Above this a model of SD 2.x is one that predicts velocities: ComfyUI's rule, by a bias whose
// numbers are known to spread so.
constexpr double kVelocitySpread = 0.09;

// The last transformer, which is in the last stage of those that are published.
const UnetPart* last_transformer(const UnetNames& names) {
  if (names.outputs().empty()) return nullptr;
  for (const UnetPart& part : names.outputs().back())
    if (part.kind == UnetPart::Kind::transformer) return &part;
  return nullptr;
}

const UnetPart* any_transformer(const UnetNames& names) {
  for (const auto* stages : {&names.inputs(), &names.outputs()})
    for (const UnetStage& stage : *stages)
      for (const UnetPart& part : stage)
        if (part.kind == UnetPart::Kind::transformer) return &part;
  return nullptr;
}

bool spreads_as_of_velocities(const Checkpoint& file, const UnetNames& names) {
  const UnetPart* last = last_transformer(names);
  if (last == nullptr) return false;
  const std::string bias = names.in_part(*last, "transformer_blocks.0.norm1", "bias");
  std::vector<double> numbers(std::size_t(file.size(bias, 0)));
  check(service<heddle_checkpoint_service>().numbers(
      file.raw(), bias.c_str(), std::uint32_t(numbers.size()), numbers.data()));
  double mean = 0, square = 0;
  for (const double number : numbers) mean += number / double(numbers.size());
  for (const double number : numbers)
    square += (number - mean) * (number - mean) / double(numbers.size());
  return std::sqrt(square) > kVelocitySpread;
}

void add_latents(const UnetSizes& sizes, bool is_playground, Blocks& graph) {
  const bool is_sdxl = sizes.numbers > 0;
  graph.setting("latent_channels", sizes.latent);
  graph.setting("latent_downscale", sizes.levels > 0 ? kX4Downscale : std::int64_t{8});
  if (is_playground) {
    graph.setting("latent_means", blocks::listed(blocks::kPlaygroundMeans));
    graph.setting("latent_deviations", blocks::listed(blocks::kPlaygroundDeviations));
  } else {
    graph.setting("latent_scale", is_sdxl            ? kSdxlLatentScale
                                  : sizes.levels > 0 ? kX4LatentScale
                                                     : kSdLatentScale);
    graph.setting("latent_shift", 0.0);
  }
  add_preview_factors(is_playground      ? LatentKind::playground
                      : is_sdxl          ? LatentKind::sdxl
                      : sizes.levels > 0 ? LatentKind::sd_x4
                                         : LatentKind::sd,
                      sizes.latent, graph);
}

const char* text_encoder_of(const UnetSizes& sizes) {
  if (sizes.numbers == kBaseNumbers) return "CLIP-L and CLIP-G (DualCLIPLoader, type sdxl)";
  if (sizes.numbers == kRefinerNumbers) return "CLIP-G (CLIPLoader, type stable_diffusion)";
  return sizes.is_linear ? "OpenCLIP's H (CLIPLoader, type stable_diffusion)"
                         : "CLIP-L (CLIPLoader, type stable_diffusion)";
}

}  // namespace

UnetSizes unet_sizes(const Checkpoint& file, const UnetNames& names) {
  UnetSizes sizes;
  const auto size = [&](const char* module, std::uint32_t axis) {
    return file.size(names.top(module, "weight"), axis);
  };
  sizes.channels = size("input_blocks.0.0", 0);
  sizes.waves = size("time_embed.0", 1);
  sizes.vector = size("time_embed.2", 0);
  const bool draws = names.has("out.2");
  sizes.latent = draws ? size("out.2", 0) : size("input_blocks.0.0", 1);
  sizes.more = size("input_blocks.0.0", 1) - sizes.latent;
  const UnetPart* transformer = any_transformer(names);
  if (transformer == nullptr && draws)
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() +
                    ": the UNet has no transformers, so no text changes what it draws. "
                    "Use one of Stable Diffusion or SDXL.");
  if (transformer != nullptr) {
    sizes.context =
        file.size(names.in_part(*transformer, "transformer_blocks.0.attn2.to_k", "weight"), 1);
    sizes.is_linear = file.info(names.in_part(*transformer, "proj_in", "weight")).rank == 2;
  }
  if (names.has("label_emb")) {
    sizes.levels = size("label_emb", 0);
    if (sizes.more != kX4Picture)
      throw Error(HEDDLE_UNSUPPORTED,
                  file.path() + ": the UNet knows " + std::to_string(sizes.levels) +
                      " classes of pictures and reads " + std::to_string(sizes.more) +
                      " channels beside the latent. Of such models only Stable Diffusion's x4 "
                      "upscaler is supported, which reads 3.");
    if (sizes.levels <= kX4MostNoise)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() + ": '" + names.top("label_emb", "weight") + "' has " +
                      std::to_string(sizes.levels) +
                      " rows, and the x4 upscaler is told of noise from 0 to " +
                      std::to_string(kX4MostNoise) + ", a row each. The file is damaged.");
  }
  if (!names.has("label_emb.0.0")) return sizes;
  sizes.label = size("label_emb.0.0", 1);
  if (names.mixes_frames()) {
    const bool is_told_cameras = sizes.label == kCameraLabel;
    sizes.numbers = is_told_cameras ? 0 : sizes.label / kUnetSizeWaves;
    const bool is_known = is_told_cameras || sizes.label == kVideoNumbers * kUnetSizeWaves ||
                          sizes.label == kUnetSizeWaves;
    if (is_known && sizes.more == sizes.latent) return sizes;
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() + ": the UNet reads " + std::to_string(sizes.label) +
                    " numbers about the video and " + std::to_string(sizes.more) +
                    " channels beside the latent. Of such models Stable Video Diffusion is "
                    "supported, which reads 768 and 4, and SV3D, which reads 256 or 1280 and 4.");
  }
  if (sizes.label == kLotusNumbers) {
    sizes.is_lotus = true;
    if (sizes.more > 0)
      throw Error(HEDDLE_UNSUPPORTED,
                  file.path() +
                      ": a UNet of Lotus that reads noise beside the picture is not supported. Use "
                      "one that reads the picture alone, such as lotus-depth-d.");
    return sizes;
  }
  // The refiner's pooled text is as wide as its states, which are CLIP-G's alone.
  const std::int64_t behind = kRefinerNumbers * kUnetSizeWaves;
  sizes.numbers = sizes.label - sizes.context == behind ? kRefinerNumbers : kBaseNumbers;
  // unCLIP's embeddings, each number with one about its noise: OpenCLIP's H are as wide as the
  // states of texts, CLIP-L's three quarters of that.
  const std::int64_t thirds = 2 * sizes.label / std::max<std::int64_t>(sizes.context, 1);
  const bool is_of_pictures = sizes.numbers == kBaseNumbers && sizes.context > 0 &&
                              (thirds == 3 || thirds == 4) && sizes.label % 2 == 0 &&
                              2 * sizes.label == thirds * sizes.context;
  if (is_of_pictures) {
    sizes.numbers = 0;
    return sizes;
  }
  if (sizes.label <= sizes.numbers * kUnetSizeWaves)
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() + ": the UNet reads " + std::to_string(sizes.label) +
                    " numbers beside the text, which are neither SDXL's, nor those of its refiner "
                    "or of unCLIP. Use a UNet of Stable Diffusion or SDXL.");
  return sizes;
}

void add_text_settings(const UnetSizes& sizes, Blocks& graph) {
  if (sizes.context > 0) graph.setting("context_width", sizes.context);
  graph.setting("text_encoder", text_encoder_of(sizes));
  if (sizes.label == 0) return;
  if (sizes.is_lotus) {  // waves of 1 and 0: depth or normals, whichever it was trained for
    const double numbers[] = {std::sin(1.0), 0, std::cos(1.0), 1};
    graph.setting("task_numbers", blocks::listed(numbers));
    return;
  }
  const std::int64_t pooled = sizes.label - sizes.numbers * kUnetSizeWaves;
  graph.setting("pooled_width", pooled);
  graph.setting("picture_width", sizes.numbers == 0 ? pooled / 2 : pooled);
  if (sizes.numbers > 0) graph.setting("size_numbers", sizes.numbers);
}

void add_video_settings(const UnetSizes& sizes, Blocks& graph) {
  graph.setting("family", "svd");
  graph.setting("latent_channels", sizes.latent);
  graph.setting("latent_downscale", std::int64_t{8});
  graph.setting("latent_scale", kSdLatentScale);
  graph.setting("latent_shift", 0.0);
  add_preview_factors(LatentKind::sd, sizes.latent, graph);
  graph.setting("context_width", sizes.context);
  graph.setting("text_encoder",
                "the vision tower beside it (ImageOnlyCheckpointLoader, "
                "SVD_img2vid_Conditioning)");
  if (sizes.numbers > 0) graph.setting("size_numbers", sizes.numbers);
  if (sizes.numbers == 0) graph.setting("reads_cameras", true);
  if (sizes.numbers != kVideoNumbers) graph.setting("autoencoder_prefix", kCameraAutoencoder);
  graph.setting("guidance_embedded", false);
  graph.setting("concat_channels", sizes.more);
  graph.setting("concat_raw", true);
  graph.setting("sampling", "v_prediction");
  graph.setting("noise_table", "continuous_edm");
  graph.setting("noise_lowest", 0.002);
  graph.setting("noise_highest", 700.0);
}

void add_unet_settings(const Checkpoint& file, const Value& config, const UnetNames& names,
                       const UnetSizes& sizes, Blocks& graph) {
  const auto is_marked = [&](const char* mark) {
    return file.has(mark) || config.get<bool>(mark, false);
  };
  const auto number = [&](const char* mark, double otherwise) {
    return file.has(mark) ? file.number(mark) : config.get<double>(mark, otherwise);
  };
  const bool is_sdxl = sizes.numbers > 0;
  const bool is_playground = is_sdxl && is_marked("edm_mean");
  graph.setting("family", "unet");
  add_latents(sizes, is_playground, graph);
  add_text_settings(sizes, graph);
  graph.setting("guidance_embedded", false);
  if (sizes.more > 0) graph.setting("concat_channels", sizes.more);
  // Pix2pix was trained with latents in the autoencoder's own units.
  if (sizes.more == sizes.latent && number("edm_vpred.sigma_max", 0) == 0)
    graph.setting("concat_raw", true);

  if (sizes.is_lotus || sizes.levels > 0) {
    graph.setting("sampling", sizes.is_lotus ? "img_to_img" : "v_prediction");
    graph.setting("noise_table", "discrete");
    if (sizes.is_lotus) return;
    graph.setting("noise_first", kX4FirstBeta);
    graph.setting("noise_last", kX4LastBeta);
    graph.setting("concat_levels", kX4MostNoise);
    return;
  }
  const bool is_velocity =
      is_sdxl ? is_marked("v_pred")
              : sizes.is_linear && sizes.more == 0 && spreads_as_of_velocities(file, names);
  if (is_playground || (is_sdxl && number("edm_vpred.sigma_max", 0) > 0)) {
    graph.setting("sampling", is_playground ? "edm" : "v_prediction");
    graph.setting("noise_table", "continuous_edm");
    graph.setting("noise_lowest", is_playground ? 0.002 : number("edm_vpred.sigma_min", 0.002));
    graph.setting("noise_highest", is_playground ? 80.0 : number("edm_vpred.sigma_max", 120));
    return;
  }
  graph.setting("sampling", is_velocity ? "v_prediction" : "eps");
  const bool is_zero_snr = is_velocity && is_marked("ztsnr");
  graph.setting("noise_table", is_zero_snr ? "discrete_zero_snr" : "discrete");
}

}  // namespace heddle::denoisers
