#include "plugins/shader/shader_node.h"

#include <algorithm>
#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <memory>

#include "plugins/blocks/dynamic_inputs.h"
#include "plugins/blocks/pixel_limit.h"
#include "plugins/shader/curve.h"
#include "plugins/shader/drawing_process.h"
#include "plugins/shader/source_text.h"

namespace heddle::shader {
namespace {

using blocks::GrownInput;

constexpr std::size_t kMostSource = 1 << 20;

struct GivenImage {
  Tensor tensor;
  std::int64_t count, height, width, channels;
};

std::vector<GivenImage> images_of(Context& ctx) {
  std::vector<GivenImage> images;
  for (const GrownInput& input : blocks::grown_inputs(ctx, GLSLShader::images.port)) {
    const auto tensor = input.value.as<Tensor>();
    const Shape shape = tensor.shape();
    if (shape.size() != 4 || shape[0] < 1 || shape[1] < 1 || shape[2] < 1 || shape[3] < 1 ||
        shape[3] > 4)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "images." + input.name +
                      ": an IMAGE is (batch, height, width, 1 to 4 channels). Link one.");
    images.push_back({tensor, shape[0], shape[1], shape[2], shape[3]});
  }
  return images;
}

// Picture i with its first row at the bottom; grey is all three colours, and what has no alpha is
// opaque. A batch that is too short begins again.
void flip_to_rgba(const GivenImage& image, const HostFloats& from, std::int64_t i,
                  std::span<float> to) {
  const std::int64_t c = image.channels, size = image.height * image.width * c;
  const float* const first = from.data() + i % image.count * size;
  float* pixel = to.data();
  for (std::int64_t y = image.height; y-- > 0;)
    for (std::int64_t x = 0; x < image.width; ++x, pixel += 4) {
      const float* const given = first + (y * image.width + x) * c;
      for (std::int64_t k = 0; k < 3; ++k) pixel[k] = given[c < 3 ? 0 : k];
      pixel[3] = c == 4 || c == 2 ? given[c - 1] : 1.0f;
    }
}

double number_of(const GrownInput& input) {
  switch (input.value.kind()) {
    case HEDDLE_KIND_BOOL:
      return input.value.as<bool>() ? 1 : 0;
    case HEDDLE_KIND_INT:
    case HEDDLE_KIND_UINT:
    case HEDDLE_KIND_FLOAT:
      return input.value.as<double>();
    default:
      throw Error(HEDDLE_INVALID_ARGUMENT, input.name + ": it is no number. Link one.");
  }
}

void set_numbers(Context& ctx, Request& request) {
  for (const GrownInput& input : blocks::grown_inputs(ctx, GLSLShader::floats.port))
    request.float_values[request.floats++] = float(number_of(input));
  for (const GrownInput& input : blocks::grown_inputs(ctx, GLSLShader::ints.port))
    request.int_values[request.ints++] =
        std::int32_t(std::clamp(number_of(input), -2147483648.0, 2147483647.0));
  for (const GrownInput& input : blocks::grown_inputs(ctx, GLSLShader::bools.port))
    request.bool_values[request.bools++] = number_of(input) != 0 ? 1 : 0;
}

Request request_of(Context& ctx, const std::vector<GivenImage>& images, const std::string& text) {
  Request request;
  const blocks::ChosenVariant size(ctx, GLSLShader::size_mode);
  const bool is_custom = size.key() == "custom";
  request.width = std::uint32_t(is_custom ? size.whole("width") : images[0].width);
  request.height = std::uint32_t(is_custom ? size.whole("height") : images[0].height);
  if (std::uint64_t(request.width) * request.height > blocks::most_pixels())
    throw Error(HEDDLE_INVALID_ARGUMENT, "size_mode: " + std::to_string(request.width) + " x " +
                                             std::to_string(request.height) +
                                             " pixels are more than " +
                                             std::to_string(blocks::most_pixels()) +
                                             ". Ask for fewer, or raise HEDDLE_MOST_PIXELS.");
  request.passes = pass_count(text);
  request.outputs = output_count(text);
  for (const GivenImage& image : images) {
    request.image_width[request.images] = checked_cast<std::uint32_t>(image.width, "images");
    request.image_height[request.images++] = checked_cast<std::uint32_t>(image.height, "images");
  }
  set_numbers(ctx, request);
  return request;
}

}  // namespace

void GLSLShader::execute(Context& ctx) {
  const std::string text = ctx[fragment_shader];
  if (text.size() > kMostSource)
    throw Error(HEDDLE_INVALID_ARGUMENT, "fragment_shader: it has " + std::to_string(text.size()) +
                                             " bytes, " + std::to_string(kMostSource) +
                                             " are the most. Shorten it.");
  const std::vector<GivenImage> given = images_of(ctx);
  Request request = request_of(ctx, given, text);
  std::vector<float> tables;
  for (const GrownInput& input : blocks::grown_inputs(ctx, curves.port)) {
    const std::vector<float> table = curve_table(input.value, kCurveLength);
    tables.insert(tables.end(), table.begin(), table.end());
    ++request.curves;
  }
  const std::string source = desktop_shader(text);
  request.source_bytes = std::uint32_t(source.size());
  const std::int64_t count = given[0].count, height = request.height, width = request.width;
  std::vector<Tensor> outputs;
  for (std::uint32_t i = 0; i < kMostOutputs; ++i)
    outputs.push_back(ctx.make_host({count, height, width, 4}, HEDDLE_F32));
  std::vector<std::unique_ptr<HostFloats>> numbers;
  for (const GivenImage& image : given)
    numbers.push_back(std::make_unique<HostFloats>(ctx, image.tensor));
  HostMemory memory(ctx);
  std::pmr::vector<float> pixels(&memory);
  DrawingProcess process(ctx, request, source, tables);
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < given.size(); ++k) {
      pixels.resize(std::size_t(given[k].height * given[k].width * 4));
      flip_to_rgba(given[k], *numbers[k], i, pixels);
      process.send(pixels);
    }
    process.await_drawn();
    for (std::uint32_t o = 0; o < request.outputs; ++o)
      for (std::int64_t y = height; y-- > 0;)
        process.receive(
            {outputs[o].data<float>() + ((i * height) + y) * width * 4, std::size_t(width * 4)});
    ctx.progress(double(i + 1) / double(count));
  }
  for (std::uint32_t i = 0; i < kMostOutputs; ++i)  // what nobody writes OpenGL leaves as it is
    if (!writes_output(text, i)) std::fill_n(outputs[i].data<float>(), outputs[i].count(), 0.0f);
  ctx[out0] = outputs[0];
  ctx[out1] = outputs[1];
  ctx[out2] = outputs[2];
  ctx[out3] = outputs[3];
}

}  // namespace heddle::shader
