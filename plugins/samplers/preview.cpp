#include "preview.h"

#include <algorithm>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/node.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>

namespace heddle::samplers {

std::optional<PreviewMap> PreviewMap::of(const Value& settings) {
  const Value rows = settings.field("preview_factors");
  if (!rows || !rows.is(HEDDLE_KIND_LIST) || rows.count() < 2) return std::nullopt;
  PreviewMap map;
  for (std::uint32_t r = 0; r < rows.count(); ++r) {
    const Value row = rows.item(r);
    if (!row.is(HEDDLE_KIND_LIST) || row.count() != 3) return std::nullopt;
    for (std::uint32_t c = 0; c < 3; ++c) {
      const Value number = row.item(c);
      if (!number.is(HEDDLE_KIND_FLOAT) && !number.is(HEDDLE_KIND_INT)) return std::nullopt;
      map.factors_.push_back(float(number.as<double>()));
    }
  }
  return map;
}

std::vector<std::uint8_t> PreviewMap::pixels(std::span<const float> latents) const {
  const std::size_t positions = latents.size() / channels();
  const float* const constant = factors_.data() + 3 * channels();
  std::vector<std::uint8_t> pixels;
  pixels.reserve(3 * positions);
  for (std::size_t p = 0; p < positions; ++p)
    for (std::size_t colour = 0; colour < 3; ++colour) {
      float sum = constant[colour];
      for (std::size_t c = 0; c < channels(); ++c)
        sum += latents[c * positions + p] * factors_[3 * c + colour];
      // Not a number is black.
      pixels.push_back(sum > 0 ? std::uint8_t(std::min(sum, 1.0f) * 255.0f + 0.5f) : 0);
    }
  return pixels;
}

namespace {

// (4 channels, height, width), where four channels one after another are a cell of 2 x 2, to
// (channels, 2 height, 2 width).
std::vector<float> unpacked(std::span<const float> cells, std::size_t height, std::size_t width) {
  std::vector<float> latents(cells.size());
  const std::size_t places = height * width;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t channel = i / places, y = i % places / width, x = i % width;
    const std::size_t row = 2 * y + channel % 4 / 2, column = 2 * x + channel % 2;
    latents[(channel / 4 * 2 * height + row) * 2 * width + column] = cells[i];
  }
  return latents;
}

// Why a call failed; that the run was cancelled is thrown on.
template <class Call>
std::string fault_of(Call&& call) {
  try {
    call();
    return {};
  } catch (const Failed& failed) {
    const heddle_host& host = *services.host;
    if (host.status_code(failed.status) == HEDDLE_CANCELLED) throw;
    const std::string why = host.status_message(failed.status);
    host.status_free(failed.status);
    return why;
  } catch (const Error& error) {
    if (error.code == HEDDLE_CANCELLED) throw;
    return error.what();
  }
}

// The path of "<name>_decoder" with whatever ending it has; empty where it is nowhere.
std::string decoder_file(Context& ctx, const std::string& name) {
  for (const char* ending : {".safetensors", ".sft", ".pth", ".pt", ".ckpt", ".bin"}) {
    heddle_value* path = nullptr;
    heddle_status* const status = service<heddle_folders_service>().find(
        ctx.raw(), "vae_approx", (name + "_decoder" + ending).c_str(), &path);
    if (status == nullptr) return Value::adopt(path).as<std::string>();
    services.host->status_free(status);
  }
  return "";
}

// (1, height, width, 3) about [-1, 1], to (height, width, 3).
std::vector<std::uint8_t> pixels_of(Context& ctx, const Tensor& image) {
  HostMemory memory(ctx);
  std::pmr::vector<float> numbers(std::size_t(image.count()), &memory);
  read_to<float>(ctx, image, numbers);
  std::vector<std::uint8_t> pixels;
  pixels.reserve(numbers.size());
  for (const float number : numbers) {  // not a number is black
    const float share = number > -1 ? std::min((number + 1) / 2, 1.0f) : 0.0f;
    pixels.push_back(std::uint8_t(share * 255.0f + 0.5f));
  }
  return pixels;
}

}  // namespace

