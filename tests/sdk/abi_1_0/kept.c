/* A plugin of ABI 1.0 in C, kept: it is compiled against the headers of then (include/), and every
 * later engine runs it as kept_test.cpp says. Only what 1.0 has is used. */
#include <heddle/abi/node.h>
#include <string.h>

static const heddle_host* host;
static const heddle_value_service* values;
static const heddle_tensor_service* tensors;
static const heddle_io_service* io;
static const heddle_report_service* report;
static const heddle_validation_service* validation;
static const void* telepathy; /* a service that no engine has */

/* ---- kept.tell: widgets, reports, a validator, an optional service ---- */

static heddle_status* tell(void* self, heddle_ctx* ctx) {
  heddle_str text;
  int64_t times = 0;
  int32_t warns = 0;
  heddle_status* status;
  (void)self;
  if ((status = values->get_str(io->input(ctx, 0), &text)) != NULL) return status;
  if ((status = values->get_int(io->input(ctx, 1), &times)) != NULL) return status;
  if ((status = values->get_bool(io->input(ctx, 2), &warns)) != NULL) return status;
  if (text.size == 4 && memcmp(text.data, "fail", 4) == 0)
    return host->fail(host, HEDDLE_UNSUPPORTED, "the text says so");
  report->progress(ctx, 0.5, "half of it");
  if (warns != 0) report->warn(ctx, "a warning of 1.0");
  report->wrote(ctx, NULL, "{\"text\": [\"shown by 1.0\"]}");
  if ((status = io->set_output(ctx, 0, values->make_int((int64_t)text.size * times))) != NULL)
    return status;
  return io->set_output(ctx, 1, values->make_bool(telepathy != NULL));
}

static heddle_status* judge(const heddle_host* h, heddle_validation* asked) {
  const heddle_value* value = validation->value(asked, 0);
  heddle_str text;
  heddle_status* status;
  if (value == NULL) return NULL;
  if ((status = values->get_str(value, &text)) != NULL) return status;
  return text.size == 5 && memcmp(text.data, "never", 5) == 0
             ? h->fail(h, HEDDLE_INVALID_ARGUMENT, "this text never runs")
             : NULL;
}

static const heddle_widget text_widget = {
    .size = sizeof text_widget, .kind = HEDDLE_WIDGET_TEXT, .text = "kept"};
static const heddle_widget times_widget = {
    .size = sizeof times_widget, .kind = HEDDLE_WIDGET_INT, .number = 2, .min = 1, .max = 9};
static const heddle_widget warns_widget = {.size = sizeof warns_widget,
                                           .kind = HEDDLE_WIDGET_TOGGLE};
static const heddle_port text_port = {
    .size = sizeof text_port, .name = "text", .type = "STRING", .widget = &text_widget};
static const heddle_port times_port = {
    .size = sizeof times_port, .name = "times", .type = "INT", .widget = &times_widget};
static const heddle_port warns_port = {
    .size = sizeof warns_port, .name = "warns", .type = "BOOLEAN", .widget = &warns_widget};
static const heddle_port number_port = {
    .size = sizeof number_port, .name = "number", .type = "INT"};
static const heddle_port heard_port = {
    .size = sizeof heard_port, .name = "telepathy", .type = "BOOLEAN"};
static const heddle_port* const tell_in[] = {&text_port, &times_port, &warns_port};
static const heddle_port* const tell_out[] = {&number_port, &heard_port};
static const char* const judged[] = {"text", NULL};
static const heddle_validator validator = {
    .size = sizeof validator, .inputs = judged, .validate = judge};
static const heddle_node_desc tell_desc = {.size = sizeof tell_desc,
                                           .version = 1,
                                           .type = "kept.tell",
                                           .flags = HEDDLE_NODE_SINK,
                                           .input_count = 3,
                                           .output_count = 2,
                                           .inputs = tell_in,
                                           .outputs = tell_out,
                                           .execute = tell,
                                           .validator = &validator};

/* ---- kept.letters and kept.join: lists, one way and the other ---- */

static heddle_status* letters(void* self, heddle_ctx* ctx) {
  const heddle_value* items[16];
  heddle_value* list;
  heddle_str text;
  heddle_status* status;
  uint32_t count = 0, i;
  (void)self;
  if ((status = values->get_str(io->input(ctx, 0), &text)) != NULL) return status;
  for (; count < text.size && count < 16; ++count) {
    const heddle_str letter = {text.data + count, 1};
    items[count] = values->make_str(letter);
  }
  list = values->make_list(count, items);
  for (i = 0; i < count; ++i) values->release(items[i]);
  return io->set_output(ctx, 0, list);
}

