#include "zero123_nodes.h"

#include <cmath>
#include <numbers>
#include <vector>

#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>
#include <heddle/ops.hpp>

#include "shown_picture.h"

namespace heddle::encoders {
namespace {

constexpr std::int64_t kViewNumbers = 4;

// Of each item.
struct View {
  double elevation, azimuth;
};

// text (1, B, D) -> (n, B, D + 4): for each of n views what it is told.
Tensor with_views(Context& ctx, const Tensor& text, const std::vector<View>& views) {
  const auto items = std::int64_t(views.size());
  const std::int64_t rows = text.size(1), width = text.size(2);
  std::vector<float> numbers;
  const auto radians = [](double degrees) {
    return float(degrees) * float(std::numbers::pi / 180);
  };
  for (const View& view : views)
    for (std::int64_t row = 0; row < rows; ++row)
      numbers.insert(numbers.end(),
                     {radians(90 - view.elevation - 90), std::sin(radians(view.azimuth)),
                      std::cos(radians(view.azimuth)), radians(90)});
  const Tensor made = ctx.make({items, rows, width + kViewNumbers}, HEDDLE_F32);
  for (std::int64_t item = 0; item < items; ++item)
    ops::copy_into(ctx, text, made.slice(0, item, item + 1).slice(2, 0, width));
  ops::copy_into(ctx, ctx.upload({items, rows, kViewNumbers}, HEDDLE_F32, numbers.data()),
                 made.slice(2, width, width + kViewNumbers));
  return made;
}

template <class Node>
void give_views(Context& ctx, const std::vector<View>& views, const Record& latent) {
  const ShownPicture shown = shown_by<Node>(ctx, 0);
  const auto entry = [&](const Tensor& text, const Tensor& picture) {
    return list_of({Record()
                        .set("cross_attn", value_of(text))
                        .set("concat_latent_image", value_of(picture))
                        .value()});
  };
  ctx[Node::positive] = entry(with_views(ctx, shown.text, views), shown.latent);
  ctx[Node::negative] = entry(zeros(ctx, shown.text.shape()), zeros(ctx, shown.latent.shape()));
  const Shape shape{ctx[Node::batch_size], kShownLatent, ctx[Node::height] / kShownCell,
                    ctx[Node::width] / kShownCell};
  Record made(latent.value());
  ctx[Node::latent] = made.set("samples", value_of(zeros(ctx, shape))).value();
}

template <class Node>
void tell_views(Infer& question, bool is_each) {
  const auto rows = question[Node::height], columns = question[Node::width],
             items = question[Node::batch_size];
  if (!rows || !columns || !items) return;
  question.out(Node::latent, "samples", HEDDLE_F32,
               {*items, kShownLatent, *rows / kShownCell, *columns / kShownCell});
  const std::optional<ShownShapes> shown = tell_shown_by<Node>(question);
  if (!shown) return;
  question.out(Node::positive, "0.cross_attn", HEDDLE_F32,
               {is_each ? *items : 1, shown->text[1], shown->text[2] + kViewNumbers});
  question.out(Node::negative, "0.cross_attn", HEDDLE_F32, shown->text);
  for (const Output<Value>* out : {&Node::positive, &Node::negative})
    question.out(*out, "0.concat_latent_image", HEDDLE_F32, shown->latent);
}

}  // namespace

void StableZero123_Conditioning::execute(Context& ctx) {
  give_views<StableZero123_Conditioning>(ctx, {{ctx[elevation], ctx[azimuth]}}, Record());
}

void StableZero123_Conditioning::infer(Infer& question) {
  tell_views<StableZero123_Conditioning>(question, false);
}

void StableZero123_Conditioning_Batched::execute(Context& ctx) {
  std::vector<View> views;
  std::vector<Value> noise;
  View view{ctx[elevation], ctx[azimuth]};
  for (std::int64_t i = 0; i < ctx[batch_size]; ++i) {
    views.push_back(view);
    noise.push_back(value_of(std::int64_t{0}));
    view.elevation += ctx[elevation_step];
    view.azimuth += ctx[azimuth_step];
  }
  give_views<StableZero123_Conditioning_Batched>(ctx, views,
                                                 Record().set("batch_index", list_of(noise)));
}

void StableZero123_Conditioning_Batched::infer(Infer& question) {
  tell_views<StableZero123_Conditioning_Batched>(question, true);
}

}  // namespace heddle::encoders
