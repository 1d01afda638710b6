// The decoder of RT-DETR 4 as a graph of blocks.
#include "rtdetr_build.h"
#include "rtdetr_decoder_blocks.h"

namespace heddle::detection {
namespace {

class RtdetrDecoder {
 public:
  RtdetrDecoder(const RtdetrBuilder& maker, const std::vector<RtdetrSource>& grids,
                std::int64_t heads)
      : maker_(maker), grids_(grids), heads_(heads), width_(grids.front().channels) {
    for (const RtdetrSource& grid : grids)
      if (grid.channels != width_)
        throw Error(HEDDLE_INVALID_ARGUMENT,
                    maker.file().path() + ": the grids of the encoder have " +
                        std::to_string(width_) + " and " + std::to_string(grid.channels) +
                        " channels, expected as many. The file is damaged.");
  }

  std::int64_t run(std::int64_t queries) {
    const std::int64_t classes =
        maker_.file().size(maker_.named("decoder.enc_score_head.weight"), 0);
    using Q = RtdetrQueries;
    Block chosen = choose(queries, classes);
    for (const RtdetrSource& grid : grids_) bordered_.push_back(bordered(grid));
    const int depth = blocks::layer_count(maker_.file(), maker_.named("decoder.decoder.layers."));
    if (depth < 1)
      throw Error(HEDDLE_INVALID_ARGUMENT, maker_.file().path() + ": '" +
                                               maker_.named("decoder.decoder.layers") +
                                               "' has no layers. The file is damaged.");
    Source x = chosen[Q::queries], boxes = chosen[Q::boxes], begun, before, corners, chances;
    for (int i = 0; i < depth; ++i) {
      x = layer(i, x, boxes);
      if (i == 0) begun = first_boxes(x, chosen[Q::logits]);
      Block told = told_boxes(i, x, i > 0 ? &before : nullptr, i > 0 ? &corners : nullptr, begun);
      before = x;
      corners = told[RtdetrBoxes::corners];
      chances = told[RtdetrBoxes::chances];
      boxes = told[RtdetrBoxes::boxes];
    }
    maker_.graph().output("logits", scores(depth - 1, x, chances, classes));
    maker_.graph().output("boxes", boxes);
    return classes;
  }

 private:
  std::string layer_at(int index) const {
    return "decoder.decoder.layers." + std::to_string(index) + ".";
  }
  template <class B>
  void fill_three(blocks::Slots& slots, const std::string& at, std::int64_t made) const {
    const std::int64_t inner = maker_.file().size(maker_.named(at) + ".layers.0.weight", 0);
    maker_.fill(slots, B::first, B::first_bias, at + ".layers.0", {inner, width_});
    maker_.fill(slots, B::second, B::second_bias, at + ".layers.1", {inner, inner});
    maker_.fill(slots, B::third, B::third_bias, at + ".layers.2", {made, inner});
  }

  Source bordered(const RtdetrSource& grid) const {
    Block made =
        maker_.graph().add<RtdetrBorder>("decoder.border." + std::to_string(bordered_.size()));
    made.link(RtdetrBorder::x, grid.x);
    return made[RtdetrBorder::out];
  }

  Block choose(std::int64_t queries, std::int64_t classes) const {
    using B = RtdetrQueries;
    Blocks& graph = maker_.graph();
    const std::string path = "decoder.queries", anchors = maker_.named("decoder.anchors");
    Block made = graph.add<B>(path);
    made.link(B::g0, grids_[0].x)
        .link(B::g1, grids_[1].x)
        .link(B::g2, grids_[2].x)
        .link(B::anchors, graph.input("anchors", kRtdetrInput))
        .link(B::valid, graph.input("valid", kRtdetrInput))
        .set(B::count, queries);
    blocks::Slots slots(maker_.file(), made, path);
    if (maker_.file().has(anchors))
      slots.fill(B::file_anchors, anchors, {1, maker_.file().size(anchors, 1), 4});
    maker_.fill(slots, B::proj, B::proj_bias, "decoder.enc_output.proj", {width_, width_});
    maker_.fill(slots, B::norm, B::norm_bias, "decoder.enc_output.norm", {width_});
    maker_.fill(slots, B::score, B::score_bias, "decoder.enc_score_head", {classes, width_});
    fill_three<B>(slots, "decoder.enc_bbox_head", 4);
    return made;
  }

  Source layer(int index, const Source& x, const Source& boxes) const {
    const std::string at = layer_at(index);
    const Source places = places_of(index, boxes);
    const Source mixed = maker_.attend(at, "norm1", x, places, width_, heads_);
    return maker_.feed(at, "norm3", gated(at, mixed, sampled(at, mixed, places, boxes)), width_,
                       false);
  }

