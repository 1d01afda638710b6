// plugins/detection/rtdetr_nodes.h - the node of RT-DETR 4 (rtdetr.h). Stateless; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::detection {

// As ComfyUI: pictures are stretched to squares of 640 pixels, boxes are in pixels of the pictures,
// those of a higher score first. What is left out of fewer than max_detections, as by Python's
// slices: a number below 0 leaves out as many at the end.
struct RtdetrDetect {
  static constexpr const char* kClasses[] = {"all",
                                             "person",
                                             "bicycle",
                                             "car",
                                             "motorcycle",
                                             "airplane",
                                             "bus",
                                             "train",
                                             "truck",
                                             "boat",
                                             "traffic light",
                                             "fire hydrant",
                                             "stop sign",
                                             "parking meter",
                                             "bench",
                                             "bird",
                                             "cat",
                                             "dog",
                                             "horse",
                                             "sheep",
                                             "cow",
                                             "elephant",
                                             "bear",
                                             "zebra",
                                             "giraffe",
                                             "backpack",
                                             "umbrella",
                                             "handbag",
                                             "tie",
                                             "suitcase",
                                             "frisbee",
                                             "skis",
                                             "snowboard",
                                             "sports ball",
                                             "kite",
                                             "baseball bat",
                                             "baseball glove",
                                             "skateboard",
                                             "surfboard",
                                             "tennis racket",
                                             "bottle",
                                             "wine glass",
                                             "cup",
                                             "fork",
                                             "knife",
                                             "spoon",
                                             "bowl",
                                             "banana",
                                             "apple",
                                             "sandwich",
                                             "orange",
                                             "broccoli",
                                             "carrot",
                                             "hot dog",
                                             "pizza",
                                             "donut",
                                             "cake",
                                             "chair",
                                             "couch",
                                             "potted plant",
                                             "bed",
                                             "dining table",
                                             "toilet",
                                             "tv",
                                             "laptop",
                                             "mouse",
                                             "remote",
                                             "keyboard",
                                             "cell phone",
                                             "microwave",
                                             "oven",
                                             "toaster",
                                             "sink",
                                             "refrigerator",
                                             "book",
                                             "clock",
                                             "vase",
                                             "scissors",
                                             "teddy bear",
                                             "hair drier",
                                             "toothbrush",
                                             nullptr};
  static constexpr Widget kModel{.extra = R"({"display_name": "model"})", .type = "MODEL"};
  static constexpr Widget kImage{.extra = R"({"display_name": "image"})", .type = "IMAGE"};
  static constexpr Widget kThreshold{.number = 0.5, .extra = R"({"display_name": "threshold"})"};
  static constexpr Widget kMost{.number = 100, .extra = R"({"display_name": "max_detections"})"};

  static constexpr Info info{"RTDETR_detect", 1, "Run Real-Time Detection (RT-DETR)",
                             "image/detection", "Finds objects of 80 classes in pictures."};
  static constexpr Input<Value> model{"model", kModel, "Of RT-DETR 4's file."};
  static constexpr Input<Tensor> image{"image", kImage, "(B, H, W, C) f32, 0 to 1"};
  static constexpr Input<double> threshold{"threshold", kThreshold};
  static constexpr Input<std::string> class_name{
      "class_name", Widget{.text = "all", .choices = kClasses, .type = "COMBO"}};
  static constexpr Input<std::int64_t> max_detections{"max_detections", kMost};
  static constexpr Output<Value> boxes{"bboxes", 0, "A list for each picture.", "BOUNDING_BOX"};
  static constexpr auto ports =
      heddle::ports(model, image, threshold, class_name, max_detections, boxes);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::detection
