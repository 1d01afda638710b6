#include "ip_adapter_apply.h"

#include <algorithm>
#include <cmath>

#include <heddle/host_memory.hpp>
#include <heddle/joined_model.hpp>
#include <heddle/session.hpp>

#include "ip_adapter_weights.h"
#include "plugins/blocks/entry_shapes.h"
#include "plugins/blocks/lists.h"
#include "vision_tower.h"

namespace heddle::encoders {
namespace {

constexpr const char* kAdapters = "adapters";
// Of the types that have the negative side see the picture in some transformers.
constexpr std::string_view kPrecise = " precise";

void refuse_adapter(const std::string& why) { throw Error(HEDDLE_INVALID_ARGUMENT, why); }

Value record_model(const Value& record) {
  const Value model = record.field("model");
  return model.is(HEDDLE_KIND_MODEL) ? model : Value();
}

std::int64_t number_of(const Value& model, const char* setting) {
  return model_settings(model).get<std::int64_t>(setting, 0);
}

const char* seen_field(const AdapterJob& job) {
  return reads_layers(job) ? "penultimate" : "image_embeds";
}

Tensor host_copy(Context& ctx, const Tensor& from) {
  const Tensor to = ctx.make_host(from.shape(), HEDDLE_F32);
  read_to<float>(ctx, from, std::span(to.data<float>(), std::size_t(to.count())));
  return to;
}

Tensor host_zeros(Context& ctx, const Shape& shape) {
  const Tensor zeros = ctx.make_host(shape, HEDDLE_F32);
  std::fill_n(zeros.data<float>(), zeros.count(), 0.0f);
  return zeros;
}

// tokens (n, T, C) as the model reads them: of n pictures beside each other, or of each item.
Shape token_shape_of(const Shape& tokens, bool is_of_items) {
  return is_of_items ? tokens : Shape{1, tokens[0] * tokens[1], tokens[2]};
}

// rows (n, ...), or (1, ...) n times.
Tensor repeated(Context& ctx, const Tensor& rows, std::int64_t count) {
  if (rows.size(0) == count) return rows;
  Shape shape = rows.shape();
  shape[0] = count;
  const Tensor all = ctx.make_host(shape, HEDDLE_F32);
  const std::int64_t width = rows.count() / rows.size(0);
  for (std::int64_t row = 0; row < count; ++row)
    std::copy_n(rows.data<float>() + std::min(row, rows.size(0) - 1) * width, width,
                all.data<float>() + row * width);
  return all;
}

Tensor tokens_for(Context& ctx, const AdapterJob& job, const Tensor& rows) {
  const Value made = call_model(ctx, job.adapter, Record().set("seen", value_of(rows)).value());
  return host_copy(ctx, made.field("tokens").as<Tensor>());
}

Shape tell_tokens(Infer& question, const AdapterJob& job, const Shape& rows) {
  question.call(job.adapter, {{{{"seen", HEDDLE_F32, rows}}, {}}});
  const std::int64_t tokens = number_of(job.adapter, "tokens");
  return {rows[0], tokens > 0 ? tokens : rows[1], number_of(job.adapter, "context")};
}

template <class T>
Value list_of_numbers(const std::vector<T>& numbers) {
  std::vector<Value> items;
  for (const T number : numbers) items.push_back(value_of(number));
  return list_of(items);
}

// What a model carries of an adapter: tensors, or what is told of them.
struct CarriedTokens {
  Value positive, negative, other_positive, other_negative;
  std::int64_t each = 1;
};

Value with_adapter(const AdapterJob& job, const CarriedTokens& carried) {
  const Value settings = model_settings(job.model), built_of = settings.field("patched_config"),
              before = settings.field(kAdapters);
  const AdapterWeights weights = adapter_weights(
      job.type, settings.get<std::string>("adapted_places", ""), settings.has("size_numbers"),
      job.weight, job.composition, bool(carried.other_positive));
  const auto is_nothing = [](double weight) { return weight == 0; };
  if (std::ranges::all_of(weights.weights, is_nothing)) return job.model;
  const Checkpoint file = model_checkpoint(job.adapter);
  const std::string prefix = "adapter." + std::to_string(before.count()) + ".";
  const Value told = Record()
                         .set("prefix", value_of(prefix))
                         .set("file", value_of(file.path()))
                         .set("weights", list_of_numbers(weights.weights))
                         .set("sources", list_of_numbers(weights.sources))
                         .set("scaling", value_of(job.scaling))
                         .set("each", value_of(carried.each))
                         .value();
  const Value config =
      Record(built_of).set(kAdapters, blocks::appended(built_of.field(kAdapters), told)).value();
  Record record;
  record.set("positive", carried.positive)
      .set("negative", carried.negative)
      .set("of_items", value_of(job.is_of_items))
      .set("start_percent", value_of(job.start))
      .set("end_percent", value_of(job.end));
  if (carried.other_positive)
    record.set("other_positive", carried.other_positive)
        .set("other_negative", carried.other_negative);
  if (job.mask) record.set("mask", job.mask);
  return with_settings(joined_model(job.model, file, prefix, config),
                       Record(settings)
                           .set("patched_config", config)
                           .set(kAdapters, blocks::appended(before, record.value()))
                           .value());
}

// Whether the method makes one of so many rows.
bool is_combining(const AdapterJob& job, std::int64_t rows) {
  return job.combine != "concat" && rows > 1 && !job.is_of_items;
}

float row_value(const std::string& method, const std::vector<float>& column) {
  const auto count = float(column.size());
  float sum = 0, squares = 0;
  for (const float value : column) {
    sum += value;
    squares += value * value;
  }
  if (method == "add") return sum;
  if (method == "average") return sum / count;
  if (method == "subtract") return column[0] - (sum - column[0]) / (count - 1);
  if (method == "norm average") return sum / std::sqrt(squares) / count;
  if (method == "max") return *std::ranges::max_element(column);
  if (method == "min") return *std::ranges::min_element(column);
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "'" + method + "' is no way to combine embeddings. Take concat or average.");
}

}  // namespace

