#include "encode.h"

#include <algorithm>

#include <heddle/field/tokenizer.h>
#include <heddle/ops.hpp>

namespace heddle::encoders {
namespace {

struct Window {
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
};

struct Encoded {
  Tensor hidden;  // (1, tokens, width) f32
  Tensor pooled;  // (1, width) f32; empty for encoders without one
};

// One entry of a CLIP value's `encoders`.
class Encoder {
 public:
  Encoder(Context& ctx, const Value& record)
      : ctx_(ctx),
        record_(record),
        name_(record.get<std::string>("name", "")),
        is_clip_(record.get<std::string>("family", "") == "clip") {
    if (!record.has("tokenizer"))
      throw Error(HEDDLE_NOT_FOUND,
                  record.get<std::string>("tokenizer_missing",
                                          "the text encoder " + name_ + " has no tokenizer"));
    tokenizer_ = record.field("tokenizer").object<heddle_tokenizer>(HEDDLE_TOKENIZER);
  }

  Encoded encode(const std::string& prompt, std::int64_t stop_at_layer) const {
    std::vector<Window> windows = windows_of(prompt);
    const std::int64_t count = std::int64_t(windows.size());
    const bool weighted = std::any_of(windows.begin(), windows.end(), [](const Window& w) {
      return std::any_of(w.weights.begin(), w.weights.end(), [](float x) { return x != 1.0f; });
    });
    std::vector<float> weights;
    for (const Window& window : windows)
      weights.insert(weights.end(), window.weights.begin(), window.weights.end());
    if (weighted) windows.push_back(empty_window(std::int64_t(windows.front().ids.size())));

    const Value outputs = call_model(ctx_, record_.field("model"), inputs_of(windows));
    const Tensor all = hidden_of(outputs, stop_at_layer);
    const std::int64_t length = all.size(1), width = all.size(2);
    Tensor hidden = all.slice(0, 0, count);
    if (weighted)
      hidden = weigh(hidden, all.slice(0, count, count + 1),
                     ctx_.upload({count, length, 1}, HEDDLE_F32, weights.data()));
    Encoded result{hidden.reshape({1, count * length, width}), {}};
    if (outputs.has("pooled"))
      result.pooled = f32(outputs.field("pooled").as<Tensor>()).slice(0, 0, 1);
    return result;
  }

 private:
  heddle_token_windows rules(std::int64_t least_length) const {
    return {sizeof(heddle_token_windows),
            std::uint32_t(is_clip_ ? HEDDLE_WINDOWS_CLIP : HEDDLE_WINDOWS_OPEN),
            std::uint32_t(record_.get<std::int64_t>("length", 0)),
            std::uint32_t(least_length),
            std::int32_t(record_.get<std::int64_t>("padding", -1)),
            1};
  }

  std::vector<Window> pack(const std::string& prompt, const heddle_token_windows& wanted) const {
    std::vector<Window> windows;
    const auto push = [](void* to, std::uint32_t window, std::int32_t id, double weight) {
      auto& all = *static_cast<std::vector<Window>*>(to);
      if (window >= all.size()) all.resize(window + 1);
      all[window].ids.push_back(id);
      all[window].weights.push_back(float(weight));
    };
    check(tokenizer_.first->windows(tokenizer_.second, {prompt.data(), prompt.size()}, &wanted,
                                    push, &windows));
    return windows;
  }

  std::vector<Window> windows_of(const std::string& prompt) const {
    const heddle_token_windows wanted = rules(record_.get<std::int64_t>("least_length", 0));
    std::vector<Window> windows = pack(prompt, wanted);
    if (windows.empty() || windows.front().ids.empty())
      throw Error(HEDDLE_INTERNAL, "the tokenizer of " + name_ + " gave no tokens");
    if (!is_clip_ && windows.size() > 1) {
      ctx_.warn("the prompt has more than the " + std::to_string(wanted.length) + " tokens that " +
                name_ + " of this model reads; the rest is left out.");
      windows.resize(1);
    }
    return windows;
  }

  Window empty_window(std::int64_t length) const { return pack("", rules(length)).front(); }

  Value inputs_of(const std::vector<Window>& windows) const {
    const std::int64_t rows = std::int64_t(windows.size());
    const std::int64_t length = std::int64_t(windows.front().ids.size());
    const Tensor ids = ctx_.make_host({rows, length}, HEDDLE_I32);
    std::int32_t* to = ids.data<std::int32_t>();
    for (const Window& window : windows) to = std::copy(window.ids.begin(), window.ids.end(), to);
    Record inputs;
    inputs.set("ids", value_of(ids));
    if (model_takes(record_.field("model"), "eos")) inputs.set("eos", value_of(ends_of(windows)));
    return inputs.value();
  }

