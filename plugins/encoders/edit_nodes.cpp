#include "edit_nodes.h"

#include <algorithm>

#include <heddle/model.hpp>

#include "encode.h"
#include "pictures.h"
#include "shown_latents.h"

namespace heddle::encoders {
namespace {

using blocks::GridSize;

// About so many pixels are shown to the diffusion model, and by the later node to the text encoder.
constexpr std::int64_t kShownPixels = 1024 * 1024, kReadPixels = 384 * 384;
constexpr std::int64_t kShownStep = 8;

// What the publisher's pipeline puts around a text that names its pictures itself.
constexpr const char* kPlusTemplate =
    "<|im_start|>system\nDescribe the key features of the input image (color, shape, size, "
    "texture, "
    "objects, background), then explain how the user's text instruction should alter or modify the "
    "image. Generate a new image that meets the user's requirements while maintaining consistency "
    "with the original input where appropriate.<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n"
    "<|im_start|>assistant\n";

// A picture of a node: its port, and the sizes in which it is read and shown.
struct EditPicture {
  const Input<Tensor>* port;
  Shape shape;
  GridSize read, shown;
};

struct EditRequest {
  Prompt prompt;
  std::vector<EditPicture> pictures;
};

// What a node asks for, by the shapes of its pictures; the prompt's pictures have no pixels yet.
EditRequest edit_request(const std::string& text,
                         const std::vector<std::pair<const Input<Tensor>*, Shape>>& pictures) {
  EditRequest request{{.text = text, .by_encoder = {}}, {}};
  for (const auto& [port, shape] : pictures) {
    const GridSize size = size_of_area(picture_size(shape, port->port.name), kShownPixels, 1);
    request.pictures.push_back({port, shape, size, size});
    request.prompt.pictures.push_back({size});
  }
  return request;
}

// `pictures` by their number, from 1; without those that are not there.
EditRequest plus_request(
    const std::string& text,
    const std::vector<std::tuple<int, const Input<Tensor>*, Shape>>& pictures) {
  EditRequest request{{.text = "", .by_encoder = {}, .text_template = kPlusTemplate}, {}};
  for (const auto& [number, port, shape] : pictures) {
    const GridSize from = picture_size(shape, port->port.name);
    request.pictures.push_back({port, shape, size_of_area(from, kReadPixels, 1),
                                size_of_area(from, kShownPixels, kShownStep)});
    request.prompt.pictures.push_back({request.pictures.back().read});
    request.prompt.text +=
        "Picture " + std::to_string(number) + ": <|vision_start|><|image_pad|><|vision_end|>";
  }
  request.prompt.text += text;
  return request;
}

Value encode_request(Context& ctx, const Value& clip, const Value& vae, EditRequest& request) {
  std::vector<Value> shown;
  for (std::size_t i = 0; i < request.pictures.size(); ++i) {
    const EditPicture& picture = request.pictures[i];
    const Tensor image = ctx[*picture.port];
    const Tensor read = scaled_by_area(ctx, image, picture.read);
    if (vae)
      shown.push_back(shown_latent(
          ctx, vae,
          picture.shown == picture.read ? read : scaled_by_area(ctx, image, picture.shown)));
    request.prompt.pictures[i].pixels = read;
  }
  return with_shown(encode_prompt(ctx, clip, request.prompt), shown);
}

void infer_request(Infer& question, const Value& clip, const std::optional<Value>& vae,
                   const EditRequest& request, const Output<Value>& conditioning) {
  std::uint64_t bytes = 0;
  std::vector<Shape> shown;
  for (const EditPicture& picture : request.pictures) {
    const Shape read{1, picture.read.height, picture.read.width, 3};
    bytes = std::max({bytes, scaling_bytes(picture.shape, picture.read),
                      scaling_bytes(picture.shape, picture.shown),
                      2 * scaling_bytes(read, picture.read)});
    if (!vae) continue;
    if (const auto latent = infer_shown(question, *vae, picture.shape[0], picture.shown))
      shown.push_back(*latent);
  }
  question.host_scratch(bytes);
  const std::size_t entries = infer_prompt(question, clip, request.prompt, conditioning);
  for (std::size_t i = 0; i < entries; ++i)
    for (std::size_t k = 0; k < shown.size(); ++k)
      question.out(conditioning,
                   std::to_string(i) + ".reference_latents." + std::to_string(k) + ".samples",
                   HEDDLE_F32, shown[k]);
}

template <class Node>
Value vae_of(Context& ctx) {
  return ctx.has(Node::vae) ? ctx[Node::vae] : Value();
}

using Plus = TextEncodeQwenImageEditPlus;
constexpr const Input<Tensor>* kPlusImages[] = {&Plus::image1, &Plus::image2, &Plus::image3};

}  // namespace

void TextEncodeQwenImageEdit::execute(Context& ctx) {
  std::vector<std::pair<const Input<Tensor>*, Shape>> pictures;
  if (ctx.has(image)) pictures.emplace_back(&image, ctx[image].shape());
  EditRequest request = edit_request(ctx[prompt], pictures);
  ctx[conditioning] = encode_request(ctx, ctx[clip], vae_of<TextEncodeQwenImageEdit>(ctx), request);
}

// Without a known picture it is not known whether there is one.
void TextEncodeQwenImageEdit::infer(Infer& question) {
  const auto from = question[clip];
  const auto text = question[prompt];
  const auto shape = question.shape(image);
  if (from && text && shape)
    infer_request(question, *from, question[vae], edit_request(*text, {{&image, *shape}}),
                  conditioning);
}

void TextEncodeQwenImageEditPlus::execute(Context& ctx) {
  std::vector<std::tuple<int, const Input<Tensor>*, Shape>> pictures;
  int number = 0;
  for (const Input<Tensor>* port : kPlusImages) {
    ++number;
    if (ctx.has(*port)) pictures.emplace_back(number, port, ctx[*port].shape());
  }
  EditRequest request = plus_request(ctx[prompt], pictures);
  ctx[conditioning] = encode_request(ctx, ctx[clip], vae_of<Plus>(ctx), request);
}

void TextEncodeQwenImageEditPlus::infer(Infer& question) {
  const auto from = question[clip];
  const auto text = question[prompt];
  std::vector<std::tuple<int, const Input<Tensor>*, Shape>> pictures;
  int number = 0;
  for (const Input<Tensor>* port : kPlusImages) {
    ++number;
    if (const auto shape = question.shape(*port)) pictures.emplace_back(number, port, *shape);
  }
  if (from && text && !pictures.empty())
    infer_request(question, *from, question[vae], plus_request(*text, pictures), conditioning);
}

}  // namespace heddle::encoders