Shape combined_shape(const Shape& rows, const std::string& method) {
  Shape shape = rows;
  if (method != "concat") shape[0] = 1;
  return shape;
}

Tensor combined(Context& ctx, const Tensor& rows, const std::string& method) {
  const Tensor all = host_copy(ctx, rows);
  const std::int64_t count = all.size(0);
  if (method == "concat" || (count == 1 && method != "norm average")) return all;
  const Tensor made = ctx.make_host(combined_shape(all.shape(), method), HEDDLE_F32);
  const std::int64_t width = made.count();
  std::vector<float> column(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < width; ++i) {
    for (std::int64_t row = 0; row < count; ++row)
      column[std::size_t(row)] = all.data<float>()[row * width + i];
    made.data<float>()[i] = row_value(method, column);
  }
  return made;
}

void read_adapter(AdapterJob& job, const Value& ipadapter, const Value& clip_vision) {
  job.adapter = record_model(ipadapter);
  job.tower = record_model(clip_vision ? clip_vision : ipadapter.field("clip_vision"));
  if (!job.adapter)
    refuse_adapter(
        "ipadapter: it holds no model. Link IPAdapterModelLoader or "
        "IPAdapterUnifiedLoader.");
}

bool reads_layers(const AdapterJob& job) {
  const Value adapter = model_settings(job.adapter);
  const bool layers = adapter.get<bool>("reads_layers", false);
  if (job.tower) {
    const Value tower = model_settings(job.tower);
    const auto width = adapter.get<std::int64_t>("seen_width", 0),
               given = tower.get<std::int64_t>(layers ? "width" : "projected_width", 0);
    if (width != given)
      refuse_adapter("clip_vision: this tower (" + model_family(job.tower) +
                     ") tells of pictures in " + std::to_string(given) +
                     " numbers, and the IP-Adapter reads " + std::to_string(width) +
                     ". Those of Stable Diffusion 1.5 and 'vit-h' go with "
                     "CLIP-ViT-H-14-laion2B-s32B-b79K, ip-adapter_sdxl and 'vit-G' with "
                     "CLIP-ViT-bigG-14-laion2B-39B-b160k.");
  }
  if (!job.model) return layers;
  const Value model = model_settings(job.model);
  const auto context = adapter.get<std::int64_t>("context", 0),
             blocks = adapter.get<std::int64_t>("blocks", 0),
             width = model.get<std::int64_t>("context_width", 0),
             wanted = model.get<std::int64_t>("adapted_blocks", 0);
  if (wanted == 0)
    throw Error(HEDDLE_UNSUPPORTED,
                "model: the model '" + model_family(job.model) +
                    "' takes no IP-Adapters. Use Stable Diffusion 1.5 or SDXL.");
  if (context != width || blocks != wanted)
    refuse_adapter("ipadapter: it is for a UNet of " + std::to_string(blocks) +
                   " transformer blocks that reads texts of width " + std::to_string(context) +
                   ", the model has " + std::to_string(wanted) + " and reads " +
                   std::to_string(width) +
                   ". Take one that was made for this model: of names with sd15 or sdxl.");
  return layers;
}

Tensor seen_for(Context& ctx, const AdapterJob& job, const Tensor& image, const Tensor& mask) {
  const std::string field = seen_field(job);
  if (!job.tower)
    refuse_adapter(
        "clip_vision: nothing is linked, and the IP-Adapter brings none. Link a "
        "CLIPVisionLoader, or take IPAdapterUnifiedLoader.");
  return seen_by_tower(ctx, job.tower, image, true, mask).field(field.c_str()).as<Tensor>();
}