  Source places_of(int index, const Source& boxes) const {
    using B = RtdetrPlaces;
    const std::string at = "decoder.query_pos_head.layers.", path = layer_at(index) + "places";
    Block made = maker_.graph().add<B>(path);
    made.link(B::boxes, boxes);
    blocks::Slots slots(maker_.file(), made, path);
    const std::int64_t inner = maker_.file().size(maker_.named(at) + "0.weight", 0);
    maker_.fill(slots, B::first, B::first_bias, at + "0", {inner, 4});
    maker_.fill(slots, B::second, B::second_bias, at + "1", {width_, inner});
    return made[B::out];
  }

  Source sampled(const std::string& at, const Source& x, const Source& places,
                 const Source& boxes) const {
    using B = RtdetrSample;
    const std::string path = at + "cross_attn";
    Block made = maker_.graph().add<B>(path);
    made.link(B::x, x)
        .link(B::places, places)
        .link(B::boxes, boxes)
        .link(B::g0, bordered_[0])
        .link(B::g1, bordered_[1])
        .link(B::g2, bordered_[2])
        .set(B::heads, heads_);
    blocks::Slots slots(maker_.file(), made, path);
    const std::int64_t points = heads_ * kRtdetrAllPoints;
    maker_.fill(slots, B::offsets, B::offsets_bias, path + ".sampling_offsets",
                {2 * points, width_});
    maker_.fill(slots, B::shares, B::shares_bias, path + ".attention_weights", {points, width_});
    return made[B::out];
  }

  Source gated(const std::string& at, const Source& x, const Source& y) const {
    using B = RtdetrGate;
    const std::string path = at + "gateway";
    Block made = maker_.graph().add<B>(path);
    made.link(B::x, x).link(B::y, y);
    blocks::Slots slots(maker_.file(), made, path);
    maker_.fill(slots, B::gate, B::gate_bias, path + ".gate", {2 * width_, 2 * width_});
    maker_.fill(slots, B::norm, B::norm_bias, path + ".norm", {width_});
    return made[B::out];
  }

  Source first_boxes(const Source& x, const Source& logits) const {
    using B = RtdetrFirstBoxes;
    const std::string path = "decoder.pre_bbox_head";
    Block made = maker_.graph().add<B>(path);
    made.link(B::x, x).link(B::logits, logits);
    blocks::Slots slots(maker_.file(), made, path);
    fill_three<B>(slots, path, 4);
    return made[B::out];
  }

  Block told_boxes(int index, const Source& x, const Source* before, const Source* corners,
                   const Source& begun) const {
    using B = RtdetrBoxes;
    const Checkpoint& file = maker_.file();
    const std::string path = "decoder.dec_bbox_head." + std::to_string(index),
                      table = maker_.named("decoder.decoder.project"),
                      scale = maker_.named("decoder.reg_scale"),
                      last = maker_.named(path) + ".layers.2.weight";
    Block made = maker_.graph().add<B>(path);
    made.link(B::x, x).link(B::begun, begun);
    if (before != nullptr) made.link(B::before, *before).link(B::corners_before, *corners);
    const std::int64_t rows = file.size(last, 0);
    constexpr std::int64_t kLeastDistances = 5;
    if (rows % 4 != 0 || rows / 4 < kLeastDistances || rows / 4 % 2 == 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() + ": tensor '" + last + "' makes " + std::to_string(rows) +
                      " numbers, expected an odd number of distances for each of 4 edges. The "
                      "file is damaged.");
    blocks::Slots slots(file, made, path);
    fill_three<B>(slots, path, rows);
    if (file.has(table)) slots.fill(B::table, table, {rows / 4});
    if (file.has(scale)) slots.fill(B::scale, scale, {1});
    return made;
  }

  Source scores(int index, const Source& x, const Source& chances, std::int64_t classes) const {
    using B = RtdetrScores;
    const std::string number = std::to_string(index), path = "decoder.dec_score_head." + number,
                      at = "decoder.decoder.lqe_layers." + number + ".reg_conf.layers.";
    constexpr std::int64_t kSeen = 20;  // of each edge four chances and their mean
    Block made = maker_.graph().add<B>(path);
    made.link(B::x, x).link(B::chances, chances);
    blocks::Slots slots(maker_.file(), made, path);
    maker_.fill(slots, B::score, B::score_bias, path, {classes, width_});
    const std::int64_t inner = maker_.file().size(maker_.named(at) + "0.weight", 0);
    maker_.fill(slots, B::first, B::first_bias, at + "0", {inner, kSeen});
    maker_.fill(slots, B::second, B::second_bias, at + "1", {1, inner});
    return made[B::out];
  }

  const RtdetrBuilder& maker_;
  const std::vector<RtdetrSource>& grids_;
  const std::int64_t heads_, width_;
  std::vector<Source> bordered_;
};

}  // namespace

std::int64_t add_rtdetr_decoder(const RtdetrBuilder& maker, const std::vector<RtdetrSource>& grids,
                                std::int64_t queries, std::int64_t heads) {
  return RtdetrDecoder(maker, grids, heads).run(queries);
}

}  // namespace heddle::detection
