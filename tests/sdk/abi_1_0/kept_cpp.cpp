// A plugin of ABI 1.0 in C++ on the C headers of then (include/), kept beside kept.c: an instance
// that lasts as long as a run, lazy inputs, a fingerprint, inputs that are not declared.
#include <heddle/abi/node.h>

#include <cstdint>
#include <cstring>
#include <new>

namespace {

const heddle_host* host;
const heddle_value_service* values;
const heddle_io_service* io;

struct Chooser {
  std::int64_t calls = 0;
};

heddle_status* create(const heddle_host*, void** self) noexcept {
  *self = new (std::nothrow) Chooser;
  return *self != nullptr ? nullptr : host->fail(host, HEDDLE_OUT_OF_MEMORY, "no memory");
}

void destroy(void* self) noexcept { delete static_cast<Chooser*>(self); }

heddle_status* need(void*, heddle_ctx* ctx) noexcept {
  std::int32_t takes_first = 0;
  if (heddle_status* status = values->get_bool(io->input(ctx, 0), &takes_first)) return status;
  return io->want(ctx, takes_first != 0 ? "first" : "second");
}

heddle_status* choose(void* self, heddle_ctx* ctx) noexcept {
  std::int32_t takes_first = 0;
  if (heddle_status* status = values->get_bool(io->input(ctx, 0), &takes_first)) return status;
  const heddle_value* chosen = io->input(ctx, takes_first != 0 ? 1 : 2);
  if (chosen == nullptr)
    return host->fail(host, HEDDLE_INVALID_ARGUMENT, "what was asked for is not there");
  // set_output() takes a reference, and this one is borrowed.
  values->retain(chosen);
  if (heddle_status* status = io->set_output(ctx, 0, const_cast<heddle_value*>(chosen)))
    return status;
  const std::int64_t calls = ++static_cast<Chooser*>(self)->calls;
  return io->set_output(ctx, 1, values->make_int(calls * 100 + io->extra_count(ctx)));
}

heddle_status* fingerprint(void*, heddle_ctx*, std::uint64_t* hash) noexcept {
  *hash = 1;
  return nullptr;
}

const heddle_widget toggle{
    .size = sizeof(heddle_widget), .kind = HEDDLE_WIDGET_TOGGLE, .number = 1};
const heddle_widget text{.size = sizeof(heddle_widget), .kind = HEDDLE_WIDGET_TEXT, .text = "?"};
const heddle_port takes_first{
    .size = sizeof(heddle_port), .name = "takes_first", .type = "BOOLEAN", .widget = &toggle};
const heddle_port first{.size = sizeof(heddle_port),
                        .flags = HEDDLE_PORT_LAZY,
                        .name = "first",
                        .type = "STRING",
                        .widget = &text};
const heddle_port second{.size = sizeof(heddle_port),
                         .flags = HEDDLE_PORT_LAZY,
                         .name = "second",
                         .type = "STRING",
                         .widget = &text};
const heddle_port chosen{.size = sizeof(heddle_port), .name = "out", .type = "STRING"};
const heddle_port told{.size = sizeof(heddle_port), .name = "told", .type = "INT"};
const heddle_port* const inputs[] = {&takes_first, &first, &second};
const heddle_port* const outputs[] = {&chosen, &told};
const heddle_node_desc node{.size = sizeof(heddle_node_desc),
                            .version = 1,
                            .type = "kept.choose",
                            .flags = HEDDLE_NODE_ANY_INPUT,
                            .input_count = 3,
                            .output_count = 2,
                            .inputs = inputs,
                            .outputs = outputs,
                            .execute = &choose,
                            .create = &create,
                            .destroy = &destroy,
                            .need = &need,
                            .fingerprint = &fingerprint};
const void* const nodes[] = {&node};
const heddle_list list{1, nodes};

template <class Service>
bool found(const Service*& service, const char* name) {
  service = static_cast<const Service*>(host->service(host, name));
  return service != nullptr;
}

heddle_status* init(const heddle_host* given) noexcept {
  host = given;
  if (found(values, HEDDLE_SERVICE_VALUE) && found(io, HEDDLE_SERVICE_IO)) return nullptr;
  return host->fail(host, HEDDLE_UNSUPPORTED, "a service of ABI 1.0 is not there");
}

}  // namespace

extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry{
    sizeof(heddle_plugin),
    HEDDLE_ABI_MAJOR,
    HEDDLE_ABI_MINOR,
    "org.example.kept_cpp",
    "1.0.0",
    [](const char* kind) { return std::strcmp(kind, HEDDLE_NODES) == 0 ? &list : nullptr; },
    &init,
    nullptr};
