// heddle.model/0: what nodes ask of MODEL values, and how they make changed ones.
#include <cstddef>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/device/status.h"
#include "engine/files/weight_patches.h"
#include "engine/graph/model.h"
#include "engine/graph/without_blocks.h"
#include "engine/memory/model_file.h"
#include "engine/plugin/host.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

namespace {

std::string text(const char* name) { return name == nullptr ? std::string() : std::string(name); }

std::vector<WeightPatch> weight_patches(std::uint32_t count, const heddle_patch* const* patches) {
  std::vector<WeightPatch> list;
  for (std::uint32_t i = 0; i < count; ++i) {
    const heddle_patch& patch = *patches[i];
    WeightPatch& result =
        list.emplace_back(WeightPatch{text(patch.up), text(patch.down), patch.scale, {}});
    for (std::uint32_t r = 0; r < patch.row_count; ++r)
      result.rows.push_back({patch.rows[r]->tensor, patch.rows[r]->begin, patch.rows[r]->end});
    if (patch.size >= offsetof(heddle_patch, keep) + sizeof patch.keep) result.keep = patch.keep;
  }
  return list;
}

heddle_value* patched(const Model& plain, std::shared_ptr<const WeightPatches> patches) {
  auto changed = std::make_shared<Model>(plain);
  changed->patches = std::move(patches);
  changed->identity = Hasher().add(plain.identity).add(changed->patches->identity()).finish();
  return const_cast<heddle_value*>(
      make_value(std::shared_ptr<const Model>(std::move(changed))).release());
}

heddle_status* with_patches(const heddle_value* model, heddle_checkpoint* file, std::uint32_t count,
                            const heddle_patch* const* patches, heddle_value** out) {
  return to_status([&] {
    const Model& plain = *get_model(*model);
    *out = patched(plain, WeightPatches::extend(plain.patches.get(), *plain.checkpoint,
                                                file->checkpoint, weight_patches(count, patches)));
  });
}

heddle_status* merge(const heddle_value* model, const heddle_value* other, std::uint32_t count,
                     const heddle_patch* const* patches, heddle_value** out) {
  return to_status([&] {
    const Model& plain = *get_model(*model);
    const Model& added = *get_model(*other);
    *out = patched(plain, WeightPatches::merge(plain.patches.get(), *plain.checkpoint,
                                               {*added.checkpoint, added.patches.get()},
                                               weight_patches(count, patches)));
  });
}

SavedTensor rows_of(const heddle_value* model, std::uint32_t count,
                    const heddle_part* const* parts) {
  const Model& of = *get_model(*model);
  SavedTensor rows{"", of.checkpoint.get(), of.patches.get(), {}, {}};
  for (std::uint32_t p = 0; p < count; ++p)
    rows.rows.push_back({parts[p]->tensor, parts[p]->begin, parts[p]->end});
  return rows;
}

heddle_status* read(heddle_ctx*, const heddle_value* model, std::uint32_t part_count,
                    const heddle_part* const* parts, float* out, std::uint64_t count) {
  return to_status([&] {
    SavedTensor rows = rows_of(model, part_count, parts);
    if (!rows.rows.empty()) rows.name = rows.rows[0].tensor;
    read_rows(rows, {out, std::size_t(count)});
  });
}

heddle_status* save(heddle_ctx*, const char* path, std::uint32_t count,
                    const heddle_saved_tensor* const* tensors, std::uint32_t pair_count,
                    const char* const* metadata, std::int32_t* created) {
  return to_status([&] {
    std::vector<SavedTensor> list;
    for (std::uint32_t i = 0; i < count; ++i) {
      const heddle_saved_tensor& tensor = *tensors[i];
      SavedTensor& saved =
          list.emplace_back(rows_of(tensor.model, tensor.part_count, tensor.parts));
      saved.name = text(tensor.name);
      if (tensor.dtype != 0) saved.dtype = DType(tensor.dtype);
      if (tensor.shape != nullptr) saved.shape.assign(tensor.shape, tensor.shape + tensor.rank);
    }
    std::map<std::string, std::string> pairs;
    for (std::uint32_t i = 0; i < pair_count; ++i)
      pairs[text(metadata[2 * i])] = text(metadata[2 * i + 1]);
    *created = create_model_file(text(path), list, pairs) ? 1 : 0;
  });
}

heddle_status* rebuild(heddle_ctx* ctx, const heddle_value* model, const heddle_value* config,
                       heddle_value** out) {
  return to_status([&] {
    const Model& old = *get_model(*model);
    const Value built = ctx->build_model(old.role, *old.checkpoint, config);
    auto changed = std::make_shared<Model>(*get_model(*built));
    changed->patches = old.patches;
    changed->hints = old.hints;
    changed->identity =
        Hasher().add(old.identity).add("configuration").add(write_json(to_json(*config))).finish();
    *out = const_cast<heddle_value*>(
        make_value(std::shared_ptr<const Model>(std::move(changed))).release());
  });
}

heddle_status* leave_blocks_out(const heddle_value* model, std::uint32_t count,
                                const char* const* paths, heddle_value** out) {
  return to_status([&] {
    const Model& whole = *get_model(*model);
    const std::vector<std::string> list(paths, paths + count);
    auto rest = std::make_shared<Model>(whole);
    rest->graph = std::make_shared<const Graph>(without_blocks(*whole.graph, list));
    Hasher identity;
    identity.add(whole.identity);
    for (const std::string& path : list) identity.add(std::string_view(path));
    rest->identity = identity.finish();
    *out = const_cast<heddle_value*>(
        make_value(std::shared_ptr<const Model>(std::move(rest))).release());
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
      &with_patches,
      &merge,
      &rebuild,
      &save,
      [](const heddle_value* model, const char* devices, heddle_value** out) {
        return to_status([&] {
          auto changed = std::make_shared<Model>(*get_model(*model));
          changed->hints.prefer = text(devices);
          *out = const_cast<heddle_value*>(
              make_value(std::shared_ptr<const Model>(std::move(changed))).release());
        });
      },
      &leave_blocks_out,
      &read};
  return &table;
}

}  // namespace heddle::engine
