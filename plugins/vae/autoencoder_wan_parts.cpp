#include "autoencoder_wan_parts.h"

#include <algorithm>

#include "halvings.h"
#include "plugins/blocks/autoencoder.h"

namespace heddle::vae {
namespace {

std::vector<SidePart> middle_parts(const WanNames& names) {
  return {{PartKind::resnet, "mid.0", names.mid_resnet(0)},
          {PartKind::attention, "mid.attention", names.mid_attention()},
          {PartKind::resnet, "mid.1", names.mid_resnet(1)}};
}

// The parts where a picture is large are stages by themselves; each change of size ends one. Where
// levels have a shortcut, each is a stage: what the shortcut reads is the stage's input.
void divide_into_stages(std::vector<SidePart>& parts, std::int64_t halvings, bool is_decoder,
                        bool has_levels) {
  constexpr std::int64_t kLarge = 1;  // halvings of the pictures' sides
  std::size_t stage = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (has_levels) {
      if (parts[i].kind == PartKind::level) ++stage;
      parts[i].stage = stage;
      continue;
    }
    const bool is_behind =
        i > 0 && parts[i].kind == PartKind::resnet && parts[i - 1].kind != PartKind::in;
    if (is_behind && (parts[i - 1].kind == PartKind::resample || halvings <= kLarge)) ++stage;
    parts[i].stage = stage;
    if (parts[i].kind == PartKind::resample) halvings += is_decoder ? -1 : 1;
  }
}

}  // namespace

std::int64_t resamples_of(const std::vector<SidePart>& parts) {
  return std::ranges::count(parts, PartKind::resample, &SidePart::kind);
}

std::vector<SidePart> parts_of(const Checkpoint& file, const WanNames& names, VaeSide side) {
  const bool is_decoder = side == VaeSide::decoder;
  const std::string name = is_decoder ? "up." : "down.";
  std::vector<SidePart> parts{{PartKind::in, "in"}};
  const auto append = [&](const std::vector<SidePart>& more) {
    parts.insert(parts.end(), more.begin(), more.end());
  };
  if (is_decoder) append(middle_parts(names));
  int number = 0, level_number = 0;
  for (const WanNames::Level& level : names.levels(file)) {
    const std::string path = name + "shortcut." + std::to_string(level_number++);
    if (names.has_levels()) parts.push_back({PartKind::level, path});
    bool changes_size = false;
    for (const WanNames::Step& step : level.steps) {
      parts.push_back({step.is_resample ? PartKind::resample : PartKind::resnet,
                       name + std::to_string(number++), step.module, step.time_conv});
      changes_size = changes_size || step.is_resample;
    }
    if (names.has_levels() && (changes_size || !is_decoder)) {
      SidePart shortcut{PartKind::shortcut, path};
      shortcut.changes_size = changes_size;
      shortcut.changes_time = level.changes_time;
      parts.push_back(shortcut);
    }
  }
  if (!is_decoder) append(middle_parts(names));
  parts.push_back({PartKind::out, "out"});
  cell_side(file, resamples_of(parts));  // no more of them than shapes of chunks can have
  divide_into_stages(parts, is_decoder ? resamples_of(parts) : 0, is_decoder, names.has_levels());
  return parts;
}

std::int64_t wan_patch(const Checkpoint& file, const WanNames& names, VaeSide side) {
  constexpr std::int64_t kPixels = 4;
  const std::int64_t channels = side == VaeSide::decoder
                                    ? file.size(names.conv_out() + ".weight", 0)
                                    : file.size(names.conv_in() + ".weight", 1);
  return names.has_levels() && channels == kPixels * kColours ? 2 : 1;
}

// Upwards a channel is repeated in whole rows of the 4 (8 over two frames) that it becomes.
void require_shortcut(const Checkpoint& file, const std::string& path, bool is_up,
                      const ShortcutSizes& sizes) {
  const auto& [from, to, frames] = sizes;
  const std::int64_t numbers = is_up ? from : from * frames;
  if (numbers % to == 0 && (!is_up || 4 * frames % (from / to) == 0)) return;
  throw Error(HEDDLE_UNSUPPORTED,
              file.path() + ": " + path + " goes from " + std::to_string(from) + " to " +
                  std::to_string(to) +
                  " channels, which no shortcut does. The file is damaged or of another model.");
}

}  // namespace heddle::vae
