#include "text_writer.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <string>

#include <heddle/model.hpp>
#include <heddle/ops.hpp>
#include <heddle/resume.hpp>
#include <heddle/session.hpp>

#include "picture_inputs.h"

namespace heddle::encoders {
namespace {

constexpr std::int64_t kLeastRoom = 64;  // tokens
constexpr float kUnseen = -1e30f;

std::string kept_name(std::int64_t layer) { return "kept." + std::to_string(layer); }

// What a layer of linear attention remembers: its names in the model, and shapes.
struct LinearMemory {
  const char* name;
  Shape shape;
  std::string at(std::int64_t layer) const { return name + std::to_string(layer); }
};

// Tokens that there is room for where there have to be so many.
std::int64_t room_for(std::int64_t tokens) {
  return std::max(kLeastRoom, std::int64_t(std::bit_ceil(std::uint64_t(tokens))));
}

// What a model that writes says of itself.
struct WriterSettings {
  std::int64_t window;
  double cap;
  std::vector<std::int64_t> unwritten;  // tokens that it is not to write
  // Numbers of layers that keep something of each token, and its widths; of those that do not, and
  // what each of these remembers.
  std::vector<std::int64_t> keeping, widths, linears;
  std::vector<LinearMemory> memories;

  explicit WriterSettings(const Value& model) {
    const Value settings = model_settings(model);
    const auto number = [&](const char* key) { return settings.get<std::int64_t>(key, 0); };
    window = number("window");
    cap = settings.get<double>("logit_cap", 0);
    unwritten = listed(settings.field("unwritten"));
    widths = listed(settings.field("kept_widths"));
    const bool is_told = settings.has("kept_widths");
    const std::int64_t layers = is_told ? std::int64_t(widths.size()) : number("layers"),
                       every = std::max<std::int64_t>(1, number("attention_every"));
    for (std::int64_t i = 0; i < layers; ++i)
      ((i + 1) % every == 0 ? keeping : linears).push_back(i);
    if (!is_told) widths.assign(keeping.size(), number("kept_width"));
    if (linears.empty()) return;
    memories = {
        {"tail.", {1, number("tail_tokens"), number("tail_width")}},
        {"state.", {1, number("state_heads"), number("state_depth"), number("state_width")}}};
  }
  // Of what all layers remember of a text, where there is room for so many tokens, in f32.
  std::int64_t numbers(std::int64_t room) const {
    std::int64_t all = room * std::accumulate(widths.begin(), widths.end(), std::int64_t{0});
    for (const LinearMemory& memory : memories) {
      std::int64_t one = std::int64_t(linears.size());
      for (const std::int64_t size : memory.shape) one *= size;
      all += one;
    }
    return all;
  }

 private:
  static std::vector<std::int64_t> listed(const Value& list) {
    std::vector<std::int64_t> all;
    for (std::uint32_t i = 0; i < list.count(); ++i) all.push_back(list.item(i).as<std::int64_t>());
    return all;
  }
};

// Keys and values of all tokens so far, layer by layer, and what other layers remember of them.
class KeptTokens {
 public:
  explicit KeptTokens(const WriterSettings& settings)
      : settings_(settings), layers_(settings.keeping.size()) {}

  std::int64_t count() const { return count_; }
  std::int64_t room() const { return layers_.front() ? layers_.front().size(1) : 0; }

  // Behind those that are there, what a call made. REQUIRES: room for them, but at first.
  void add(Context& ctx, const Value& outputs, std::int64_t tokens) {
    for (std::size_t i = 0; i < layers_.size(); ++i)
      if (!layers_[i]) layers_[i] = empty(ctx, made(outputs, i), room_for(tokens + 1));
    for (std::size_t i = 0; i < layers_.size(); ++i)
      ops::copy_into(ctx, made(outputs, i), layers_[i].slice(1, count_, count_ + tokens));
    count_ += tokens;
    remembered_.clear();
    for (const LinearMemory& memory : settings_.memories)
      for (const std::int64_t layer : settings_.linears) {
        const std::string name = memory.at(layer);
        remembered_.emplace_back(name, outputs.field(name.c_str()));
      }
  }
  void grow(Context& ctx) {
    for (Tensor& layer : layers_) {
      const Tensor more = empty(ctx, layer, room_for(count_ + 1));
      ops::copy_into(ctx, layer.slice(1, 0, count_), more.slice(1, 0, count_));
      layer = more;
    }
  }
  void put_into(Record& inputs) const {
    for (std::size_t i = 0; i < layers_.size(); ++i)
      inputs.set(kept_name(settings_.keeping[i]).c_str(), value_of(layers_[i]));
    for (const auto& [name, value] : remembered_) inputs.set(name.c_str(), value);
  }

