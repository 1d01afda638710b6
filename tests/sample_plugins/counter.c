/* A node plugin in C11: no C++ anywhere. Counts the bytes of a text. */
#include <heddle/abi/node.h>

static const heddle_host* host;
static const heddle_value_service* values;
static const heddle_io_service* io;

static heddle_status* execute(void* self, heddle_ctx* ctx) {
  heddle_str text;
  heddle_status* status;
  (void)self;
  status = values->get_str(io->input(ctx, 0), &text);
  if (status != NULL) return status;
  return io->set_output(ctx, 0, values->make_int((int64_t)text.size));
}

static const heddle_widget text_widget = {
    .size = sizeof text_widget, .kind = HEDDLE_WIDGET_TEXT, .text = ""};
static const heddle_port text_port = {
    .size = sizeof text_port, .name = "text", .type = "STRING", .widget = &text_widget};
static const heddle_port count_port = {.size = sizeof count_port, .name = "count", .type = "INT"};
static const heddle_port* const inputs[] = {&text_port};
static const heddle_port* const outputs[] = {&count_port};
static const heddle_node_desc count_bytes = {.size = sizeof count_bytes,
                                             .version = 1,
                                             .type = "demo.count_bytes",
                                             .title = "Count bytes",
                                             .category = "demo/text",
                                             .doc = "Counts the bytes of a text.",
                                             .input_count = 1,
                                             .output_count = 1,
                                             .inputs = inputs,
                                             .outputs = outputs,
                                             .execute = execute};
static const void* const nodes[] = {&count_bytes};
static const heddle_list node_list = {1, nodes};

static heddle_status* init(const heddle_host* given) {
  host = given;
  values = host->service(host, HEDDLE_SERVICE_VALUE);
  io = host->service(host, HEDDLE_SERVICE_IO);
  if (values == NULL)
    return host->fail(host, HEDDLE_UNSUPPORTED, "this engine has no service " HEDDLE_SERVICE_VALUE);
  if (io == NULL)
    return host->fail(host, HEDDLE_UNSUPPORTED, "this engine has no service " HEDDLE_SERVICE_IO);
  return NULL;
}

static const heddle_list* provide(const char* kind) {
  const char* a = kind;
  const char* b = HEDDLE_NODES;
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b ? &node_list : NULL;
}

HEDDLE_EXPORT const heddle_plugin heddle_entry = {sizeof(heddle_plugin),
                                                  HEDDLE_ABI_MAJOR,
                                                  HEDDLE_ABI_MINOR,
                                                  "org.example.counter",
                                                  "1.0.0",
                                                  provide,
                                                  init,
                                                  NULL};
