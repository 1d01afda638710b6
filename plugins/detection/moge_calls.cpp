#include "moge_calls.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>

namespace heddle::detection {
namespace {

using blocks::GridSize;
constexpr std::int64_t kTableTaps = 4, kLinearTaps = 2;

}  // namespace

LineWeights table_taps(std::int64_t table, std::int64_t count, bool as_it_is) {
  constexpr float kA = -0.75f, kMore = 0.1f;
  LineWeights made{count, std::vector<std::int32_t>(std::size_t(kTableTaps * count)),
                   std::vector<float>(std::size_t(kTableTaps * count))};
  const auto near = [](float t) { return ((kA + 2) * t - (kA + 3)) * t * t + 1; };
  const auto far = [](float t) { return ((kA * t - 5 * kA) * t + 8 * kA) * t - 4 * kA; };
  const auto scale = float(double(table) / (double(count) + double(kMore)));
  for (std::int64_t i = 0; i < count; ++i) {
    const float at = as_it_is ? float(i) : scale * (float(i) + 0.5f) - 0.5f, first = std::floor(at),
                t = at - first;
    const float shares[] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
    for (std::int64_t tap = 0; tap < kTableTaps; ++tap) {
      const auto to = std::size_t(tap * count + i);
      made.ids[to] =
          std::int32_t(std::clamp<std::int64_t>(std::int64_t(first) + tap - 1, 0, table - 1));
      made.shares[to] = as_it_is ? float(tap == 1) : shares[tap];
    }
  }
  return made;
}

LineWeights linear_taps(std::int64_t lines, std::int64_t count) {
  LineWeights made{count, std::vector<std::int32_t>(std::size_t(kLinearTaps * count)),
                   std::vector<float>(std::size_t(kLinearTaps * count))};
  const float scale = float(lines) / float(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const float at = std::max(scale * (float(i) + 0.5f) - 0.5f, 0.0f), first = std::floor(at);
    const auto begin = std::min(std::int64_t(first), lines - 1);
    made.ids[std::size_t(i)] = std::int32_t(begin);
    made.ids[std::size_t(count + i)] = std::int32_t(std::min(begin + 1, lines - 1));
    made.shares[std::size_t(i)] = 1 - (at - first);
    made.shares[std::size_t(count + i)] = at - first;
  }
  return made;
}

MogeModel::MogeModel(const Value& value) : model(value.field("model")) {
  const Value settings = model.is(HEDDLE_KIND_MODEL) ? model_settings(model) : Value();
  if (settings.get<std::string>("family", "") != "moge")
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "moge_model: this is no MoGe. Link LoadMoGeModel with its file, such as "
                "moge_2_vitl_normal_fp16.safetensors.");
  const auto number = [&](const char* key) { return settings.get<std::int64_t>(key, 0); };
  version = number("version");
  table = number("table");
  patch = number("patch");
  growth = number("growth");
  has_normal = settings.get<bool>("has_normal", false);
}

MogeModel::Sizes MogeModel::sizes(const GridSize& picture, std::int64_t level) const {
  constexpr double kLevels = 9;
  const double least = 1200, most = version == 1 ? 2500 : 3600,
               tokens = std::floor(least + double(level) / kLevels * (most - least));
  Sizes sizes{picture, {}, {}, {}};
  const double height = double(picture.height), width = double(picture.width);
  if (version == 1) {
    const double factor = std::sqrt(tokens * double(patch * patch) / (height * width));
    sizes.inner = {std::int64_t(height * factor), std::int64_t(width * factor)};
    sizes.squares = {sizes.inner.height / patch, sizes.inner.width / patch};
    sizes.made = sizes.inner;
  } else {
    const double aspect = width / height;
    sizes.squares = {blocks::rounded(std::sqrt(tokens / aspect)),
                     blocks::rounded(std::sqrt(tokens * aspect))};
    sizes.made = {sizes.squares.height * growth, sizes.squares.width * growth};
  }
  if (sizes.squares.height < 1 || sizes.squares.width < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "image: pictures of " + std::to_string(picture.width) + " x " +
                    std::to_string(picture.height) +
                    " pixels are too long and narrow for MoGe, which would see no square of a "
                    "side. Cut them.");
  return sizes;
}

