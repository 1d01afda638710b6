// The family on a file of small weights, against the formula in plain loops.
// Usage: my_plugin_test write FILE, which makes such a file
//        my_plugin_test FOLDER_OF_THE_PLUGIN FOLDER_OF_MODELS
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <heddle/testing/node_runner.hpp>

namespace testing = heddle::testing;

namespace {

constexpr int kChannels = 3, kWidth = 8;

// Element i of a weight: numbers between -0.4 and 0.4.
float weight(int which, int i) { return float((7 * i + 3 * which) % 9 - 4) * 0.1f; }

struct FileTensor {
  const char* name;
  int rows, columns;  // no columns: a vector
};
constexpr FileTensor kTensors[] = {{"my_plugin.first.weight", kWidth, kChannels},
                                   {"my_plugin.first.bias", kWidth, 0},
                                   {"my_plugin.second.weight", kChannels, kWidth},
                                   {"my_plugin.second.bias", kChannels, 0}};

// safetensors: the size of a JSON header, 8 bytes, little endian; the header; the elements.
int write_model(const char* path) {
  std::string header, data;
  for (int which = 0; which < 4; ++which) {
    const FileTensor& tensor = kTensors[which];
    const std::size_t begin = data.size();
    for (int i = 0; i < tensor.rows * (tensor.columns == 0 ? 1 : tensor.columns); ++i) {
      const float value = weight(which, i);
      char bytes[sizeof value];
      std::memcpy(bytes, &value, sizeof value);
      data.append(bytes, sizeof bytes);
    }
    header += (header.empty() ? "{\"" : ",\"") + std::string(tensor.name) +
              R"(":{"dtype":"F32","shape":[)" + std::to_string(tensor.rows) +
              (tensor.columns == 0 ? "" : "," + std::to_string(tensor.columns)) +
              R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(data.size()) +
              "]}";
  }
  header += "}";
  std::ofstream file(path, std::ios::binary);
  for (unsigned shift = 0; shift < 64; shift += 8)
    file.put(char(std::uint64_t{header.size()} >> shift & 255));
  file << header << data;
  return file.flush().good() ? 0 : 1;
}

double expected(const double (&pixel)[kChannels], int channel) {
  double sum = weight(3, channel);
  for (int j = 0; j < kWidth; ++j) {
    double hidden = weight(1, j);
    for (int c = 0; c < kChannels; ++c) hidden += weight(0, j * kChannels + c) * pixel[c];
    sum += weight(2, channel * kWidth + j) * hidden / (1 + std::exp(-hidden));
  }
  return std::fmin(std::fmax(pixel[channel] + sum, 0), 1);
}

// Three colours, all channels of each different.
int test(const char* plugin, const char* models) {
  testing::NodeRunner runner(
      {.plugin_dirs = {plugin}, .model_dirs = {models}, .compute = {{"cpu", "f32"}}});
  for (const unsigned color : {0x804020u, 0x0060f0u, 0x333366u}) {
    const auto made = runner.run_workflow(
        R"({"load": {"class_type": "UpscaleModelLoader",
                     "inputs": {"model_name": "my_plugin.safetensors"}},
            "image": {"class_type": "EmptyImage",
                      "inputs": {"width": 5, "height": 4, "batch_size": 1, "color": )" +
            std::to_string(color) + R"(}},
            "up": {"class_type": "ImageUpscaleWithModel",
                   "inputs": {"upscale_model": ["load", 0], "image": ["image", 0]}},
            "show": {"class_type": "PreviewImage", "inputs": {"images": ["up", 0]}}})",
        {"up.IMAGE"});
    const testing::Array picture = made.array("up.IMAGE");
    if (picture.shape != std::vector<std::int64_t>{1, 4, 5, 3}) return 1;
    const double pixel[] = {(color >> 16) / 255.0, (color >> 8 & 255) / 255.0,
                            (color & 255) / 255.0};
    for (std::size_t i = 0; i < picture.values.size(); ++i) {
      const double wanted = expected(pixel, int(i % 3));
      if (std::fabs(picture.values[i] - wanted) <= 1e-5) continue;
      std::fprintf(stderr, "FAILED: element %zu is %g, not %g\n", i, double(picture.values[i]),
                   wanted);
      return 1;
    }
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 3) return 2;
  return std::strcmp(arguments[1], "write") == 0 ? write_model(arguments[2])
                                                 : test(arguments[1], arguments[2]);
} catch (const std::exception& error) {
  std::fprintf(stderr, "FAILED: %s\n", error.what());
  return 1;
}
