// heddle.joined_model/0: models over the weights of several files.
#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/device/status.h"
#include "engine/graph/model.h"
#include "engine/plugin/host.h"
#include "engine/plugin/model_builder.h"
#include "engine/plugin/text_or_empty.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

const heddle_joined_model_service* joined_model_service() {
  static const heddle_joined_model_service table{
      [](const heddle_value* model, const heddle_checkpoint* file, const char* prefix,
         const heddle_value* config, heddle_value** out) {
        return to_status([&] {
          const Model& old = *get_model(*model);
          const std::shared_ptr<const Catalog> catalog = old.catalog.lock();
          if (catalog == nullptr)
            throw Error(Code::unsupported,
                        "the model was made by an engine that is gone, and cannot be built anew");
          const Value built = build_model(
              *catalog, old.role, old.checkpoint->join(file->checkpoint, text_or_empty(prefix)),
              config, old.hints);
          auto joined = std::make_shared<Model>(*get_model(*built));
          joined->patches = old.patches;
          joined->identity = Hasher()
                                 .add(old.identity)
                                 .add("joined")
                                 .add(joined->checkpoint->identity())
                                 .add(write_json(to_json(*config)))
                                 .finish();
          *out = const_cast<heddle_value*>(
              make_value(std::shared_ptr<const Model>(std::move(joined))).release());
        });
      }};
  return &table;
}

}  // namespace heddle::engine