static heddle_status* join(void* self, heddle_ctx* ctx) {
  const heddle_value* list = io->input(ctx, 0);
  char all[64];
  heddle_str text;
  uint32_t i;
  size_t used = 0;
  (void)self;
  for (i = 0; i < values->count(list); ++i) {
    heddle_status* status = values->get_str(values->item(list, i), &text);
    if (status != NULL) return status;
    if (used + text.size + 1 > sizeof all)
      return host->fail(host, HEDDLE_INVALID_ARGUMENT, "more than 64 bytes");
    memcpy(all + used, text.data, text.size);
    used += text.size;
    all[used++] = '-';
  }
  text.data = all;
  text.size = used;
  return io->set_output(ctx, 0, values->make_str(text));
}

static const heddle_port letters_port = {
    .size = sizeof letters_port, .flags = HEDDLE_PORT_LIST, .name = "out", .type = "STRING"};
static const heddle_port list_port = {
    .size = sizeof list_port, .flags = HEDDLE_PORT_LIST, .name = "texts", .type = "STRING"};
static const heddle_port joined_port = {
    .size = sizeof joined_port, .name = "out", .type = "STRING"};
static const heddle_port* const letters_in[] = {&text_port};
static const heddle_port* const letters_out[] = {&letters_port};
static const heddle_port* const join_in[] = {&list_port};
static const heddle_port* const join_out[] = {&joined_port};
static const heddle_node_desc letters_desc = {.size = sizeof letters_desc,
                                              .version = 1,
                                              .type = "kept.letters",
                                              .input_count = 1,
                                              .output_count = 1,
                                              .inputs = letters_in,
                                              .outputs = letters_out,
                                              .execute = letters};
static const heddle_node_desc join_desc = {.size = sizeof join_desc,
                                           .version = 1,
                                           .type = "kept.join",
                                           .input_count = 1,
                                           .output_count = 1,
                                           .inputs = join_in,
                                           .outputs = join_out,
                                           .execute = join};

/* ---- kept.halve: a tensor in host memory ---- */

static heddle_status* halve(void* self, heddle_ctx* ctx) {
  heddle_tensor *in = NULL, *out = NULL;
  const heddle_tensor_info* info;
  heddle_tensor_info wanted;
  heddle_status* status;
  int64_t count = 1, i;
  uint32_t axis;
  (void)self;
  if ((status = values->get_tensor(io->input(ctx, 0), &in)) != NULL) return status;
  info = tensors->info(in);
  if (info->dtype != HEDDLE_F32)
    return host->fail(host, HEDDLE_INVALID_ARGUMENT, "kept.halve takes f32");
  wanted = *info;
  memset(wanted.stride, 0, sizeof wanted.stride);
  if ((status = tensors->make_host(ctx, &wanted, &out)) != NULL) return status;
  for (axis = 0; axis < info->rank; ++axis) count *= info->shape[axis];
  for (i = 0; i < count; ++i)
    ((float*)tensors->data(out))[i] = ((const float*)tensors->data(in))[i] / 2;
  return io->set_output(ctx, 0, values->make_tensor(out));
}

static const heddle_port x_port = {
    .size = sizeof x_port, .flags = HEDDLE_PORT_HOST, .name = "x", .type = "TENSOR"};
static const heddle_port half_port = {.size = sizeof half_port, .name = "out", .type = "TENSOR"};
static const heddle_port* const halve_in[] = {&x_port};
static const heddle_port* const halve_out[] = {&half_port};
static const heddle_node_desc halve_desc = {.size = sizeof halve_desc,
                                            .version = 1,
                                            .type = "kept.halve",
                                            .input_count = 1,
                                            .output_count = 1,
                                            .inputs = halve_in,
                                            .outputs = halve_out,
                                            .execute = halve};

static const void* const nodes[] = {&tell_desc, &letters_desc, &join_desc, &halve_desc};
static const heddle_list node_list = {4, nodes};

static heddle_status* init(const heddle_host* given) {
  host = given;
  values = host->service(host, HEDDLE_SERVICE_VALUE);
  tensors = host->service(host, HEDDLE_SERVICE_TENSOR);
  io = host->service(host, HEDDLE_SERVICE_IO);
  report = host->service(host, HEDDLE_SERVICE_REPORT);
  validation = host->service(host, HEDDLE_SERVICE_VALIDATION);
  telepathy = host->service(host, "heddle.telepathy/0");
  if (values == NULL || tensors == NULL || io == NULL || report == NULL || validation == NULL)
    return host->fail(host, HEDDLE_UNSUPPORTED, "a service of ABI 1.0 is not there");
  return NULL;
}

static const heddle_list* provide(const char* kind) {
  return strcmp(kind, HEDDLE_NODES) == 0 ? &node_list : NULL;
}

HEDDLE_EXPORT const heddle_plugin heddle_entry = {sizeof(heddle_plugin),
                                                  HEDDLE_ABI_MAJOR,
                                                  HEDDLE_ABI_MINOR,
                                                  "org.example.kept",
                                                  "1.0.0",
                                                  provide,
                                                  init,
                                                  NULL};
