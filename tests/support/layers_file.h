// Files of linear layers (the family test.layers) in which no number stands twice, so that what
// takes one weight for another gives other results; and what the node test.loop makes of them,
// reckoned here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/support/safetensors_writer.h"

namespace heddle::test {

struct LayersFile {
  std::string name;  // other names, other numbers
  int width, layers;

  // Of layer `l`, row-major. Small enough that no result grows from layer to layer.
  std::vector<float> weight(int l) const {
    const std::string text = name + "/" + std::to_string(l);
    std::seed_seq seed(text.begin(), text.end());
    std::mt19937 random(seed);
    std::vector<float> numbers(std::size_t(width) * std::size_t(width));
    for (float& number : numbers)
      number = (float(random() >> 8) / float(1 << 23) - 1) / std::sqrt(float(width));
    return numbers;
  }

  std::string bytes() const {
    std::vector<FileTensor> tensors;
    for (int l = 0; l < layers; ++l)
      tensors.push_back({"layers." + std::to_string(l) + ".weight",
                         "F32",
                         {width, width},
                         bytes_of_floats(weight(l))});
    return safetensors_bytes(tensors);
  }

  // Of a ramp that begins at `start`, with one set.
  std::vector<double> loop(double start, int steps = 2) const {
    std::vector<std::vector<float>> weights;
    for (int l = 0; l < layers; ++l) weights.push_back(weight(l));
    std::vector<double> x;
    for (int i = 0; i < width; ++i) x.push_back(start + i);
    for (int step = 0; step < steps; ++step)
      for (const std::vector<float>& w : weights) {
        std::vector<double> y(x.size(), 0.5 + 1 + step);
        for (std::size_t i = 0; i < w.size(); ++i)
          y[i / x.size()] += double(w[i]) * x[i % x.size()];
        x = std::move(y);
      }
    return x;
  }

  // Whether these are the results of loop(), but for rounding to f32.
  bool gives(const std::vector<float>& got, double start, int steps = 2) const {
    const std::vector<double> expected = loop(start, steps);
    double most = 0, worst = 0;
    if (got.size() != expected.size()) return false;
    for (std::size_t i = 0; i < got.size(); ++i) {
      most = std::max(most, std::abs(expected[i]));
      worst = std::max(worst, std::abs(got[i] - expected[i]));
    }
    return worst <= 1e-5 * most;
  }
};

}  // namespace heddle::test
