// /v1/devices, /v1/models and /v1/health; what all answers under /v1 have in common.
#include "tests/engine/serve/v1_fixture.h"
#include "tests/support/layers_file.h"

using namespace heddle;
using namespace heddle::test;
using engine::cat;
using engine::Json;

BOOST_AUTO_TEST_SUITE(v1_device_routes)

BOOST_FIXTURE_TEST_CASE(devices_are_told_and_taken_out_of_service, V1Serving) {
  const Json answer = expect(200, "GET", "/v1/devices");
  BOOST_TEST_REQUIRE(answer.at("devices").size() == engine.devices().size());
  const Json& device = answer.at("devices").at(std::size_t{0});
  const std::string id = device.at("id").as_string();
  BOOST_TEST(id == engine.devices().front().id);
  BOOST_TEST(device.at("service").as_string() == "enabled");
  for (const char* number : {"total", "free", "ours", "others", "taken", "available"})
    BOOST_TEST(device.at("memory").at(number).is_integer(), number);
  BOOST_TEST(device.at("models").size() == 0u);
  BOOST_TEST(device.at("jobs").size() == 0u);
  BOOST_TEST(answer.at("host").at("memory").at("taken").is_integer());
  const auto serve = [&](const std::string& how) {
    return expect(200, "POST", cat("/v1/devices/", id, "/", how)).at("service").as_string();
  };
  BOOST_TEST(serve("disable") == "disabled");
  BOOST_TEST(expect(200, "GET", "/v1/devices/" + id).at("service").as_string() == "disabled");
  BOOST_TEST(serve("enable") == "enabled");
  serve("drain");
  wait_until([&] {
    return expect(200, "GET", "/v1/devices/" + id).at("service").as_string() == "drained";
  });
  BOOST_TEST(serve("enable") == "enabled");
  const Json none = expect(404, "POST", "/v1/devices/none/drain");
  BOOST_TEST(none.at("error").at("message").as_string().find(id) != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(models_are_told_and_unloaded, V1Serving) {
  BOOST_TEST(expect(200, "GET", "/v1/models").at("models").size() == 0u);
  BOOST_TEST(expect(200, "POST", "/v1/models/unload").at("bytes").is_integer());
  BOOST_TEST(refused(422, "POST", "/v1/models/unload", "{\"device\": \"none\"}") == "not_found");
  BOOST_TEST(refused(400, "POST", "/v1/models/unload", "{\"modl\": \"x\"}") == "invalid_argument");
}

BOOST_FIXTURE_TEST_CASE(models_are_loaded_by_a_workflow_pinned_and_let_go, V1Serving) {
  const test::LayersFile layers{"a", 8, 2};
  folder.write("a.safetensors", layers.bytes());
  const std::string device = engine.devices().front().id, on = cat("\"device\": \"", device, "\""),
                    workflow = cat(
                        R"({"1": {"class_type": "test.load", "inputs": {"path": ")",
                        (folder / "a.safetensors").string(),
                        R"("}}, "2": {"class_type": "test.keep", "inputs": {"value": ["1", 0]}}})");
  const auto load = [&](const std::string& more) {
    return cat("{", on, ", \"workflow\": ", workflow, more, "}");
  };
  const Json loaded = expect(200, "POST", "/v1/models/load", load("")).at("models");
  BOOST_TEST_REQUIRE(loaded.size() == 1u);
  const std::string name = loaded.at(std::size_t{0}).at("name").as_string();
  BOOST_TEST(name.ends_with("a.safetensors"));
  BOOST_TEST(loaded.at(std::size_t{0}).at("bytes").as_int64() >= 2 * 8 * 8 * 4);
  const auto is_pinned = [&] {
    const Json place = expect(200, "GET", "/v1/models")
                           .at("models")
                           .at(std::size_t{0})
                           .at("devices")
                           .at(std::size_t{0});
    BOOST_TEST(place.at("device").as_string() == device);
    BOOST_TEST(place.at("bytes_in_use").as_int64() == 0);
    const bool pinned = place.at("pinned").as_bool();
    const Json same = expect(200, "GET", "/v1/devices/" + device).at("models").at(std::size_t{0});
    BOOST_TEST(same.at("pinned").as_bool() == pinned);
    return pinned;
  };
  BOOST_TEST(!is_pinned());
  const std::string it = cat("{", on, ", \"model\": \"", name, "\"}");
  expect(200, "POST", "/v1/models/pin", it);
  BOOST_TEST(is_pinned());
  expect(200, "POST", "/v1/models/unload", "{}");
  BOOST_TEST(is_pinned());  // it stays
  expect(200, "POST", "/v1/models/unpin", cat("{", on, "}"));
  BOOST_TEST(!is_pinned());
  expect(200, "POST", "/v1/models/load", load(", \"pin\": true"));
  BOOST_TEST(is_pinned());
  expect(200, "POST", "/v1/models/unload", cat("{\"model\": \"", name, "\"}"));
  BOOST_TEST(expect(200, "GET", "/v1/models").at("models").size() == 0u);
  BOOST_TEST(refused(422, "POST", "/v1/models/pin", it) == "not_found");
  BOOST_TEST(refused(400, "POST", "/v1/models/pin", cat("{", on, "}")) == "invalid_argument");
  BOOST_TEST(refused(400, "POST", "/v1/models/load", "{\"file\": \"vae/x\"}") ==
             "invalid_argument");
  BOOST_TEST(refused(400, "POST", "/v1/models/load", cat("{", on, "}")) == "invalid_argument");
  BOOST_TEST(refused(422, "POST", "/v1/models/load", cat("{", on, ", \"file\": \"none/x\"}")) ==
             "not_found");
}

