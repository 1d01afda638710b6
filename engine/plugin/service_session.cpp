// heddle.session/0: models that are called in a loop.
#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/tensor/call.h"

struct heddle_session {
  std::unique_ptr<heddle::engine::SessionHandle> session;
  std::size_t set_count;
};

namespace heddle::engine {

namespace {

heddle_status* open_session(heddle_ctx* ctx, const heddle_session_open* open,
                            heddle_session** out) {
  return to_status([&] {
    SessionRequest request;
    request.model = Value::share(open->model);
    request.schedule = Value::share(open->schedule);
    request.step_count = open->step_count;
    for (std::uint32_t i = 0; i < open->set_count; ++i)
      request.constants.push_back(Value::share(open->constants[i]));
    *out = new heddle_session{ctx->open(request), open->set_count};
  });
}

heddle_status* step_session(heddle_session* session, std::uint32_t step,
                            const heddle_value* const* sets, heddle_value** out) {
  return to_status([&] {
    std::vector<Value> results = session->session->step(step, {sets, session->set_count});
    for (std::size_t i = 0; i < results.size(); ++i)
      out[i] = const_cast<heddle_value*>(results[i].release());
  });
}

}  // namespace

const heddle_session_service* session_service() {
  static const heddle_session_service table{&open_session, &step_session,
                                            [](heddle_session* session) { delete session; }};
  return &table;
}

}  // namespace heddle::engine
