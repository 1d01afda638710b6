// A browser shows the API key once, and is known from then on: /v1/session.
#include "engine/serve/access.h"
#include "engine/serve/service.h"
#include "engine/serve/v1.h"

namespace heddle::engine {
namespace {

std::string key_in(const Call& call) {
  const Fields fields(call, {"api_key"});
  if (fields.find("api_key") == nullptr)
    refuse_v1(400, "invalid_argument", "there is no member 'api_key': give it the server's key",
              Json(Json::object().set("where", "api_key")));
  return fields.text("api_key");
}

HttpResponse sign_in(const Call& call, Authenticator* authenticator) {
  HttpResponse response{204, {}, "", {}};
  if (authenticator == nullptr) return response;
  const Authenticator::Checked checked = authenticator->check_key(key_in(call), call.request.peer);
  if (checked.verdict != Authenticator::Verdict::right) throw Refused{key_refusal(checked)};
  return std::move(response.set(
      "Set-Cookie", session_cookie(call.request, authenticator->open_session(checked.caller))));
}

HttpResponse sign_out(const Call& call, Authenticator* authenticator) {
  HttpResponse response{204, {}, "", {}};
  if (authenticator != nullptr) authenticator->end_session(session_of(call.request));
  return std::move(response.set("Set-Cookie", session_cookie(call.request, "")));
}

}  // namespace

void add_session_routes(Router& router, const ServiceParts& parts) {
  Authenticator* const authenticator = parts.authenticator;
  add_v1(router, "GET", "/v1/session", [authenticator](const Call& call) {
    Json answer = Json::object();
    const std::optional<Caller> caller =
        authenticator == nullptr ? std::nullopt : authenticator->session(session_of(call.request));
    answer.set("needs_key", authenticator != nullptr).set("is_signed_in", caller.has_value());
    answer.set("user", caller ? text_or_null(caller->user) : Json());
    answer.set("role", !caller ? Json() : Json(caller->is_admin ? "admin" : "user"));
    HttpResponse response = json_response(answer);
    return std::move(response.set("Cache-Control", "no-store"));
  });
  add_v1(router, "POST", "/v1/session",
         [authenticator](const Call& call) { return sign_in(call, authenticator); });
  add_v1(router, "DELETE", "/v1/session",
         [authenticator](const Call& call) { return sign_out(call, authenticator); });
}

}  // namespace heddle::engine
