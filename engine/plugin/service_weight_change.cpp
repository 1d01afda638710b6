// heddle.weight_change/0: changes of weights that plugins compute.
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/device/status.h"
#include "engine/files/weight_patches.h"
#include "engine/graph/model.h"
#include "engine/plugin/host.h"
#include "engine/tensor/call.h"

namespace heddle::engine {
namespace {

class PluginChange : public RowChange {
 public:
  PluginChange(const heddle_weight_change& raw, Hash128 file)
      : apply_(raw.apply),
        self_(raw.self),
        drop_(raw.drop),
        identity_(Hasher().add(file).add(std::string_view(raw.identity)).finish()) {}
  ~PluginChange() override { drop_(self_); }

  void apply(std::int64_t rows, std::int64_t width, float* numbers) const override {
    if (heddle_status* const status = apply_(self_, rows, width, numbers))
      throw take_status(status);
  }
  Hash128 identity() const override { return identity_; }

 private:
  heddle_status* (*apply_)(void*, std::int64_t, std::int64_t, float*);
  void* self_;
  void (*drop_)(void*);
  Hash128 identity_;
};

// Of those that a call takes, the ones that no PluginChange holds yet: dropped where it fails.
class Changes {
 public:
  Changes(const heddle_weight_change* const* all, std::uint32_t count)
      : next_(all), end_(all + count) {}
  Changes(const Changes&) = delete;
  Changes& operator=(const Changes&) = delete;
  ~Changes() {
    for (; next_ != end_; ++next_) (*next_)->drop((*next_)->self);
  }

  bool is_empty() const { return next_ == end_; }
  const heddle_weight_change& first() const { return **next_; }
  std::shared_ptr<const RowChange> take(Hash128 file) {
    auto change = std::make_shared<PluginChange>(first(), file);
    ++next_;
    return change;
  }

 private:
  const heddle_weight_change* const* next_;
  const heddle_weight_change* const* end_;
};

}  // namespace

const heddle_weight_change_service* weight_change_service() {
  static const heddle_weight_change_service table{
      [](const heddle_value* model, const heddle_checkpoint* file, std::uint32_t count,
         const heddle_weight_change* const* changes, heddle_value** out) {
        return to_status([&] {
          Changes untaken(changes, count);
          std::vector<WeightPatch> patches;
          std::vector<std::string> tensors;
          while (!untaken.is_empty()) {
            const heddle_part& part = *untaken.first().part;
            WeightPatch& patch = patches.emplace_back();
            patch.change = untaken.take(file->checkpoint.identity());
            if (part.tensor == nullptr)
              throw Error(Code::invalid_argument,
                          cat("the change ", patches.size() - 1,
                              " of a model's weights names no tensor. Set its part's \"tensor\"."));
            patch.rows = {{part.tensor, part.begin, part.end}};
            tensors.emplace_back(part.tensor);
          }
          const Model& old = *get_model(*model);
          auto changed = std::make_shared<Model>(old);
          changed->checkpoint = std::make_shared<const Checkpoint>(old.checkpoint->widen(tensors));
          changed->patches = WeightPatches::extend(old.patches.get(), *changed->checkpoint,
                                                   file->checkpoint, patches);
          changed->identity = Hasher().add(old.identity).add(changed->patches->identity()).finish();
          *out = const_cast<heddle_value*>(
              make_value(std::shared_ptr<const Model>(std::move(changed))).release());
        });
      }};
  return &table;
}

}  // namespace heddle::engine
