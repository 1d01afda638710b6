#include "tests/engine/serve/openapi_check.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "engine/base/text.h"
#include "engine/serve/url.h"
#include "engine/serve/v1.h"

namespace heddle::test {

using engine::cat;
using engine::Json;

namespace {

bool is_of_type(const Json& value, const std::string& type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_bool();
  if (type == "integer") return value.is_integer();
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  return type == "array" ? value.is_array() : value.is_object();
}

const Json& resolved(const Json& schema, const Json& document) {
  const Json* ref = schema.find("$ref");
  if (ref == nullptr) return schema;
  const std::string& path = ref->as_string();  // "#/components/schemas/Job"
  const Json* at = &document;
  for (std::size_t begin = 2; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    at = &at->at(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return *at;
}

std::string object_problem(const Json& value, const Json& schema, const Json& document,
                           const std::string& where) {
  const Json* properties = schema.find("properties");
  if (const Json* required = schema.find("required"))
    for (const Json& name : required->as_array())
      if (value.find(name.as_string()) == nullptr) return cat(where, ": lacks ", name.as_string());
  const Json* more = schema.find("additionalProperties");
  for (const Json::Member& member : value.members()) {
    const Json* property = properties == nullptr ? nullptr : properties->find(member.key);
    const std::string place = cat(where, "/", member.key);
    if (property == nullptr && more != nullptr && more->is_object()) property = more;
    if (property == nullptr) {
      if (more != nullptr && !more->as_bool()) return cat(place, ": is not documented");
      continue;
    }
    if (std::string problem = schema_problem(member.value, *property, document, place);
        !problem.empty())
      return problem;
  }
  return "";
}

std::string keyword_problem(const Json& value, const Json::Member& keyword, const Json& document,
                            const std::string& where) {
  const Json& wanted = keyword.value;
  const auto equals = [&](const Json& one) { return one == value; };
  const auto has_type = [&](const Json& one) { return is_of_type(value, one.as_string()); };
  const auto fits = [&](const Json& one) {
    return schema_problem(value, one, document, where).empty();
  };
  bool is_right = true;
  if (keyword.key == "type")
    is_right =
        wanted.is_array() ? std::ranges::any_of(wanted.as_array(), has_type) : has_type(wanted);
  else if (keyword.key == "enum")
    is_right = std::ranges::any_of(wanted.as_array(), equals);
  else if (keyword.key == "const")
    is_right = equals(wanted);
  else if (keyword.key == "anyOf")
    is_right = std::ranges::any_of(wanted.as_array(), fits);
  else if (keyword.key == "minimum")
    is_right = !value.is_number() || value.as_double() >= wanted.as_double();
  else if (keyword.key == "maximum")
    is_right = !value.is_number() || value.as_double() <= wanted.as_double();
  else if (keyword.key == "items" && value.is_array())
    for (const Json& item : value.as_array()) {
      if (std::string problem = schema_problem(item, wanted, document, cat(where, "/items"));
          !problem.empty())
        return problem;
    }
  else if (std::ranges::count(
               std::initializer_list<std::string_view>{"items", "properties", "required",
                                                       "additionalProperties", "description",
                                                       "default"},
               keyword.key) == 0)
    return cat(where, ": the schema has a keyword that is not known, ", keyword.key);
  return is_right ? ""
                  : cat(where, ": ", value.describe(), " does not fit ", keyword.key, " ",
                        engine::write_json(wanted));
}

// "{...}" of the pattern is any segment.
bool is_path_of(std::string_view pattern, std::string_view path) {
  const auto is_same = [](std::string_view a, std::string_view b) {
    return a.starts_with('{') || a == b;
  };
  return std::ranges::equal(engine::path_segments(pattern), engine::path_segments(path), is_same);
}

const Json* operation_of(const Json& document, std::string_view method, std::string_view path) {
  std::string name(method);
  for (char& c : name) c = char(std::tolower(static_cast<unsigned char>(c)));
  const Json* found = nullptr;
  for (const Json::Member& one : document.at("paths").members())
    if (is_path_of(one.key, path) && (found == nullptr || one.key == path))
      found = one.value.find(name);
  return found;
}

// Of the answer or of the request.
std::string content_problem(const Json& holder, const std::string& body, const Json& document) {
  const Json* content = resolved(holder, document).find("content");
  if (content == nullptr) return body.empty() ? "" : "a body is not documented";
  const Json* json = content->find("application/json");
  if (json == nullptr) return "";
  return schema_problem(engine::parse_json(body, "body"), json->at("schema"), document);
}

}  // namespace

std::string schema_problem(const Json& value, const Json& given, const Json& document,
                           const std::string& where) {
  const Json& schema = resolved(given, document);
  for (const Json::Member& keyword : schema.members())
    if (std::string problem = keyword_problem(value, keyword, document, where); !problem.empty())
      return problem;
  return value.is_object() ? object_problem(value, schema, document, where) : "";
}

std::string openapi_problem(std::string_view method, std::string_view target,
                            const std::string& request_body, int status,
                            const std::string& answer_body) {
  static const Json document = engine::parse_json(engine::v1_openapi(), "openapi");
  const Json* operation = operation_of(document, method, target.substr(0, target.find('?')));
  if (operation == nullptr) return status == 404 || status == 405 ? "" : "is not documented";
  const Json& answers = operation->at("responses");
  const Json* answer = answers.find(cat(status));
  if (answer == nullptr && status < 400) return cat("its status ", status, " is not documented");
  if (answer == nullptr) answer = &answers.at("default");
  if (std::string problem = content_problem(*answer, answer_body, document); !problem.empty())
    return cat("answer: ", problem);
  if (status >= 400 || request_body.empty()) return "";
  const Json* request = operation->find("requestBody");
  if (request == nullptr) return "a body of the request is not documented";
  const std::string problem = content_problem(*request, request_body, document);
  return problem.empty() ? "" : cat("request: ", problem);
}

BOOST_AUTO_TEST_SUITE(openapi_check)

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_found) {
  const auto json = [](std::string_view text) { return engine::parse_json(text, "test"); };
  const Json document = json(R"({"parts": {"Name": {"type": "string", "enum": ["a", "b"]}}})");
  const Json schema = json(R"({"type": "object", "properties": {
      "name": {"$ref": "#/parts/Name"}, "count": {"type": ["integer", "null"], "minimum": 1},
      "list": {"type": "array", "items": {"$ref": "#/parts/Name"}},
      "either": {"anyOf": [{"const": 1}, {"type": "null"}]}},
      "required": ["name"], "additionalProperties": false})");
  const auto problem = [&](std::string_view text) {
    return schema_problem(json(text), schema, document);
  };
  BOOST_TEST(problem(R"({"name": "a", "count": null, "list": ["a", "b"], "either": 1})") == "");
  BOOST_TEST(problem("[]").find("does not fit type") != std::string::npos);
  BOOST_TEST(problem("{}") == ": lacks name");
  BOOST_TEST(problem(R"({"name": "c"})").starts_with("/name: "));
  BOOST_TEST(problem(R"({"name": "a", "count": 0})").find("minimum") != std::string::npos);
  BOOST_TEST(problem(R"({"name": "a", "count": 1.5})").find("type") != std::string::npos);
  BOOST_TEST(problem(R"({"name": "a", "list": [1]})").starts_with("/list/items: "));
  BOOST_TEST(problem(R"({"name": "a", "either": 2})").find("anyOf") != std::string::npos);
  BOOST_TEST(problem(R"({"name": "a", "more": 2})") == "/more: is not documented");
  BOOST_TEST(schema_problem(Json(1), json(R"({"pattern": "x"})"), document).find("not known") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(operations_are_found_by_method_and_path) {
  BOOST_TEST(openapi_problem("GET", "/v1/health/live", "", 200, "{\"status\":\"live\"}") == "");
  BOOST_TEST(openapi_problem("GET", "/v1/health/live", "", 200, "{\"status\":\"dead\"}") != "");
  BOOST_TEST(openapi_problem("GET", "/v1/health/live", "", 201, "{\"status\":\"live\"}") != "");
  BOOST_TEST(openapi_problem("POST", "/v1/health/live", "", 200, "{}") == "is not documented");
  BOOST_TEST(openapi_problem("GET", "/v1/jobs/a%2Fb?x=1", "", 404, "{}").find("lacks error") !=
             std::string::npos);
  BOOST_TEST(openapi_problem("POST", "/v1/queue/pause", "{}", 200, "{\"is_paused\":true}") ==
             "a body of the request is not documented");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