std::vector<Infer::Named> MogeModel::shapes(const Sizes& sizes, std::int64_t count) const {
  const auto [rows, columns] = sizes.squares;
  std::vector<Infer::Named> all{{"picture", HEDDLE_F32, {count, rows * patch, columns * patch, 3}},
                                {"row_ids", HEDDLE_I32, {kTableTaps, rows}},
                                {"row_shares", HEDDLE_F32, {kTableTaps, rows}},
                                {"column_ids", HEDDLE_I32, {kTableTaps, columns}},
                                {"column_shares", HEDDLE_F32, {kTableTaps, columns}},
                                {"span", HEDDLE_F32, {2}}};
  if (version == 1)
    for (const auto& [name, side] : {std::pair{"final_row", sizes.inner.height},
                                     std::pair{"final_column", sizes.inner.width}}) {
      all.push_back({std::string(name) + "_ids", HEDDLE_I32, {kLinearTaps, side}});
      all.push_back({std::string(name) + "_shares", HEDDLE_F32, {kLinearTaps, side}});
    }
  return all;
}

MogeCalls::MogeCalls(Context& ctx, const MogeModel& model, const MogeModel::Sizes& sizes)
    : ctx_(ctx), model_(model), sizes_(sizes), memory_(ctx) {
  const auto [rows, columns] = sizes.squares;
  const bool as_it_is = rows * columns == model.table * model.table;
  put_taps("row", table_taps(model.table, rows, as_it_is));
  put_taps("column", table_taps(model.table, columns, as_it_is));
  const GridSize& seen = model.version == 1 ? sizes.inner : sizes.picture;
  const double diagonal = std::hypot(double(seen.height), double(seen.width));
  const float span[] = {float(double(seen.width) / diagonal),
                        float(double(seen.height) / diagonal)};
  lines_.emplace_back("span", ctx.upload({2}, HEDDLE_F32, span));
  if (model.version != 1) return;
  put_taps("final_row", linear_taps(model.growth * rows, sizes.inner.height));
  put_taps("final_column", linear_taps(model.growth * columns, sizes.inner.width));
}

void MogeCalls::put_taps(const std::string& name, const LineWeights& weights) {
  const Shape shape{std::int64_t(weights.ids.size()) / weights.count, weights.count};
  lines_.emplace_back(name + "_ids", ctx_.upload(shape, HEDDLE_I32, weights.ids.data()));
  lines_.emplace_back(name + "_shares", ctx_.upload(shape, HEDDLE_F32, weights.shares.data()));
}

void MogeCalls::resized(const float* from, const GridSize& size, const GridSize& to,
                        std::int64_t inner, blocks::Resampling method, float* out) {
  if (size == to) {
    std::copy_n(from, size.height * size.width * inner, out);
    return;
  }
  blocks::resample(blocks::Source::of(from, {1, size, inner}), to, method, out, memory_, [&] {
    if (ctx_.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
  });
}

void MogeCalls::enlarge(const float* from, std::int64_t inner, float* to) {
  resized(from, sizes_.made, sizes_.picture, inner, blocks::Resampling::bilinear, to);
}

MogeMade MogeCalls::look(const Tensor& pictures) {
  using blocks::Resampling;
  const std::int64_t count = pictures.size(0);
  const auto numbers = [](const GridSize& size) {
    return std::size_t(checked_product({size.height, size.width, 3}, "the picture"));
  };
  const GridSize squares{sizes_.squares.height * model_.patch, sizes_.squares.width * model_.patch};
  MogeNumbers pixels(numbers(sizes_.picture), &memory_), inner(&memory_),
      all(std::size_t(count) * numbers(squares), &memory_);
  if (model_.version == 1) inner.resize(numbers(sizes_.inner));
  for (std::int64_t i = 0; i < count; ++i) {
    read_to<float>(ctx_, pictures.slice(0, i, i + 1).slice(3, 0, 3), pixels);
    const float* from = pixels.data();
    GridSize size = sizes_.picture;
    if (model_.version == 1) {
      resized(from, size, sizes_.inner, 3, Resampling::bicubic_antialiased, inner.data());
      from = inner.data();
      size = sizes_.inner;
    }
    resized(from, size, squares, 3, Resampling::bilinear_antialiased,
            all.data() + std::size_t(i) * numbers(squares));
  }
  Record inputs;
  for (const auto& [name, tensor] : lines_) inputs.set(name.c_str(), value_of(tensor));
  inputs.set("picture", value_of(ctx_.upload({count, squares.height, squares.width, 3}, HEDDLE_F32,
                                             all.data())));
  const Value made = call_model(ctx_, model_.model, inputs.value());
  MogeMade out{MogeNumbers(&memory_), MogeNumbers(&memory_), MogeNumbers(&memory_), {}};
  const auto read = [&](const char* name, MogeNumbers& to) {
    const Tensor tensor = made.field(name).as<Tensor>();
    to.resize(std::size_t(tensor.count()));
    read_to<float>(ctx_, tensor, to);
  };
  read("points", out.points);
  read("mask", out.mask);
  if (model_.has_normal) read("normal", out.normal);
  if (model_.version != 1) out.scale = ctx_.read<float>(made.field("scale").as<Tensor>());
  return out;
}

}  // namespace heddle::detection
