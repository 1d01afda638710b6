#include "engine/isolate/worker_questions.h"

#include "engine/base/text.h"
#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/plugin/text_or_empty.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/infer.h"
#include "heddle/abi/validate.h"

namespace heddle::engine {

namespace {

// The engine's own structs of these names are not in a worker.
WorkerQuestion& behind(heddle_infer* question) {
  return *reinterpret_cast<WorkerQuestion*>(question);
}
WorkerQuestion& behind(heddle_validation* question) {
  return *reinterpret_cast<WorkerQuestion*>(question);
}

// nullptr also for what fails: the services have no other word for it.
const heddle_value* lent_value(WorkerQuestion& question, LaneMessage kind,
                               const BytesWriter& body) {
  const heddle_value* lent = nullptr;
  free_status(to_status([&] {
    const std::string answer = question.lane.ask(kind, body);
    BytesReader from(answer);
    if (Value value = read_value(from, question.end))
      lent = question.values.emplace_back(std::move(value)).get();
  }));
  return lent;
}

BytesWriter at_path(heddle_port_index port, const char* path) {
  BytesWriter body;
  body.number(port);
  body.text(text_or_empty(path));
  return body;
}

const heddle_value* part(heddle_infer* q, heddle_port_index input, const char* path) {
  return lent_value(behind(q), LaneMessage::infer_part, at_path(input, path));
}

std::int32_t in(heddle_infer* q, heddle_port_index input, const char* path,
                heddle_tensor_info* out) {
  bool is_known = false;
  free_status(to_status([&] {
    const std::string answer = behind(q).lane.ask(LaneMessage::infer_in, at_path(input, path));
    BytesReader from(answer);
    if (!from.flag()) return;
    *out = checked_info(read_info(from), "an input");
    is_known = true;
  }));
  return is_known ? 1 : 0;
}

const heddle_infer_service& infer_table() {
  static const heddle_infer_service table{
      [](heddle_infer* q, heddle_port_index input) { return part(q, input, ""); },
      &part,
      &in,
      [](heddle_infer* q, heddle_port_index output, const char* path,
         const heddle_tensor_info* info) {
        return to_status([&] {
          BytesWriter body = at_path(output, path);
          write_info(body, checked_info(*info, "inferred tensor"));
          (void)behind(q).lane.ask(LaneMessage::infer_out, body);
        });
      },
      [](heddle_infer* q, heddle_port_index output, const char* path, const heddle_value* value) {
        return to_status([&] {
          BytesWriter body = at_path(output, path);
          write_value(body, value, behind(q).end);
          (void)behind(q).lane.ask(LaneMessage::infer_known, body);
        });
      },
      [](heddle_infer* q, heddle_port_index output) {
        return to_status(
            [&] { (void)behind(q).lane.ask(LaneMessage::infer_shares, at_path(output, "")); });
      }};
  return table;
}

heddle_status* refuse_call(heddle_infer*, const heddle_infer_call*) {
  return make_status(HEDDLE_UNSUPPORTED,
                     "a node in a worker cannot call models. Leave its plugin out of --isolate");
}

const heddle_cost_service& cost_table() {
  static const heddle_cost_service table{
      [](heddle_infer* q, double flops, double bytes, std::uint64_t scratch) {
        BytesWriter body;
        body.number(flops);
        body.number(bytes);
        body.number(scratch);
        behind(q).lane.tell(LaneMessage::add_cost, body);
      },
      [](heddle_infer* q, std::uint64_t bytes) {
        BytesWriter body;
        body.number(bytes);
        behind(q).lane.tell(LaneMessage::host_scratch, body);
      },
      &refuse_call, &refuse_call};
  return table;
}

// Tiles are calls of models, too: a node that has told of scratch memory for them was refused.
const heddle_least_cost_service& least_cost_table() {
  static const heddle_least_cost_service table{[](heddle_infer*, std::uint64_t) {}};
  return table;
}

const char* received(heddle_validation* q, heddle_port_index input) {
  const char* type = nullptr;
  free_status(to_status([&] {
    const std::string answer =
        behind(q).lane.ask(LaneMessage::validation_received, at_path(input, ""));
    BytesReader from(answer);
    if (from.flag())
      type = behind(q).texts.emplace_back(std::make_unique<std::string>(from.text()))->c_str();
  }));
  return type;
}

const heddle_validation_service& validation_table() {
  static const heddle_validation_service table{
      [](heddle_validation* q, heddle_port_index input) {
        return lent_value(behind(q), LaneMessage::validation_value, at_path(input, ""));
      },
      &received,
      [](heddle_validation* q, heddle_port_index input, const char* folder) -> std::int32_t {
        bool has = false;
        free_status(to_status([&] {
          const std::string answer =
              behind(q).lane.ask(LaneMessage::validation_has_file, at_path(input, folder));
          has = BytesReader(answer).flag();
        }));
        return has ? 1 : 0;
      }};
  return table;
}

}  // namespace

void offer_worker_services() {
  offer_instead(HEDDLE_SERVICE_INFER, &infer_table());
  offer_instead(HEDDLE_SERVICE_COST, &cost_table());
  offer_instead(HEDDLE_SERVICE_LEAST_COST, &least_cost_table());
  offer_instead(HEDDLE_SERVICE_VALIDATION, &validation_table());
}

}  // namespace heddle::engine
