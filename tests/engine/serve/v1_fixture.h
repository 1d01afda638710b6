// A service, asked under /v1.
#pragma once

#include <string>
#include <vector>

#include "tests/engine/serve/openapi_check.h"
#include "tests/engine/serve/service_fixture.h"

namespace heddle::test {

struct V1Serving : Serving {
  using Serving::Serving;

  // The JSON of an answer that has this status, and is as the document says.
  engine::Json expect(int status, const std::string& method, const std::string& target,
                      const std::string& body = "") const {
    const Reply reply = ask(port(), method, target, body);
    BOOST_TEST_REQUIRE(reply.status == status, method << " " << target << ": " << reply.body);
    BOOST_TEST(!reply.header("x-request-id").empty());
    BOOST_TEST(openapi_problem(method, target, body, status, reply.body) == "",
               method << " " << target << ": "
                      << openapi_problem(method, target, body, status, reply.body));
    return reply.body.empty() ? engine::Json() : reply.json();
  }
  // The code of an error.
  std::string refused(int status, const std::string& method, const std::string& target,
                      const std::string& body = "") const {
    const engine::Json answer = expect(status, method, target, body);
    const engine::Json& error = answer.at("error");
    BOOST_TEST(!error.at("message").as_string().empty());
    return error.at("code").as_string();
  }
  // The id of a job that was taken; `more`: members beside its workflow, each with a comma in
  // front.
  std::string submit_v1(const std::string& workflow, const std::string& more = "") const {
    const engine::Json answer =
        expect(201, "POST", "/v1/jobs", "{\"workflow\": " + workflow + more + "}");
    return answer.at("jobs").at(std::size_t{0}).at("id").as_string();
  }
  engine::Json job(const std::string& id) const { return expect(200, "GET", "/v1/jobs/" + id); }
  std::string state(const std::string& id) const { return job(id).at("state").as_string(); }
  void wait_for(const std::string& id, const std::string& wanted) const {
    wait_until([&] { return state(id) == wanted; });
  }
  std::vector<std::string> listed(const std::string& target, const std::string& member) const {
    std::vector<std::string> ids;
    const engine::Json answer = expect(200, "GET", target);
    for (const engine::Json& one : answer.at(member).as_array())
      ids.push_back(one.at("id").as_string());
    return ids;
  }
};

}  // namespace heddle::test