 private:
  Tensor made(const Value& outputs, std::size_t i) const {
    return outputs.field(kept_name(settings_.keeping[i]).c_str()).as<Tensor>();
  }
  // What has no token yet is 0: no number that is left out of a sum may spoil it.
  static Tensor empty(Context& ctx, const Tensor& like, std::int64_t room) {
    const Tensor zeros = ctx.make({1, room, like.size(2)}, like.dtype());
    ops::fill(ctx, zeros, 0);
    return zeros;
  }

  const WriterSettings& settings_;
  std::vector<Tensor> layers_;  // (1, room, 2 K d)
  std::vector<std::pair<std::string, Value>> remembered_;
  std::int64_t count_ = 0;
};

class TextWriter {
 public:
  TextWriter(Context& ctx, const Value& model)
      : ctx_(ctx), model_(model), settings_(model), kept_(settings_) {}

  // The scores of what comes behind the prompt.
  std::vector<float> read(const Writing& writing, const Windows& windows) {
    const std::vector<std::int32_t>& ids = windows.rows.front().ids;
    const auto length = std::int64_t(ids.size());
    Record inputs;
    inputs.set("ids", value_of(ctx_.upload({1, length}, HEDDLE_I32, ids.data())));
    const std::vector<float> positions = token_positions(writing.encoder, windows);
    if (windows.pictures.empty())
      inputs.set("positions", value_of(ctx_.upload({length, 3}, HEDDLE_F32, positions.data())));
    else
      show_pictures(ctx_, writing.encoder, writing.prompt, windows, inputs);
    place_ = 1 + std::int64_t(*std::max_element(positions.end() - 3, positions.end()));
    session_.emplace(ctx_, model_, std::vector<Value>{Record().value()}, Value(), 1);
    const Value outputs = session_->step(0, {inputs.value()}).front();
    kept_.add(ctx_, outputs, length);
    std::vector<float> scores = scores_of(outputs);
    session_.reset();
    left_ = writing.most - 1;
    return scores;
  }

  // Of what comes behind one more token. REQUIRES: fewer than `most` of them.
  std::vector<float> read(std::int32_t token) {
    if (kept_.count() == kept_.room()) kept_.grow(ctx_);
    if (!session_) {
      steps_ = std::min(kept_.room() - kept_.count(), left_);
      step_ = 0;
      session_.emplace(ctx_, model_, std::vector<Value>{Record().value()}, Value(),
                       std::uint32_t(steps_));
    }
    Record inputs;
    inputs.set("ids", value_of(ctx_.upload({1, 1}, HEDDLE_I32, &token)));
    const float place[] = {float(place_), float(place_), float(place_)};
    inputs.set("positions", value_of(ctx_.upload({1, 3}, HEDDLE_F32, place)));
    inputs.set("seen", seen_by_one(0));
    if (settings_.window > 0) inputs.set("near", seen_by_one(settings_.window));
    kept_.put_into(inputs);
    const Value outputs = session_->step(std::uint32_t(step_), {inputs.value()}).front();
    kept_.add(ctx_, outputs, 1);
    std::vector<float> scores = scores_of(outputs);
    ++place_, ++step_, --left_;
    if (step_ == steps_) session_.reset();
    return scores;
  }

  double cap() const { return settings_.cap; }

 private:
  std::vector<float> scores_of(const Value& outputs) {
    const Tensor logits = outputs.field("logits").as<Tensor>();
    std::vector<float> scores = ctx_.read<float>(logits);
    for (const std::int64_t token : settings_.unwritten)
      if (token < std::int64_t(scores.size())) scores[std::size_t(token)] = kUnseen;
    return scores;
  }

  // Which of the kept tokens the next one sees, and itself; window 0: all.
  Value seen_by_one(std::int64_t window) {
    const std::int64_t room = kept_.room(), count = kept_.count();
    std::vector<float> hidden(std::size_t(room + 1), kUnseen);
    const std::int64_t first = window > 0 ? std::max<std::int64_t>(0, count - window + 1) : 0;
    std::fill(hidden.begin() + first, hidden.begin() + count, 0.0f);
    hidden.back() = 0;
    return value_of(ctx_.upload({1, room + 1}, HEDDLE_F32, hidden.data()));
  }

