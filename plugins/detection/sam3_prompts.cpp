#include "sam3_prompts.h"

#include <cmath>

namespace heddle::detection {
namespace {

double number_of(const Value& record, const char* key, const char* port) {
  const Value value = record.field(key);
  const bool is_number =
      value.is(HEDDLE_KIND_INT) || value.is(HEDDLE_KIND_UINT) || value.is(HEDDLE_KIND_FLOAT);
  const double number = is_number ? value.as<double>() : NAN;
  if (std::isfinite(number)) return number;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              std::string(port) + ": an object has no finite number '" + key + "'.");
}

PromptBox prompt_box(const Value& record) {
  constexpr const char* kPort = "bboxes";
  if (!record.is(HEDDLE_KIND_RECORD))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "bboxes: it holds no boxes {x, y, width, height}. Link a BOUNDING_BOX.");
  return {number_of(record, "x", kPort), number_of(record, "y", kPort),
          number_of(record, "width", kPort), number_of(record, "height", kPort)};
}

std::vector<PromptBox> boxes_of_list(const Value& list) {
  std::vector<PromptBox> boxes;
  for (std::uint32_t i = 0; i < list.count(); ++i) boxes.push_back(prompt_box(list.item(i)));
  return boxes;
}

}  // namespace

std::vector<std::int64_t> most_of_texts(const Value& entry) {
  const Value several = entry.field("sam3_prompts");
  if (!several) return {1};
  std::vector<std::int64_t> most;
  for (std::uint32_t i = 0; i < several.count(); ++i)
    most.push_back(several.item(i).get<std::int64_t>("max_detections", 1));
  return most;
}

std::vector<PromptText> prompt_texts(const Value& conditioning) {
  if (!conditioning.is(HEDDLE_KIND_LIST) || conditioning.count() == 0) return {};
  const Value entry = conditioning.item(0), several = entry.field("sam3_prompts");
  std::vector<PromptText> texts;
  const std::vector<std::int64_t> most = most_of_texts(entry);
  for (std::uint32_t i = 0; i < most.size(); ++i) {
    const Value told = several ? several.item(i) : entry;
    const Tensor states = told.get<Tensor>("cross_attn", {});
    if (!states || states.rank() != 3 || states.count() == 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "conditioning: it holds no states of a text. Link a CLIPTextEncode that has the "
                  "CLIP of SAM 3's checkpoint.");
    texts.push_back({states.slice(0, 0, 1), most[i]});
  }
  return texts;
}

std::vector<Shape> text_shapes(Infer& question, const Input<Value>& conditioning) {
  std::vector<Shape> texts;
  const auto text_at = [&](const std::string& path) { return question.shape(conditioning, path); };
  while (const auto text =
             text_at("0.sam3_prompts." + std::to_string(texts.size()) + ".cross_attn"))
    texts.push_back(*text);
  if (texts.empty())
    if (const auto text = text_at("0.cross_attn")) texts.push_back(*text);
  return texts;
}

std::vector<PromptPoint> prompt_points(const std::string& json, std::int32_t kind,
                                       const char* port) {
  if (json.empty()) return {};
  heddle_value* raw = nullptr;
  check(
      service<heddle_json_service>().parse(services.host, {json.data(), json.size()}, port, &raw));
  const Value list = Value::adopt(raw);
  if (!list.is(HEDDLE_KIND_LIST))
    throw Error(
        HEDDLE_INVALID_ARGUMENT,
        std::string(port) + ": it is no JSON list of points such as [{\"x\": 10, \"y\": 20}].");
  std::vector<PromptPoint> points;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    points.push_back(
        {number_of(list.item(i), "x", port), number_of(list.item(i), "y", port), kind});
  return points;
}

std::vector<std::vector<PromptBox>> prompt_boxes(const Value& value, std::int64_t pictures) {
  std::vector<std::vector<PromptBox>> all;
  const bool is_list = value.is(HEDDLE_KIND_LIST);
  if (is_list && value.count() > 0 && value.item(0).is(HEDDLE_KIND_LIST)) {
    for (std::uint32_t i = 0; i < value.count() && std::int64_t(i) < pictures; ++i)
      all.push_back(boxes_of_list(value.item(i)));
    while (std::int64_t(all.size()) < pictures) all.push_back(all.back());
    return all;
  }
  const std::vector<PromptBox> shared =
      is_list ? boxes_of_list(value) : std::vector<PromptBox>{prompt_box(value)};
  all.assign(std::size_t(pictures), shared);
  return all;
}

}  // namespace heddle::detection