Previews::Previews(Context& ctx, const Value& settings) : ctx_(ctx) {
  if (!ctx.wants_preview()) return;
  map_ = PreviewMap::of(settings);
  const auto name = settings.get<std::string>("preview_decoder", "");
  if (ctx.preview_method() != HEDDLE_PREVIEW_TAESD || name.empty()) return;
  const std::string file = decoder_file(ctx, name);
  if (file.empty()) {
    ctx.warn("previews are less exact: there is no '" + name +
             "_decoder.safetensors' (or .pth) in models/vae_approx. Download it there.");
    return;
  }
  // Scaled latents are what it was trained on.
  const std::string why = fault_of([&] {
    const Value decoder = build_model(ctx, "vae.decoder", Checkpoint::open(file), Record().value());
    const auto reads = model_settings(decoder).get<std::int64_t>("latent_channels", 0),
               drawn = settings.get<std::int64_t>("latent_channels", 0);
    if (reads != drawn)
      throw Error(HEDDLE_INVALID_ARGUMENT, file + " decodes latents of " + std::to_string(reads) +
                                               " channels, and the model's have " +
                                               std::to_string(drawn) + ".");
    decoder_ = decoder;
  });
  if (!why.empty()) ctx.warn("previews are less exact: " + why);
}

void Previews::show(const Tensor& given, std::uint32_t step, std::uint32_t step_count) {
  if ((!map_ && !decoder_) || given.rank() < 4 || given.size(0) == 0) return;
  const bool is_video = given.rank() == 5 && given.size(2) > 0;
  const Tensor latents =
      is_video ? ops::contiguous(ctx_, given.slice(2, 0, 1))
                     .reshape({given.size(0), given.size(1), given.size(3), given.size(4)})
               : given;
  if (latents.rank() != 4) return;
  if (!show_decoded(latents.slice(0, 0, 1), step, step_count))
    show_mapped(latents.slice(0, 0, 1), step, step_count);
}

// False: it was not. A decoder that fails once is not asked again.
bool Previews::show_decoded(const Tensor& latents, std::uint32_t step, std::uint32_t step_count) {
  if (!decoder_) return false;
  std::vector<std::uint8_t> pixels;
  Shape shape;
  const std::string why = fault_of([&] {
    const Tensor image = call_model(ctx_, decoder_, Record().set("z", value_of(latents)).value())
                             .get<Tensor>("image", {});
    shape = image.shape();
    if (shape.size() != 4 || shape[0] != 1 || shape[3] != 3)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "the decoder of previews makes no pictures of three colours. Put TAESD's file "
                  "into models/vae_approx.");
    pixels = pixels_of(ctx_, image);
  });
  if (!why.empty()) {
    decoder_ = {};
    ctx_.warn("previews are less exact: " + why);
    return false;
  }
  ctx_.preview({sizeof(heddle_preview), checked_cast<std::uint32_t>(shape[2], "width"),
                checked_cast<std::uint32_t>(shape[1], "height"), step, step_count, pixels.data()});
  return true;
}

void Previews::show_mapped(const Tensor& latents, std::uint32_t step, std::uint32_t step_count) {
  if (!map_) return;
  const Shape shape = latents.shape();
  const bool is_packed = std::size_t(shape[1]) == 4 * map_->channels();
  if (!is_packed && std::size_t(shape[1]) != map_->channels()) return;
  HostMemory memory(ctx_);
  std::pmr::vector<float> first(std::size_t(latents.count()), &memory);
  read_to<float>(ctx_, latents, first);
  std::vector<float> apart;
  if (is_packed) apart = unpacked(first, std::size_t(shape[2]), std::size_t(shape[3]));
  const std::vector<std::uint8_t> pixels =
      map_->pixels(is_packed ? std::span<const float>(apart) : std::span<const float>(first));
  const std::int64_t side = is_packed ? 2 : 1;
  ctx_.preview({sizeof(heddle_preview), checked_cast<std::uint32_t>(side * shape[3], "width"),
                checked_cast<std::uint32_t>(side * shape[2], "height"), step, step_count,
                pixels.data()});
}

}  // namespace heddle::samplers
