// The queue with its history as a file, while it is in use.
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/serve/served_files.h"
#include "engine/serve/service.h"

namespace heddle::engine {
namespace {

// The copy has no name any more when it is sent: it goes with the answer.
HttpResponse queue_backup(const ServiceParts& parts) {
  const std::filesystem::path file =
      cat(parts.options.queue_file.string(), ".backup-", make_job_id());
  parts.queue.back_up(file);
  std::optional<HttpResponse> response = file_response({}, file);
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  if (!response) throw Error(Code::io, cat(file.string(), ": the copy cannot be opened"));
  response->set("Content-Type", "application/vnd.sqlite3");
  return std::move(
      response->set("Content-Disposition", "attachment; filename=\"queue-backup.db\""));
}

}  // namespace

void add_backup_routes(Router& router, const ServiceParts& parts) {
  router.add("GET", "/internal/queue_backup", [parts](const Call&) { return queue_backup(parts); });
}

}  // namespace heddle::engine
