#include "window_node.h"

#include <charconv>

#include "conditioning.h"
#include "context_windows.h"

namespace heddle::samplers {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr const char* kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Whole numbers with commas between.
std::vector<std::int64_t> places_in(const std::string& text, const char* input) {
  std::vector<std::int64_t> places;
  if (text.empty()) return places;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = trimmed(std::string_view(text).substr(begin, end - begin));
    std::int64_t place = 0;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), place);
    if (error != std::errc() || stop != part.data() + part.size())
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  std::string(input) + " is '" + text +
                      "'. Write whole numbers with commas between, such as 0, 1, or nothing.");
    places.push_back(place);
    begin = end + 1;
  }
  return places;
}

// Windows along a video, whose latent has a frame for each `frames`, and one for the first.
// `keeps`: the latent's first frame is in each window, too.
template <class Node>
Value with_video_windows(Context& ctx, std::int64_t frames, bool keeps) {
  const std::vector<std::int64_t> retained(ctx[Node::retained] ? 1 : 0, 0);
  return with_windows(ctx[Node::model],
                      {.length = 1 + (ctx[Node::length] - 1) / frames,
                       .overlap = ctx[Node::overlap] / frames,
                       .schedule = *find_window_schedule(ctx[Node::schedule]),
                       .stride = ctx[Node::stride],
                       .closed_loop = ctx[Node::closed_loop],
                       .fuse = *find_window_fuse(ctx[Node::fuse]),
                       .dim = kFramesAxis,
                       .freenoise = ctx[Node::freenoise],
                       .cond_retained = retained,
                       .split_conds = ctx[Node::split_conds],
                       .latent_retained = keeps ? retained : std::vector<std::int64_t>()});
}

}  // namespace

void WanContextWindowsManual::execute(Context& ctx) {
  ctx[out] = with_video_windows<WanContextWindowsManual>(ctx, 4, false);
}

void LtxvContextWindows::execute(Context& ctx) {
  ctx[out] = with_video_windows<LtxvContextWindows>(ctx, 8, true);
}

void ContextWindowsManual::execute(Context& ctx) {
  ctx[out] = with_windows(
      ctx[model], {.length = ctx[length],
                   .overlap = ctx[overlap],
                   .schedule = *find_window_schedule(ctx[schedule]),
                   .stride = ctx[stride],
                   .closed_loop = ctx[closed_loop],
                   .fuse = *find_window_fuse(ctx[fuse]),
                   .dim = ctx[dim],
                   .freenoise = ctx[freenoise],
                   .cond_retained = places_in(ctx[cond_retained], "cond_retain_index_list"),
                   .split_conds = ctx[split_conds],
                   .latent_retained = places_in(ctx[latent_retained], "latent_retain_index_list"),
                   .causal_fix = ctx[causal_fix]});
}

}  // namespace heddle::samplers
