#include "rtdetr.h"

#include <cmath>

#include "rtdetr_build.h"

namespace heddle::detection {
namespace {

constexpr const char* kRtdetrMark = "encoder.pan_blocks.1.cv4.conv.weight";
constexpr std::int64_t kRtdetrQueries = 300, kRtdetrHeads = 8;

}  // namespace

int Rtdetr::match(const Checkpoint& file, const Value&) {
  const auto at = blocks::prefix_before(file, kRtdetrMark);
  return at && file.has(*at + "decoder.enc_score_head.weight") ? 100 : 0;
}

void Rtdetr::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::string at = blocks::prefix_before(file, kRtdetrMark).value_or("");
  const RtdetrBuilder maker(file, at, graph);
  const auto queries = config.get<std::int64_t>("num_queries", kRtdetrQueries),
             heads = config.get<std::int64_t>("num_attention_heads", kRtdetrHeads);
  if (queries < 1 || heads < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": its config has " + std::to_string(queries) + " queries and " +
                    std::to_string(heads) + " heads, expected 1 or more of each.");
  const std::vector<RtdetrSource> grids =
      maker.encoder(maker.backbone(graph.input("picture", kRtdetrInput)));
  const std::int64_t classes = add_rtdetr_decoder(maker, grids, queries, heads);
  graph.setting("family", "rt-detr-v4");
  graph.setting("queries", queries);
  graph.setting("classes", classes);
}

RtdetrAnchors rtdetr_anchors(std::int64_t height, std::int64_t width) {
  constexpr float kSide = 0.05f, kLeast = 0.01f, kFar = 1e4f;
  constexpr std::int64_t kStrides[] = {8, 16, 32};
  RtdetrAnchors made;
  float side = kSide;
  for (const std::int64_t stride : kStrides) {
    const std::int64_t rows = height / stride, columns = width / stride;
    for (std::int64_t y = 0; y < rows; ++y)
      for (std::int64_t x = 0; x < columns; ++x) {
        const float box[] = {(float(x) + 0.5f) / float(columns), (float(y) + 0.5f) / float(rows),
                             side, side};
        bool is_valid = true;
        for (const float number : box)
          is_valid = is_valid && number > kLeast && number < 1 - kLeast;
        for (const float number : box)
          made.boxes.push_back(is_valid ? std::log(number / (1 - number)) : kFar);
        made.valid.push_back(is_valid ? 1.0f : 0.0f);
      }
    side *= 2;
  }
  return made;
}

}  // namespace heddle::detection
