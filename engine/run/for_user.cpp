#include "engine/run/for_user.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

Json parse_ui(std::string_view text) {
  Json ui = parse_json(text, "ui");
  const auto is_list = [](const Json::Member& member) { return member.value.is_array(); };
  if (!ui.is_object() || !std::ranges::all_of(ui.members(), is_list))
    throw Error(Code::invalid_argument, cat("expected an object of lists, got ", clip(text, 200)));
  return ui;
}

void join_ui(Json& all, const Json& part) {
  if (!all.is_object()) all = Json::object();
  for (const Json::Member& list : part.members()) {
    Json& joined = all.insert(list.key).first.value;
    if (!joined.is_array()) joined = Json::array();
    for (const Json& item : list.value.as_array()) joined.push(item);
  }
}

}  // namespace heddle::engine
