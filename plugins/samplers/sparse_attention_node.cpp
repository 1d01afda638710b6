#include "sparse_attention_node.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <heddle/model.hpp>

#include "model_sampling.h"
#include "plugins/blocks/dynamic_inputs.h"
#include "plugins/blocks/patched_model.h"
#include "plugins/blocks/sparse_config.h"

namespace heddle::samplers {
namespace {

bool is_block_digit(char c) { return c >= '0' && c <= '9'; }

// Reads the numbers below `count` of "0, 1, 47-49"; whatever else stands there is passed over.
class BlockList {
 public:
  BlockList(std::string_view text, std::int64_t count) : text_(text), count_(count) {}

  std::vector<Value> read() {
    std::set<std::int64_t> found;
    while (at_ < text_.size()) {
      if (!is_block_digit(text_[at_])) {
        ++at_;
        continue;
      }
      const std::int64_t one = number();
      std::int64_t other = one;
      const std::size_t behind = at_;
      pass_spaces();
      if (at_ < text_.size() && text_[at_] == '-') {
        ++at_;
        pass_spaces();
        if (at_ < text_.size() && is_block_digit(text_[at_]))
          other = number();
        else
          at_ = behind;
      }
      for (std::int64_t i = std::min(one, other); i <= std::max(one, other) && i < count_; ++i)
        found.insert(i);
    }
    std::vector<Value> values;
    for (const std::int64_t block : found) values.push_back(value_of(block));
    return values;
  }

 private:
  // At most `count`, which is none of them.
  std::int64_t number() {
    std::int64_t value = 0;
    for (; at_ < text_.size() && is_block_digit(text_[at_]); ++at_)
      value = std::min(count_, 10 * value + (text_[at_] - '0'));
    return value;
  }
  void pass_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n'))
      ++at_;
  }

  std::string_view text_;
  std::int64_t count_;
  std::size_t at_ = 0;
};

}  // namespace

void BlockSparseAttention::execute(Context& ctx) {
  const Value given = ctx[model], settings = model_settings(given);
  const blocks::ChosenVariant method(ctx, selection);
  if (method.key() != "vsa") {
    const double number = method.real(method.key() == "sla" ? "keep_percent" : "tau");
    const std::string note =
        "BlockSparseAttention: attention stays dense, as '" + method.key() + "' (" +
        std::to_string(number) +
        ") is not there yet. The picture is the one that this method comes near to.";
    Record told(settings);
    told.set(blocks::kSparseNote, value_of(note));
    // The last of such nodes counts: what an earlier one has put into the model rests.
    if (settings.field(blocks::kSparseRange))
      told.set(blocks::kSparseRange,
               Record().set("start", value_of(-1.0)).set("end", value_of(0.0)).value());
    ctx[out] = with_settings(given, told.value());
    return;
  }
  const Value config = settings.field(blocks::kSparseConfig);
  if (!config)
    throw Error(HEDDLE_UNSUPPORTED,
                "BlockSparseAttention: vsa (video sparse attention) is for MiniMax H3 and FastH3, "
                "and the model is of '" +
                    model_family(given) +
                    "'. Choose another method, leave the node out, or load FastH3.");
  const std::string note =
      settings.get<bool>("sparse_gates", false)
          ? ""
          : "BlockSparseAttention: the model's first layer has no gate of a coarse attention "
            "(to_gate_compress), so it was hardly trained for vsa; where there is none, the coarse "
            "part is left out. Load FastH3.";
  const auto count = settings.get<std::int64_t>("sparse_blocks", 0);
  const double share = method.real("keep_percent") / 100.0;
  const Value sparse =
      Record()
          .set("share", value_of(share))
          .set("least_tokens", value_of(std::int64_t(ctx[min_tokens])))
          .set("dense", list_of(BlockList(std::string(ctx[dense_blocks]), count).read()))
          .value();
  const Value anew = Record(config).set(blocks::kSparse, sparse).value();
  const SigmaRange range =
      range_between(model_sampling(given).levels, ctx[start_percent], ctx[end_percent]);
  const Value between =
      Record().set("start", value_of(range.start)).set("end", value_of(range.end)).value();
  Record all(settings);
  all.set(blocks::kSparseConfig, anew).set(blocks::kSparseRange, between);
  all.set(blocks::kSparseNote, value_of(note)).set("reference_tiles", value_of(true));
  // Who applies a model patch builds the model of this one.
  all.set(blocks::kPatchedConfig, anew);
  ctx[out] = with_settings(rebuilt_model(ctx, given, anew), all.value());
}

}  // namespace heddle::samplers
