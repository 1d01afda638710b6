// heddle/session.hpp - call models from a node: once, or in a loop whose length is known.
#pragma once

#include "node.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

// A model opened for a loop; closed when it goes.
class Session {
 public:
  Session(Context& ctx, const Value& model, const std::vector<Value>& constants,
          const Value& schedule, std::uint32_t steps) {
    std::vector<const heddle_value*> sets;
    for (const Value& set : constants) sets.push_back(set.raw());
    const heddle_session_open open{sizeof(heddle_session_open),
                                   std::uint32_t(sets.size()),
                                   steps,
                                   model.raw(),
                                   sets.data(),
                                   schedule.raw()};
    sets_ = sets.size();
    check(service<heddle_session_service>().open(ctx.raw(), &open, &raw_));
  }
  Session(const Session&) = delete;
  ~Session() { service<heddle_session_service>().close(raw_); }
  // A record of outputs per set. Only enqueues.
  std::vector<Value> step(std::uint32_t index, const std::vector<Value>& inputs) {
    std::vector<const heddle_value*> in;
    for (const Value& set : inputs) in.push_back(set.raw());
    if (in.size() != sets_)
      throw Error(HEDDLE_INTERNAL, "step() takes a record for every set of the session");
    std::vector<heddle_value*> out(sets_, nullptr);
    check(service<heddle_session_service>().step(raw_, index, in.data(), out.data()));
    std::vector<Value> result;
    for (heddle_value* v : out) result.push_back(Value::adopt(v));
    return result;
  }

 private:
  heddle_session* raw_ = nullptr;
  std::size_t sets_ = 0;
};

// A model called once: constants in, outputs out.
inline Value call_model(Context& ctx, const Value& model, const Value& inputs) {
  Session session(ctx, model, {inputs}, Value(), 1);
  return session.step(0, {Record().value()}).front();
}

}  // namespace heddle
