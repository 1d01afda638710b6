// A service with a file of keys: ann and bob are users, root is an administrator.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/serve/key_file.h"
#include "tests/engine/serve/service_fixture.h"

namespace heddle::test {

struct WithRoles {
  TemporaryFolder folder;  // of the keys, and of what users keep
  const engine::MadeKey ann = engine::make_key("ann", false, 1),
                        bob = engine::make_key("bob", false, 1),
                        root = engine::make_key("root", true, 1);
  Serving serving{[this](engine::ServiceOptions& options) {
    keep({ann.kept, bob.kept, root.kept});
    options.api_keys = folder / "keys.json";
    options.user_dir = folder / "user";
  }};

  void keep(const std::vector<engine::ApiKey>& keys) const {
    engine::write_keys(folder / "keys.json", keys);
  }
  static std::string headers_of(const engine::MadeKey& key, const std::string& more = "") {
    return "Host: 127.0.0.1\r\nAuthorization: Bearer " + key.text + "\r\n" + more;
  }
  Reply as(const engine::MadeKey& key, const std::string& method, const std::string& target,
           const std::string& body = "") const {
    return ask(serving.port(), method, target, body, headers_of(key));
  }
  engine::Json json_as(const engine::MadeKey& key, const std::string& target) const {
    const Reply reply = as(key, "GET", target);
    BOOST_TEST_REQUIRE(reply.status == 200, target << ": " << reply.body);
    return reply.json();
  }
  std::string submit_as(const engine::MadeKey& key, const std::string& prompt,
                        const std::string& more = "") const {
    const Reply reply = as(key, "POST", "/prompt", "{\"prompt\": " + prompt + more + "}");
    BOOST_TEST_REQUIRE(reply.status == 200, reply.body);
    return reply.json().at("prompt_id").as_string();
  }
  void wait_for_end(const std::string& id) const {
    serving.wait_until([&] { return json_as(root, "/history/" + id).size() == 1; });
  }
};

}  // namespace heddle::test