Shape tell_seen(Infer& question, const AdapterJob& job, const Shape& image) {
  const std::string wanted = seen_field(job);
  if (!job.tower) return {};
  for (const auto& [field, shape] : tell_tower(question, job.tower, image, true))
    if (field == wanted) return shape;
  return {};
}

Tensor unseen_for(Context& ctx, const AdapterJob& job, const Tensor& seen) {
  if (!reads_layers(job)) return host_zeros(ctx, seen.shape());
  if (!job.tower) return seen_for(ctx, job, seen);
  const std::int64_t size = number_of(job.tower, "size");
  return seen_for(ctx, job, host_zeros(ctx, {1, size, size, 3}));
}

Shape tell_unseen(Infer& question, const AdapterJob& job, const Shape& seen) {
  if (!reads_layers(job)) return seen;
  if (!job.tower) return {};
  const std::int64_t size = number_of(job.tower, "size");
  return tell_seen(question, job, {1, size, size, 3});
}

namespace {

// Embeddings may have been made for another IP-Adapter. what: "positive" or "negative".
void check_rows(const AdapterJob& job, const Shape& rows, const char* what) {
  const bool layers = reads_layers(job);
  const std::int64_t width = number_of(job.adapter, "seen_width");
  if (rows.size() == (layers ? 3u : 2u) && rows.front() > 0 && rows[rows.size() - 2] > 0 &&
      rows.back() == width)
    return;
  std::string text;
  for (const std::int64_t size : rows) text += (text.empty() ? "(" : ", ") + std::to_string(size);
  refuse_adapter(std::string("the ") + what + " embeddings are " + text +
                 "), and the IP-Adapter reads (pictures, " + (layers ? "tokens, " : "") +
                 std::to_string(width) + "). Make them by IPAdapterEncoder with this IP-Adapter.");
}

}  // namespace

Value adapted(Context& ctx, const AdapterJob& job, const AdapterRows& rows) {
  check_rows(job, rows.positive.shape(), "positive");
  check_rows(job, rows.negative.shape(), "negative");
  if (rows.composed) check_rows(job, rows.composed.shape(), "composition's");
  const bool combines = is_combining(job, rows.positive.size(0));
  const auto one_of = [&](const Tensor& all) {
    return combines ? combined(ctx, all, job.combine) : all;
  };
  const Tensor seen = one_of(rows.positive),
               unseen = combines ? rows.negative.slice(0, 0, 1) : rows.negative;
  const std::int64_t count = seen.size(0);
  const Tensor positive = tokens_for(ctx, job, seen), nothing = tokens_for(ctx, job, unseen),
               negative = repeated(ctx, nothing, count);
  const Shape shape = token_shape_of(positive.shape(), job.is_of_items);
  CarriedTokens carried{.positive = value_of(positive.reshape(shape)),
                        .negative = value_of(negative.reshape(shape)),
                        .other_positive = {},
                        .other_negative = {},
                        .each = positive.size(1)};
  if (rows.composed) {
    const Tensor other = tokens_for(ctx, job, one_of(rows.composed));
    const Shape of_other = token_shape_of(other.shape(), job.is_of_items);
    carried.other_positive = value_of(other.reshape(of_other));
    carried.other_negative = value_of(repeated(ctx, nothing, other.size(0)).reshape(of_other));
  } else if (job.type.ends_with(kPrecise)) {
    carried.other_positive = value_of(host_zeros(ctx, shape));
    carried.other_negative = carried.positive;
  }
  return with_adapter(job, carried);
}

Value tell_adapted(Infer& question, const AdapterJob& job, const AdapterRowShapes& rows) {
  check_rows(job, rows.positive, "positive");
  check_rows(job, rows.negative, "negative");
  if (rows.composed) check_rows(job, *rows.composed, "composition's");
  const bool combines = is_combining(job, rows.positive[0]);
  const auto one_of = [&](const Shape& all) {
    return combines ? combined_shape(all, job.combine) : all;
  };
  const auto told = [&](const Shape& tokens) {
    return blocks::told_info(tensor_info(HEDDLE_F32, token_shape_of(tokens, job.is_of_items)));
  };
  Shape unseen = rows.negative;
  if (combines) unseen[0] = 1;
  const Shape positive = tell_tokens(question, job, one_of(rows.positive));
  tell_tokens(question, job, unseen);
  CarriedTokens carried{told(positive), told(positive), {}, {}, positive[1]};
  if (rows.composed) {
    carried.other_positive = carried.other_negative =
        told(tell_tokens(question, job, one_of(*rows.composed)));
  } else if (job.type.ends_with(kPrecise)) {
    carried.other_positive = carried.other_negative = carried.positive;
  }
  return with_adapter(job, carried);
}

}  // namespace heddle::encoders
