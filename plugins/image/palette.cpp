#include "plugins/image/palette.h"

#include <algorithm>
#include <memory>

namespace heddle::image {
namespace {

struct Counted {
  PaletteColour colour;  // in steps
  std::uint64_t count;
};

// A part of the colours, in a tree of parts.
struct ColourBox {
  std::vector<std::size_t> members;  // of the list of colours
  std::int64_t pixels = 0;
  std::unique_ptr<ColourBox> brighter, darker;
};

// The box with the most pixels first. Pillow's order of equal ones comes from how its heap is
// built, which is not as the standard library's.
class BoxHeap {
 public:
  void add(ColourBox* box) {
    std::size_t k = boxes_.size();
    boxes_.push_back(box);
    for (; k != 1 && box->pixels > boxes_[k / 2]->pixels; k /= 2) boxes_[k] = boxes_[k / 2];
    boxes_[k] = box;
  }
  // nullptr when there is none.
  ColourBox* remove() {
    if (boxes_.size() == 1) return nullptr;
    ColourBox *const first = boxes_[1], *const last = boxes_.back();
    boxes_.pop_back();
    const std::size_t count = boxes_.size() - 1;
    if (count == 0) return first;
    std::size_t k = 1;
    for (std::size_t l; k * 2 <= count; k = l) {
      l = k * 2;
      if (l < count && boxes_[l]->pixels < boxes_[l + 1]->pixels) ++l;
      if (last->pixels > boxes_[l]->pixels) break;
      boxes_[k] = boxes_[l];
    }
    boxes_[k] = last;
    return first;
  }

 private:
  std::vector<ColourBox*> boxes_{nullptr};  // from 1
};

struct Sides {
  int length[3];
  bool is_point() const { return length[0] == 0 && length[1] == 0 && length[2] == 0; }
  // The longest as people see it.
  std::size_t longest() const {
    const int seen[3] = {length[0] * 77, length[1] * 150, length[2] * 29};
    return std::size_t(std::max_element(seen, seen + 3) - seen);
  }
};

Sides sides_of(const ColourBox& box, const std::vector<Counted>& colours) {
  Sides sides{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    int least = 255, most = 0;
    for (const std::size_t i : box.members) {
      least = std::min(least, int(colours[i].colour[axis]));
      most = std::max(most, int(colours[i].colour[axis]));
    }
    sides.length[axis] = most - least;
  }
  return sides;
}

// The brightest half of the pixels along an axis, with all of the colours at the cut; but not all.
void cut_box(ColourBox& box, std::size_t axis, const std::vector<Counted>& colours) {
  std::int64_t at[256] = {};
  for (const std::size_t i : box.members)
    at[colours[i].colour[axis]] += std::int64_t(colours[i].count);
  int value = 255, least = 0;
  while (at[least] == 0) ++least;
  for (std::int64_t above = at[255]; above * 2 <= box.pixels && value > least; above += at[--value])
    continue;
  if (value == least) do
      ++value;
    while (at[value] == 0);
  box.brighter = std::make_unique<ColourBox>();
  box.darker = std::make_unique<ColourBox>();
  for (const std::size_t i : box.members) {
    ColourBox& part = int(colours[i].colour[axis]) >= value ? *box.brighter : *box.darker;
    part.members.push_back(i);
    part.pixels += std::int64_t(colours[i].count);
  }
}

void number_leaves(const ColourBox& box, std::vector<std::size_t>& numbers, std::size_t& count) {
  if (box.brighter) {
    number_leaves(*box.brighter, numbers, count);
    number_leaves(*box.darker, numbers, count);
    return;
  }
  for (const std::size_t i : box.members) numbers[i] = count;
  ++count;
}

PaletteColour in_steps(const PaletteColour& colour, int bits) {
  return {std::uint8_t(colour[0] >> bits), std::uint8_t(colour[1] >> bits),
          std::uint8_t(colour[2] >> bits)};
}

// The colours of a picture, and of each pixel its colour's number; in larger steps where they are
// more than Pillow counts.
std::vector<Counted> count_colours(std::span<const PaletteColour> pixels,
                                   std::vector<std::uint32_t>& numbers) {
  constexpr std::size_t kMostColours = 65536;
  constexpr std::uint32_t kNone = ~0u;
  std::vector<Counted> colours;
  std::vector<std::uint32_t> places(std::size_t{1} << 24);
  for (int bits = 0;; ++bits) {
    colours.clear();
    std::ranges::fill(places, kNone);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const PaletteColour c = in_steps(pixels[i], bits);
      std::uint32_t& place = places[std::size_t(c[0]) << 16 | std::size_t(c[1]) << 8 | c[2]];
      if (place == kNone) {
        place = std::uint32_t(colours.size());
        colours.push_back({c, 0});
        if (colours.size() > kMostColours) break;
      }
      numbers[i] = place;
      ++colours[place].count;
    }
    if (colours.size() <= kMostColours) return colours;
  }
}

}  // namespace

