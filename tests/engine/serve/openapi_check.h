// Holds requests and answers against the document of /v1: of JSON Schema what that document uses,
// and a keyword that is not known here is a failure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/base/json.h"

namespace heddle::test {

// What is wrong, with its place; empty: nothing.
std::string schema_problem(const engine::Json& value, const engine::Json& schema,
                           const engine::Json& document, const std::string& where = "");

// Of the document's operation for a request. `target`: with its query.
std::string openapi_problem(std::string_view method, std::string_view target,
                            const std::string& request_body, int status,
                            const std::string& answer_body);

}  // namespace heddle::test