  Context& ctx_;
  const Value model_;
  const WriterSettings settings_;
  KeptTokens kept_;
  std::optional<Session> session_;
  std::int64_t steps_ = 0, step_ = 0;  // of the session
  std::int64_t place_ = 0;             // of the next token
  std::int64_t left_ = 0;              // tokens to read at most
};

Value state_of(const std::vector<std::int32_t>& tokens) {
  std::vector<Value> list;
  for (const std::int32_t token : tokens) list.push_back(value_of(std::int64_t(token)));
  return Record().set("tokens", list_of(list)).value();
}

std::vector<std::int32_t> tokens_of(const Value& state) {
  std::vector<std::int32_t> tokens;
  const Value list = state ? state.field("tokens") : Value();
  for (std::uint32_t i = 0; i < list.count(); ++i)
    tokens.push_back(std::int32_t(list.item(i).as<std::int64_t>()));
  return tokens;
}

}  // namespace

std::vector<std::int32_t> written_tokens(Context& ctx, const Writing& writing) {
  const Windows windows = writing.encoder.windows(writing.prompt, &ctx);
  TextWriter writer(ctx, writing.encoder.model());
  TokenSampler sampler(writing.rules, windows.rows.front().ids);
  const std::vector<std::int32_t> before = tokens_of(saved_state(ctx));
  std::vector<std::int32_t> written;
  std::vector<float> scores = writer.read(writing, windows);
  // What was written is read again as it was at first, token by token: to the same numbers.
  while (std::int64_t(written.size()) < writing.most) {
    const bool is_old = written.size() < before.size();
    if (!is_old) at_boundary(ctx, [&] { return state_of(written); });
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    if (is_old) sampler.repeat(before[written.size()]);
    const std::int32_t token = is_old ? before[written.size()] : sampler.next(scores, writer.cap());
    if (std::ranges::count(writing.ends, token) > 0) break;
    written.push_back(token);
    if (!is_old) ctx.progress(double(written.size()) / double(writing.most), "tokens");
    if (std::int64_t(written.size()) < writing.most) scores = writer.read(token);
  }
  return written;
}

void infer_writing(Infer& question, const Writing& writing) {
  const Value model = writing.encoder.model();
  const WriterSettings settings(model);
  const Windows windows = writing.encoder.windows(writing.prompt, nullptr);
  for (const Infer::Named& picture : vision_shapes(writing.encoder, writing.prompt, windows))
    question.call(writing.encoder.vision(), {{{picture}, {}}});
  const std::int64_t length = windows.length();
  Infer::Set whole;
  whole.steps = picture_shapes(writing.encoder, windows);
  whole.steps.push_back({"ids", HEDDLE_I32, {1, length}});
  if (windows.pictures.empty()) whole.steps.push_back({"positions", HEDDLE_F32, {length, 3}});
  question.call(model, {whole});
  std::int64_t count = length;
  const std::int64_t end = length + writing.most - 1;
  while (count < end) {
    const std::int64_t room = room_for(count + 1);
    Infer::Set one;
    one.steps = {{"ids", HEDDLE_I32, {1, 1}},
                 {"positions", HEDDLE_F32, {1, 3}},
                 {"seen", HEDDLE_F32, {1, room + 1}}};
    if (settings.window > 0) one.steps.push_back({"near", HEDDLE_F32, {1, room + 1}});
    for (std::size_t i = 0; i < settings.keeping.size(); ++i)
      one.steps.push_back(
          {kept_name(settings.keeping[i]), HEDDLE_F32, {1, room, settings.widths[i]}});
    for (const LinearMemory& memory : settings.memories)
      for (const std::int64_t layer : settings.linears)
        one.steps.push_back({memory.at(layer), HEDDLE_F32, memory.shape});
    question.call(model, {one}, {}, std::uint32_t(std::min(room, end) - count));
    count = std::min(room, end);
  }
  const std::int64_t room = room_for(std::max(length + 1, end));
  question.cost(0, 0, sizeof(float) * std::uint64_t(settings.numbers(room)));
}

}  // namespace heddle::encoders
