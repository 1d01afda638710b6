#include "engine/serve/preview_method.h"

#include "engine/base/json.h"

namespace heddle::engine {

PreviewMethod preview_method_of(const Job& job, PreviewMethod otherwise) {
  if (job.extra_data.empty()) return otherwise;
  const Json extra = parse_json(job.extra_data, "extra_data");
  const Json* const asked = extra.is_object() ? extra.find("preview_method") : nullptr;
  if (asked == nullptr || !asked->is_string()) return otherwise;
  return preview_method_named(asked->as_string()).value_or(otherwise);
}

}  // namespace heddle::engine
