#include "sam3_video.h"

#include <algorithm>
#include <cmath>

namespace heddle::detection {
namespace {

constexpr float kSameThing = 0.5f, kSure = 0.8f;
constexpr std::int64_t kLongestAlive = 8, kLongestGone = -4;

}  // namespace

std::size_t Sam3Video::most() const { return std::size_t(job_.most > 0 ? job_.most : kSam3Things); }

Sam3Video::Found Sam3Video::found(const Tensor& hidden) {
  Found all;
  for (const PromptText& text : job_.texts) {
    const Sam3Found made = calls_.find(hidden, text);
    for (std::size_t i = 0; i < made.scores.size(); ++i) {
      const float odds = 1 / (1 + std::exp(-made.scores[i]));
      if (!(odds > job_.threshold)) continue;
      all.scores.push_back(odds);
      Floats& mask =
          all.masks.emplace_back(std::size_t(fine().height * fine().width), 0.0f, &calls_.memory());
      read_to<float>(ctx_, made.masks.slice(1, std::int64_t(i), std::int64_t(i) + 1), mask);
    }
  }
  Found apart;
  for (const std::size_t i : apart_masks(all.masks, all.scores)) {
    apart.masks.push_back(std::move(all.masks[i]));
    apart.scores.push_back(all.scores[i]);
  }
  return apart;
}

Sam3Video::Bits Sam3Video::bits_of(const Floats& mask, const blocks::GridSize& size) {
  constexpr std::int64_t kBits = 8;
  const std::int64_t side = parts_.side, bytes = side / kBits;
  const Floats whole = calls_.resized(mask.data(), size, {side, side}, 1);
  Bits bits(std::size_t(side * bytes), 0, &calls_.memory());
  for (std::int64_t y = 0; y < side; ++y)
    for (std::int64_t x = 0; x < side; ++x)
      if (whole[std::size_t(y * side + x)] > 0)
        bits[std::size_t(y * bytes + x / kBits)] |= std::uint8_t(1u << (x % kBits));
  return bits;
}

void Sam3Video::look(const float* pixels, const blocks::GridSize& size) {
  const Tensor hidden = calls_.seen(pixels, size);
  const bool is_told = frame_ == 0 && !job_.masks.empty();
  const bool looks = detects() && frame_ % job_.interval == 0 && follower_.things() < most();
  Found things;
  if (looks && !is_told) things = found(hidden);
  if (is_told)
    begin(hidden, {});
  else if (follower_.things() > 0)
    follow(hidden, things, looks);
  else if (!things.masks.empty())
    begin(hidden, things);
  std::vector<Bits>& kept = frames_.emplace_back();
  for (std::size_t i = 0; i < shown_.size(); ++i) {
    const bool is_shown = !detects() || alive_[i] > 0;
    kept.push_back(is_shown ? std::move(shown_[i]) : Bits(&calls_.memory()));
  }
  shown_.clear();
  ++frame_;
}

void Sam3Video::begin(const Tensor& hidden, const Found& found) {
  const blocks::GridSize square{parts_.side, parts_.side};
  const bool is_told = found.masks.empty();
  std::vector<Floats> made;
  const std::vector<Floats>& masks = is_told ? job_.masks : made;
  if (is_told) {
    scores_.assign(masks.size(), 1);
  } else {
    const std::size_t count = std::min(found.masks.size(), most());
    for (std::size_t i = 0; i < count; ++i) {
      Floats& mask = made.emplace_back(calls_.resized(found.masks[i].data(), fine(), square, 1));
      for (float& number : mask) number = number > 0 ? 1.0f : 0.0f;
      scores_.push_back(double(found.scores[i]));
    }
  }
  hidden_at_.assign(masks.size(), -1);
  alive_.assign(masks.size(), is_told ? kLongestAlive : 1);
  follower_.begin(frame_, hidden, masks);
  for (const Floats& mask : masks) shown_.push_back(bits_of(mask, square));
}

void Sam3Video::follow(const Tensor& hidden, const Found& found, bool has_looked) {
  constexpr std::int64_t kSmallHole = 16;
  masks_ = follower_.follow(frame_, hidden);
  for (Floats& mask : masks_) {
    shown_.push_back(bits_of(mask, fine()));
    fill_holes(mask, fine(), kSmallHole, calls_.memory());
  }
  hide_overlapping(masks_, hidden_at_, frame_);
  follower_.remember(hidden, masks_, std::vector<bool>(masks_.size(), false));
  if (has_looked) match(hidden, found);
}

// What was found is one of the things that are followed, or a new one.
void Sam3Video::match(const Tensor& hidden, const Found& found) {
  const std::size_t before = masks_.size();
  std::vector<bool> is_seen(before, false), is_new(found.masks.size());
  std::vector<std::pair<std::size_t, std::size_t>> sure;  // of what was found and of things
  for (std::size_t i = 0; i < found.masks.size(); ++i) {
    float highest = 0;
    std::size_t best = 0;
    for (std::size_t thing = 0; thing < before; ++thing) {
      const float overlap = mask_overlap(found.masks[i], masks_[thing]);
      if (overlap >= kSameThing) is_seen[thing] = true;
      if (overlap > highest) highest = overlap, best = thing;
    }
    is_new[i] = highest < kSameThing;
    if (found.scores[i] >= kSure && highest >= kSameThing) sure.emplace_back(i, best);
  }
  for (std::size_t thing = 0; thing < before; ++thing)
    alive_[thing] = is_seen[thing] ? std::min(kLongestAlive, alive_[thing] + 1)
                                   : std::max(kLongestGone, alive_[thing] - 1);
  for (const auto& [i, thing] : sure) {
    masks_[thing] = found.masks[i];
    shown_[thing] = bits_of(found.masks[i], fine());
  }
  if (!sure.empty()) follower_.remember(hidden, masks_, std::vector<bool>(before, false));
  for (std::size_t i = 0; i < found.masks.size() && masks_.size() < most(); ++i) {
    if (!is_new[i]) continue;
    masks_.emplace_back(found.masks[i], &calls_.memory());
    shown_.push_back(bits_of(found.masks[i], fine()));
    scores_.push_back(double(found.scores[i]));
    hidden_at_.push_back(-1);
    alive_.push_back(1);
  }
  if (masks_.size() == before) return;
  std::vector<bool> given(masks_.size(), true);
  std::fill_n(given.begin(), before, false);
  follower_.add(masks_.size() - before);
  follower_.remember(hidden, masks_, given);
}

blocks::ObjectTracks Sam3Video::tracks(const blocks::GridSize& size) {
  constexpr std::int64_t kBits = 8;
  const std::int64_t side = parts_.side, bytes = side / kBits;
  blocks::ObjectTracks tracks{std::int64_t(frames_.size()), size.height, size.width};
  const auto things = std::int64_t(follower_.things());
  if (things == 0) return tracks;
  tracks.scores = scores_;
  tracks.bits = ctx_.make_host({tracks.frames, things, side, bytes}, HEDDLE_U8);
  const std::size_t each = std::size_t(side * bytes);
  auto* to = tracks.bits.data<std::uint8_t>();
  std::fill_n(to, each * std::size_t(tracks.frames * things), std::uint8_t(0));
  for (const std::vector<Bits>& frame : frames_) {
    for (std::size_t i = 0; i < frame.size(); ++i) std::ranges::copy(frame[i], to + i * each);
    to += each * std::size_t(things);
  }
  return tracks;
}

}  // namespace heddle::detection