  // Where each window's first end token is: the state there is the pooled one.
  Tensor ends_of(const std::vector<Window>& windows) const {
    std::int32_t end = -1;
    check(tokenizer_.first->end_id(tokenizer_.second, &end));
    const Tensor ends = ctx_.make_host({std::int64_t(windows.size())}, HEDDLE_I32);
    for (std::size_t w = 0; w < windows.size(); ++w) {
      const auto& ids = windows[w].ids;
      const auto found = std::find(ids.begin(), ids.end(), end);
      ends.data<std::int32_t>()[w] =
          std::int32_t(found == ids.end() ? ids.size() - 1 : std::size_t(found - ids.begin()));
    }
    return ends;
  }

  Tensor hidden_of(const Value& outputs, std::int64_t stop_at_layer) const {
    const Value settings = model_settings(record_.field("model"));
    const std::int64_t layers = settings.get<std::int64_t>("layers", 0);
    // As ComfyUI: a number beyond the encoder's layers means the last.
    const bool last = stop_at_layer == -1 || -stop_at_layer > layers;
    if (!last)
      throw Error(HEDDLE_UNSUPPORTED,
                  "CLIPSetLastLayer asks for layer " + std::to_string(stop_at_layer) + " of " +
                      name_ + ", which gives its last layer only. Set stop_at_clip_layer to -1.");
    return f32(outputs.field("last_hidden").as<Tensor>());
  }

  // ComfyUI's weights: token by token, away from or towards what an empty prompt gives. A weight of
  // 1 leaves the token as it is.
  Tensor weigh(const Tensor& hidden, const Tensor& empty, const Tensor& weights) const {
    const Tensor rest = ops::scale_clamp(ctx_, weights, {-1.0, 1.0, -1e30, 1e30});
    return ops::add(ctx_, ops::mul(ctx_, hidden, weights), ops::mul(ctx_, empty, rest));
  }

  Tensor f32(const Tensor& tensor) const {
    return tensor.dtype() == HEDDLE_F32 ? tensor : ops::cast(ctx_, tensor, HEDDLE_F32);
  }

  Context& ctx_;
  Value record_;
  std::string name_;
  bool is_clip_;
  std::pair<const heddle_tokenizer*, void*> tokenizer_;
};

std::optional<Encoded> encode_with(Context& ctx, const Value& clip, const char* family,
                                   const Prompt& prompt) {
  const Value encoders = clip.field("encoders");
  const std::int64_t stop = clip.get<std::int64_t>("stop_at_layer", -1);
  for (std::uint32_t i = 0; i < encoders.count(); ++i) {
    const Value record = encoders.item(i);
    if (record.get<std::string>("family", "") != family) continue;
    // FLUX reads CLIP's pooled vector alone, which a layer to stop at does not change.
    const bool pooled_only =
        clip.get<std::string>("type", "") == "flux" && std::string_view(family) == "clip";
    return Encoder(ctx, record)
        .encode(prompt.of(record.get<std::string>("name", "")), pooled_only ? -1 : stop);
  }
  return std::nullopt;
}

Encoded require(std::optional<Encoded> encoded, const char* what) {
  if (encoded) return *std::move(encoded);
  throw Error(HEDDLE_INVALID_ARGUMENT, std::string("this CLIP has no ") + what +
                                           " encoder. Load it together with the other one, "
                                           "for instance with DualCLIPLoader.");
}

}  // namespace

Value encode_prompt(Context& ctx, const Value& clip, const Prompt& prompt) {
  if (clip.has("missing")) throw Error(HEDDLE_NOT_FOUND, clip.get<std::string>("missing", ""));
  const std::string type = clip.get<std::string>("type", "");
  Record entry;
  if (type == "flux") {
    const Encoded t5 = require(encode_with(ctx, clip, "t5", prompt), "T5");
    const Encoded l = require(encode_with(ctx, clip, "clip", prompt), "CLIP");
    entry.set("cross_attn", value_of(t5.hidden)).set("pooled_output", value_of(l.pooled));
  } else if (type == "stable_diffusion") {
    const Encoded l = require(encode_with(ctx, clip, "clip", prompt), "CLIP");
    entry.set("cross_attn", value_of(l.hidden)).set("pooled_output", value_of(l.pooled));
  } else {
    throw Error(HEDDLE_UNSUPPORTED, "this CLIP is of type '" + type +
                                        "'; known are flux and stable_diffusion. Load it with one "
                                        "of these types.");
  }
  return list_of({entry.value()});
}

}  // namespace heddle::encoders
