// heddle.weight_change/0: changes of weights that plugins compute.
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

}  // namespace

const heddle_weight_change_service* weight_change_service() {
  static const heddle_weight_change_service table{
      [](const heddle_value* model, const heddle_checkpoint* file, std::uint32_t count,
         const heddle_weight_change* const* changes, heddle_value** out) {
        return to_status([&] {
          std::vector<WeightPatch> patches;
          std::vector<std::string> tensors;
          for (std::uint32_t i = 0; i < count; ++i) {
            const heddle_part& part = *changes[i]->part;
            WeightPatch& patch = patches.emplace_back();
            patch.change = std::make_shared<PluginChange>(*changes[i], file->checkpoint.identity());
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
