// heddle.model/0: what nodes ask of MODEL values, and how they make changed ones.
#include "engine/base/error.h"
#include "engine/device/status.h"
#include "engine/files/weight_patches.h"
#include "engine/graph/model.h"
#include "engine/plugin/host.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

namespace {

std::string text(const char* name) { return name == nullptr ? std::string() : std::string(name); }

WeightPatch weight_patch(const heddle_patch& patch) {
  WeightPatch result{text(patch.up), text(patch.down), patch.scale, {}};
  for (std::uint32_t i = 0; i < patch.row_count; ++i)
    result.rows.push_back({patch.rows[i]->tensor, patch.rows[i]->begin, patch.rows[i]->end});
  return result;
}

heddle_status* with_patches(const heddle_value* model, heddle_checkpoint* file, std::uint32_t count,
                            const heddle_patch* const* patches, heddle_value** out) {
  return to_status([&] {
    const Model& plain = *get_model(*model);
    std::vector<WeightPatch> list;
    for (std::uint32_t i = 0; i < count; ++i) list.push_back(weight_patch(*patches[i]));
    auto changed = std::make_shared<Model>(plain);
    changed->patches =
        WeightPatches::extend(plain.patches.get(), *plain.checkpoint, file->checkpoint, list);
    changed->identity = Hasher().add(plain.identity).add(changed->patches->identity()).finish();
    *out = const_cast<heddle_value*>(
        make_value(std::shared_ptr<const Model>(std::move(changed))).release());
  });
}

}  // namespace

const heddle_model_service* model_service() {
  static const heddle_model_service table{
      [](heddle_ctx* ctx, const char* role, heddle_checkpoint* checkpoint,
         const heddle_value* config, heddle_value** out) {
        return to_status([&] {
          *out = const_cast<heddle_value*>(
              ctx->build_model(role, checkpoint->checkpoint, config).release());
        });
      },
      [](const heddle_value* model, const heddle_value** out) {
        return to_status([&] { *out = get_model(*model)->settings.get(); });
      },
      [](const heddle_value* model, const heddle_value* record, heddle_value** out) {
        return to_status([&] {
          auto changed = std::make_shared<Model>(*get_model(*model));
          changed->settings = Value::share(record);
          *out = const_cast<heddle_value*>(
              make_value(std::shared_ptr<const Model>(std::move(changed))).release());
        });
      },
      [](const heddle_value* model, const char** out) {
        return to_status([&] { *out = get_model(*model)->family.c_str(); });
      },
      [](const heddle_value* model) -> std::uint32_t {
        const auto* m = std::get_if<std::shared_ptr<const Model>>(&model->content);
        return m == nullptr ? 0 : std::uint32_t((*m)->graph->inputs.size());
      },
      [](const heddle_value* model, std::uint32_t i, std::uint32_t* flags) -> const char* {
        const auto* m = std::get_if<std::shared_ptr<const Model>>(&model->content);
        if (m == nullptr || i >= (*m)->graph->inputs.size()) return nullptr;
        *flags = (*m)->graph->inputs[i].flags;
        return (*m)->graph->inputs[i].name.c_str();
      },
      [](const heddle_value* model, heddle_checkpoint** out) {
        return to_status([&] { *out = new heddle_checkpoint(*get_model(*model)->checkpoint); });
      },
      &with_patches};
  return &table;
}

}  // namespace heddle::engine