std::vector<PaletteColour> median_cut(std::span<const PaletteColour> pixels, std::size_t most) {
  std::vector<std::uint32_t> colour_of(pixels.size());
  const std::vector<Counted> colours = count_colours(pixels, colour_of);
  ColourBox root;
  for (std::size_t i = 0; i < colours.size(); ++i) root.members.push_back(i);
  root.pixels = std::int64_t(pixels.size());
  BoxHeap heap;
  heap.add(&root);
  for (std::size_t boxes = 1; boxes < most; ++boxes) {
    ColourBox* box = heap.remove();
    while (box != nullptr && sides_of(*box, colours).is_point()) box = heap.remove();
    if (box == nullptr) break;
    cut_box(*box, sides_of(*box, colours).longest(), colours);
    heap.add(box->brighter.get());
    heap.add(box->darker.get());
  }
  std::vector<std::size_t> box_of(colours.size());
  std::size_t count = 0;
  number_leaves(root, box_of, count);
  struct Sum {
    std::uint64_t colour[3] = {}, pixels = 0;
  };
  std::vector<Sum> sums(count);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    Sum& sum = sums[box_of[colour_of[i]]];
    for (std::size_t c = 0; c < 3; ++c) sum.colour[c] += pixels[i][c];
    ++sum.pixels;
  }
  std::vector<PaletteColour> palette;
  for (const Sum& sum : sums) {
    PaletteColour mean;
    for (std::size_t c = 0; c < 3; ++c)
      mean[c] = std::uint8_t(0.5 + double(sum.colour[c]) / double(sum.pixels));
    palette.push_back(mean);
  }
  return palette;
}

const PaletteColour& NearestColour::operator()(const PaletteColour& colour) {
  const PaletteColour cell = in_steps(colour, 2);
  std::uint16_t& found =
      found_[std::size_t(cell[0]) << 12 | std::size_t(cell[1]) << 6 | std::size_t(cell[2])];
  if (found != kUnknown) return palette_[found];
  int least = 1 << 30;
  for (std::size_t i = 0; i < palette_.size(); ++i) {
    int distance = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      const int step = 4 * int(cell[c]) - int(palette_[i][c]);
      distance += step * step;
    }
    if (distance >= least) continue;
    least = distance;
    found = std::uint16_t(i);
  }
  return palette_[found];
}

void map_colours(std::span<PaletteColour> pixels, NearestColour& nearest) {
  for (PaletteColour& pixel : pixels) pixel = nearest(pixel);
}

void diffuse_colours(std::span<PaletteColour> pixels, std::size_t width, NearestColour& nearest) {
  // Of the row above, in sixteenths, shifted by one pixel.
  std::vector<std::array<int, 3>> below(width + 1);
  for (std::size_t row = 0; row < pixels.size(); row += width) {
    int right[3] = {}, left[3] = {}, middle[3] = {};
    for (std::size_t x = 0; x < width; ++x) {
      PaletteColour& pixel = pixels[row + x];
      PaletteColour wanted;
      for (std::size_t c = 0; c < 3; ++c)
        wanted[c] =
            std::uint8_t(std::clamp(int(pixel[c]) + (right[c] + below[x + 1][c]) / 16, 0, 255));
      pixel = nearest(wanted);
      for (std::size_t c = 0; c < 3; ++c) {
        const int error = int(wanted[c]) - int(pixel[c]);
        below[x][c] = 3 * error + left[c];
        left[c] = 5 * error + middle[c];
        middle[c] = error;
        right[c] = 7 * error;
      }
    }
    // What Pillow keeps for the last place is blue's alone.
    below[width] = {left[2], middle[2], middle[2]};
  }
}

void add_bayer(std::span<PaletteColour> pixels, std::size_t width, int order, std::size_t colours) {
  std::vector<float> matrix{0};
  std::size_t side = 1;
  float cells = 1;
  for (int i = 0; i < order; ++i, side *= 2) {
    cells *= 4;
    std::vector<float> larger(4 * side * side);
    constexpr float kOffsets[2][2] = {{-1.5f, 0.5f}, {1.5f, -0.5f}};
    for (std::size_t y = 0; y < 2 * side; ++y)
      for (std::size_t x = 0; x < 2 * side; ++x)
        larger[y * 2 * side + x] =
            (cells * matrix[y % side * side + x % side] + kOffsets[y / side][x / side]) / cells;
    matrix = std::move(larger);
  }
  const float spread = float(2.0 * 256 / double(colours));
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const float offset = spread * matrix[i / width % side * side + i % width % side] + 0.5f;
    for (std::uint8_t& sample : pixels[i])
      sample = std::uint8_t(std::clamp(float(sample) + offset, 0.0f, 255.0f));
  }
}

}  // namespace heddle::image
