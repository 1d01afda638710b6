// Pictures of which each pixel is made of its neighbours or its channels. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

struct ImageBlur {
  static constexpr Info info{"ImageBlur",
                             1,
                             "",
                             "image/postprocessing",
                             "A Gaussian blur. sigma is in units of the radius.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::int64_t> blur_radius{
      "blur_radius", Widget{.number = 1, .min = 1, .max = 31, .step = 1}};
  static constexpr Input<double> sigma{"sigma",
                                       Widget{.number = 1, .min = 0.1, .max = 10, .step = 0.1}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, blur_radius, sigma, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ImageSharpen {
  static constexpr Info info{"ImageSharpen",
                             1,
                             "Sharpen Image",
                             "image/filters",
                             "What a Gaussian blur takes away, added alpha times ten.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::int64_t> sharpen_radius{
      "sharpen_radius",
      Widget{.number = 1, .min = 1, .max = 31, .step = 1, .extra = "{\"advanced\": true}"}};
  static constexpr Input<double> sigma{
      "sigma",
      Widget{.number = 1, .min = 0.1, .max = 10, .step = 0.01, .extra = "{\"advanced\": true}"}};
  static constexpr Input<double> alpha{
      "alpha",
      Widget{.number = 1, .min = 0, .max = 5, .step = 0.01, .extra = "{\"advanced\": true}"}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, sharpen_radius, sigma, alpha, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct Morphology {
  static constexpr const char* kOperations[] = {"erode",    "dilate",     "open",    "close",
                                                "gradient", "bottom_hat", "top_hat", nullptr};

  static constexpr Info info{
      "Morphology",
      1,
      "ImageMorphology",
      "image/postprocessing",
      "The least or the greatest of the pixels around, and what is made of both.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::string> operation{"operation",
                                                {.choices = kOperations, .type = "COMBO"}};
  static constexpr Input<std::int64_t> kernel_size{
      "kernel_size", Widget{.number = 3, .min = 3, .max = 999, .step = 1}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, operation, kernel_size, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct Canny {
  static constexpr Info info{
      "Canny",         1, "", "image/preprocessors", "The edges of a picture, white on black.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<double> low_threshold{
      "low_threshold", Widget{.number = 0.4, .min = 0.01, .max = 0.99, .step = 0.01}};
  static constexpr Input<double> high_threshold{
      "high_threshold", Widget{.number = 0.8, .min = 0.01, .max = 0.99, .step = 0.01}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, low_threshold, high_threshold, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ImageRGBToYUV {
  static constexpr Info info{
      "ImageRGBToYUV",
      1,
      "",
      "image/batch",
      "Brightness and the two differences of colour, each as a grey picture.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Output<Tensor> y_out{"Y", 0, "", "IMAGE"};
  static constexpr Output<Tensor> u_out{"U", 0, "", "IMAGE"};
  static constexpr Output<Tensor> v_out{"V", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, y_out, u_out, v_out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ImageYUVToRGB {
  static constexpr Info info{"ImageYUVToRGB",
                             1,
                             "",
                             "image/batch",
                             "The picture of which these are brightness and differences of colour.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> Y{"Y", 0, "", "IMAGE"};
  static constexpr Input<Tensor> U{"U", 0, "", "IMAGE"};
  static constexpr Input<Tensor> V{"V", 0, "", "IMAGE"};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(Y, U, V, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::image