BOOST_FIXTURE_TEST_CASE(a_server_without_a_device_is_not_ready, V1Serving) {
  BOOST_TEST(expect(200, "GET", "/v1/health/live").at("status").as_string() == "live");
  BOOST_TEST(expect(200, "GET", "/v1/health/ready").at("status").as_string() == "ready");
  for (const DeviceInfo& device : engine.devices()) engine.disable(device.id);
  BOOST_TEST(refused(503, "GET", "/v1/health/ready") == "not_ready");
  expect(200, "GET", "/v1/health/live");
}

BOOST_AUTO_TEST_CASE(every_answer_has_an_id_and_every_error_the_same_shape) {
  V1Serving serving([](engine::ServiceOptions& options) { options.api_key = "secret"; });
  const auto get = [&](const std::string& target, const std::string& headers) {
    return ask(serving.port(), "GET", target, "", cat("Host: 127.0.0.1\r\n", headers));
  };
  const auto code = [](const Reply& reply) {
    return reply.json().at("error").at("code").as_string();
  };
  const Reply locked = get("/v1/jobs", "X-Request-Id: my-1.a_B\r\n");
  BOOST_TEST(locked.status == 401);
  BOOST_TEST(code(locked) == "unauthorized");
  BOOST_TEST(locked.header("x-request-id") == "my-1.a_B");
  BOOST_TEST(locked.header("www-authenticate") == "Bearer");
  const std::string key = "Authorization: Bearer secret\r\n";
  BOOST_TEST(code(get("/v1/jobs", "Origin: http://evil.example\r\n" + key)) == "forbidden");
  const Reply none = get("/v1/none", key);
  BOOST_TEST(none.status == 404);
  BOOST_TEST(code(none) == "not_found");
  const Reply wrong =
      ask(serving.port(), "DELETE", "/v1/queue", "", cat("Host: 127.0.0.1\r\n", key));
  BOOST_TEST(wrong.status == 405);
  BOOST_TEST(code(wrong) == "method_not_allowed");
  BOOST_TEST(wrong.header("allow").find("GET") != std::string::npos);
  BOOST_TEST(wrong.header("cache-control") == "no-store");
  const Reply odd = get("/v1/queue", cat(key, "X-Request-Id: a b\r\n"));
  BOOST_TEST(odd.header("x-request-id") != "a b");
  BOOST_TEST(odd.header("x-request-id").size() == 36u);
  const Reply comfy = get("/queue", key);
  BOOST_TEST(comfy.header("x-request-id").size() == 36u);
}

BOOST_AUTO_TEST_SUITE_END()
