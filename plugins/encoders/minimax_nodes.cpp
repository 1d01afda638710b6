#include "minimax_nodes.h"

#include <algorithm>

#include "encode.h"
#include "plugins/blocks/minimax_latents.h"
#include "text_nodes.h"

namespace heddle::encoders {

void MiniMaxH3ImageToVideo::execute(Context& ctx) {
  if (ctx.has(first_frame) || ctx.has(last_frame))
    throw Error(HEDDLE_UNSUPPORTED,
                std::string(ctx.has(first_frame) ? "first_frame" : "last_frame") +
                    " is linked, and samplers do not show MiniMax H3 pictures yet. Take the link "
                    "away, and draw from the text alone.");
  ctx[positive] = encode_prompt(ctx, ctx[clip], {.text = ctx[prompt], .by_encoder = {}});
  const std::int64_t pictures = blocks::minimax_pictures(ctx[length]);
  const auto empty = [&](const Shape& shape) {
    const Tensor samples = ctx.make_host(shape, HEDDLE_F32);
    std::fill_n(samples.data<float>(), samples.count(), 0.0f);
    return value_of(samples);
  };
  ctx[latent] =
      Record()
          .set("samples",
               list_of({empty(blocks::minimax_video_shape(pictures, ctx[height], ctx[width])),
                        empty(blocks::minimax_sound_shape(pictures))}))
          .value();
}

std::uint64_t MiniMaxH3ImageToVideo::fingerprint(Context& ctx) {
  return embeddings_fingerprint(ctx, {&prompt});
}

void MiniMaxH3ImageToVideo::infer(Infer& question) {
  const auto rows = question[height], columns = question[width], count = question[length];
  if (rows && columns && count) {
    const std::int64_t pictures = blocks::minimax_pictures(*count);
    question.out(latent, "samples.0", HEDDLE_F32,
                 blocks::minimax_video_shape(pictures, *rows, *columns));
    question.out(latent, "samples.1", HEDDLE_F32, blocks::minimax_sound_shape(pictures));
  }
  const auto from = question[clip];
  const auto text = question[prompt];
  if (from && text) infer_prompt(question, *from, {.text = *text, .by_encoder = {}}, positive);
}

}  // namespace heddle::encoders
