// TextOverlay: a text over pictures. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

struct TextOverlay {
  static constexpr const char* kPositions[] = {"top", "bottom", nullptr};
  static constexpr const char* kAligns[] = {"left", "center", "right", nullptr};
  static constexpr Widget kSize{.number = 5, .min = 0.5, .max = 50, .step = 0.5};
  static constexpr Widget kColour{
      .text = "#ffffff", .extra = R"({"socketless": true})", .type = "COLOR"};
  static constexpr Widget kPosition{.text = "top", .choices = kPositions, .type = "COMBO"};
  static constexpr Widget kAlign{.text = "left", .choices = kAligns, .type = "COMBO"};
  static constexpr Widget kOutline{.number = 1, .extra = R"({"default": true})"};

  static constexpr Info info{"TextOverlay",
                             1,
                             "Draw Text Overlay",
                             "text",
                             "Draws a text over each picture of a batch. It is broken into lines, "
                             "and made smaller until it fits.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> images{"images", 0, "", "IMAGE"};
  static constexpr Input<std::string> text{
      "text", Widget{.extra = R"({"default": "", "multiline": true})"}};
  static constexpr Input<double> font_size{"font_size", kSize, "In hundredths of the height."};
  static constexpr Input<std::string> color{"color", kColour};
  static constexpr Input<std::string> position{"position", kPosition};
  static constexpr Input<std::string> align{"align", kAlign};
  static constexpr Input<bool> outline{"outline", kOutline, "A black line around the letters."};
  static constexpr Output<Tensor> out{"images", 0, "", "IMAGE"};
  static constexpr auto ports =
      heddle::ports(images, text, font_size, color, position, align, outline, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::image
