#include "svd_nodes.h"

#include <algorithm>
#include <vector>

#include <heddle/model.hpp>

#include "shown_picture.h"

namespace heddle::encoders {
namespace {

// Both conditionings with what else is told, and an empty latent of the frames.
template <class Node>
void give(Context& ctx, const ShownPicture& shown, const Record& told) {
  const auto entry = [&](const Tensor& text, const Tensor& latent) {
    Record one(told.value());
    return list_of({one.set("cross_attn", value_of(text))
                        .set("concat_latent_image", value_of(latent))
                        .value()});
  };
  ctx[Node::positive] = entry(shown.text, shown.latent);
  ctx[Node::negative] = entry(zeros(ctx, shown.text.shape()), zeros(ctx, shown.latent.shape()));
  const Shape shape{ctx[Node::video_frames], kShownLatent, ctx[Node::height] / kShownCell,
                    ctx[Node::width] / kShownCell};
  ctx[Node::latent] = Record().set("samples", value_of(zeros(ctx, shape))).value();
}

template <class Node>
void infer_shown(Infer& question) {
  const auto rows = question[Node::height], columns = question[Node::width],
             frames = question[Node::video_frames];
  if (rows && columns && frames)
    question.out(Node::latent, "samples", HEDDLE_F32,
                 {*frames, kShownLatent, *rows / kShownCell, *columns / kShownCell});
  const std::optional<ShownShapes> shown = tell_shown_by<Node>(question);
  if (!shown) return;
  for (const Output<Value>* out : {&Node::positive, &Node::negative}) {
    question.out(*out, "0.cross_attn", HEDDLE_F32, shown->text);
    question.out(*out, "0.concat_latent_image", HEDDLE_F32, shown->latent);
  }
}

}  // namespace

void SVD_img2vid_Conditioning::execute(Context& ctx) {
  const double noise = ctx[augmentation_level];
  give<SVD_img2vid_Conditioning>(ctx, shown_by<SVD_img2vid_Conditioning>(ctx, noise),
                                 Record()
                                     .set("motion_bucket_id", value_of(ctx[motion_bucket_id]))
                                     .set("fps", value_of(ctx[fps]))
                                     .set("augmentation_level", value_of(noise)));
}

void SVD_img2vid_Conditioning::infer(Infer& question) {
  infer_shown<SVD_img2vid_Conditioning>(question);
}

void SV3D_Conditioning::execute(Context& ctx) {
  const std::int64_t frames = ctx[video_frames];
  const double step = 360.0 / double(std::max<std::int64_t>(frames, 2) - 1);
  std::vector<Value> above, around;
  double angle = 0;
  for (std::int64_t i = 0; i < frames; ++i, angle += step) {
    above.push_back(value_of(ctx[elevation]));
    around.push_back(value_of(angle));
  }
  give<SV3D_Conditioning>(
      ctx, shown_by<SV3D_Conditioning>(ctx, 0),
      Record().set("elevation", list_of(above)).set("azimuth", list_of(around)));
}

void SV3D_Conditioning::infer(Infer& question) { infer_shown<SV3D_Conditioning>(question); }

}  // namespace heddle::encoders
