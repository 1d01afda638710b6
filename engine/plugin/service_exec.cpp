// heddle.tensor/0, heddle.exec/0 and heddle.files/0: thin covers over heddle_ctx, with every exception made a status.
#include <algorithm>
#include <cstring>

#include "engine/base/text.h"
#include "engine/base/read_file.h"
#include "engine/base/write_file.h"
#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/run/node_call.h"

struct heddle_session {
  std::unique_ptr<heddle::core::SessionHandle> session;
  std::size_t set_count;
};

namespace heddle::core {

namespace {

heddle_value* give(Value value) { return const_cast<heddle_value*>(value.release()); }
std::string_view text_or_empty(const char* text) { return text == nullptr ? std::string_view() : std::string_view(text); }

heddle_status* open_session(heddle_ctx* ctx, const heddle_session_open* open, heddle_session** out) {
  return to_status([&] {
    SessionRequest request;
    request.model = Value::share(open->model);
    request.schedule = Value::share(open->schedule);
    request.step_count = open->step_count;
    for (std::uint32_t i = 0; i < open->set_count; ++i) request.constants.push_back(Value::share(open->constants[i]));
    *out = new heddle_session{ctx->open(request), open->set_count};
  });
}

heddle_status* step_session(heddle_session* session, std::uint32_t step, const heddle_value* const* sets, heddle_value** out) {
  return to_status([&] {
    std::vector<Value> results = session->session->step(step, {sets, session->set_count});
    for (std::size_t i = 0; i < results.size(); ++i) out[i] = give(std::move(results[i]));
  });
}

// What the plugin knows of the struct; the rest is zero.
heddle_preview known_part(const heddle_preview& given) {
  heddle_preview known{};
  std::memcpy(&known, &given, std::min<std::size_t>(given.size, sizeof known));
  return known;
}

void complete(heddle_completion* completion, heddle_status* status) {
  if (completion->done.exchange(true)) return free_status(status);
  completion->finish(status);
}

}  // namespace

const heddle_tensor_service* tensor_service() {
  static const heddle_tensor_service table{
      [](heddle_tensor* t) { Tensor::share(t).release(); },
      [](heddle_tensor* t) { Tensor::drop(t); },
      [](const heddle_tensor* t) { return &t->info; },
      [](heddle_tensor* t) -> void* { return t->data(); },
      [](const heddle_tensor* t) { return t->storage->place(); },
      [](heddle_ctx* ctx, const heddle_tensor_info* info, heddle_tensor** out) { return to_status([&] { *out = ctx->make(*info).release(); }); },
      [](heddle_ctx* ctx, const heddle_tensor_info* info, heddle_tensor** out) { return to_status([&] { *out = ctx->make_host(*info).release(); }); },
      [](heddle_tensor* t, const heddle_tensor_info* info, std::int64_t offset, heddle_tensor** out) {
        return to_status([&] { *out = view(Tensor::share(t), *info, offset).release(); });
      },
      [](heddle_ctx* ctx, const heddle_tensor_info* info, const void* src, heddle_tensor** out) {
        return to_status([&] { *out = ctx->upload(*info, src).release(); });
      },
      [](heddle_ctx* ctx, heddle_tensor* t, void* dst, std::size_t bytes) { return to_status([&] { ctx->read(t, dst, bytes); }); }};
  return &table;
}

const heddle_exec_service* exec_service() {
  static const heddle_exec_service table{
      [](heddle_ctx* ctx, std::uint32_t index) { return ctx->input(index); },
      [](heddle_ctx* ctx, std::uint32_t index, heddle_value* value) {
        return to_status([&] {
          Value taken = Value::adopt(value);
          const bool lacked_memory = take_lack_of_memory();
          if (!taken && lacked_memory) throw Error(Code::out_of_memory, "host memory ran out while the value of an output was made");
          if (!taken) throw Error(Code::invalid_argument, cat("output ", index, " was set to NULL: a node has to give a value"));
          ctx->set_output(index, std::move(taken));
        });
      },
      [](heddle_ctx* ctx, std::uint32_t slot) -> heddle_tensor* {
        try {
          return ctx->weight(slot);
        } catch (...) {
          return nullptr;  // only blocks have weights
        }
      },
      [](heddle_ctx* ctx, const char* input) { return to_status([&] { ctx->want(text_or_empty(input)); }); },
      [](heddle_ctx* ctx) { return std::uint32_t(ctx->extras().size()); },
      [](heddle_ctx* ctx, std::uint32_t i) -> const char* { return i < ctx->extras().size() ? ctx->extras()[i].first.c_str() : nullptr; },
      [](heddle_ctx* ctx, std::uint32_t i) -> const heddle_value* { return i < ctx->extras().size() ? ctx->extras()[i].second.get() : nullptr; },
      [](heddle_ctx* ctx) -> std::int32_t { return ctx->cancelled() ? 1 : 0; },
      [](heddle_ctx* ctx, double fraction, const char* note) { free_status(to_status([&] { ctx->progress(fraction, text_or_empty(note)); })); },
      [](heddle_ctx* ctx, const char* path, const char* ui) { free_status(to_status([&] { ctx->wrote(text_or_empty(path), text_or_empty(ui)); })); },
      [](heddle_ctx* ctx, const char* message) { free_status(to_status([&] { ctx->warn(text_or_empty(message)); })); },
      [](heddle_ctx* ctx) { return ctx->node(); },
      [](heddle_ctx* ctx) { return ctx->device(); },
      [](heddle_ctx* ctx) { return ctx->compute(); },
      [](heddle_ctx* ctx) { return ctx->stream(); },
      [](const char* name) { return name == nullptr || *name == 0 ? 0u : op_id(name); },
      [](heddle_ctx* ctx, std::uint32_t op, std::uint32_t in_count, heddle_tensor* const* in, std::uint32_t out_count, heddle_tensor* const* out,
         const void* attrs, std::uint32_t attrs_size) {
        return to_status([&] { ctx->op(op, {in, in_count}, {out, out_count}, {static_cast<const std::byte*>(attrs), attrs_size}); });
      },
      &open_session,
      &step_session,
      [](heddle_session* session) { delete session; },
      [](heddle_ctx* ctx) -> heddle_completion* {
        try {
          return ctx->defer();
        } catch (...) {
          return nullptr;  // blocks cannot be deferred
        }
      },
      &complete,
      [](heddle_ctx* ctx, heddle_group* out) { *out = ctx->group(); },
      [](heddle_ctx* ctx, std::uint32_t input, heddle_share* out) { return to_status([&] { *out = ctx->share(input); }); },
      [](heddle_ctx* ctx) -> std::int32_t { return ctx->wants_preview() ? 1 : 0; },
      [](heddle_ctx* ctx, const heddle_preview* given) {
        if (given != nullptr) free_status(to_status([&] { ctx->preview(known_part(*given)); }));
      }};
  return &table;
}

const heddle_files_service* files_service() {
  static const heddle_files_service table{
      [](heddle_ctx* ctx, const char* folder, const char* name, heddle_value** path) {
        return to_status([&] { *path = give(make_value(ctx->find_file(text_or_empty(folder), text_or_empty(name)))); });
      },
      [](heddle_ctx* ctx, const char* kind, heddle_value** folder) {
        return to_status([&] { *folder = give(make_value(ctx->output_folder(text_or_empty(kind)))); });
      },
      [](heddle_ctx* ctx, const char* path, std::uint64_t* hash) {
        return to_status([&] { *hash = ctx->identify_file(text_or_empty(path)); });
      },
      [](const heddle_host*, const char* path, std::uint64_t most_bytes, const char* what, heddle_value** content) {
        return to_status([&] { *content = give(make_value(read_file(text_or_empty(path), {text_or_empty(what), most_bytes}))); });
      },
      [](const heddle_host*, const char* path, heddle_str content, std::int32_t* created) {
        return to_status([&] { *created = create_file(text_or_empty(path), {content.data, content.size}) ? 1 : 0; });
      }};
  return &table;
}

}  // namespace heddle::core
