// heddle fetch: the model files that a workflow gives addresses for, into their folders.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <heddle/model_files.hpp>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/download.h"
#include "engine/cli/http.h"

namespace heddle::cli {
namespace {

using engine::cat;
using engine::Code;
using engine::Error;
using engine::Json;

// One line on a terminal, a line for each tenth elsewhere.
class ProgressLine {
 public:
  explicit ProgressLine(std::string name, bool quiet)
      : name_(std::move(name)), quiet_(quiet), terminal_(::isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() {
    if (is_shown_ && terminal_) std::fputs("\r\x1b[K", stderr);
  }
  ProgressLine(const ProgressLine&) = delete;

  void show(std::uint64_t done, std::uint64_t total) {
    const std::uint64_t steps = terminal_ ? 1000 : 10;
    const std::uint64_t step =
        total == 0 ? 0 : std::uint64_t(double(done) / double(total) * double(steps));
    if (quiet_ || total == 0 || step <= step_) return;
    step_ = step;
    is_shown_ = true;
    const std::string text = cat(name_, ": ", done * 100 / std::max<std::uint64_t>(total, 1),
                                 " % of ", engine::format_bytes(total));
    if (terminal_)
      std::fputs(cat("\r", text, "\x1b[K").c_str(), stderr);
    else
      to_stderr(text);
  }

 private:
  const std::string name_;
  const bool quiet_, terminal_;
  bool is_shown_ = false;
  std::uint64_t step_ = 0;
};

bool is_sha256(const ModelFile& model) {
  std::string type;
  for (const char c : model.hash_type)
    if (c != '-' && c != '_') type += char(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return type == "SHA256" || (type.empty() && model.hash.size() == 64);
}

class Fetch {
 public:
  Fetch(const Settings& settings, Output& output) : settings_(settings), output_(output) {}

  // False: something could not be had.
  bool all(const std::vector<ModelFile>& models) {
    bool all_there = true;
    for (const ModelFile& model : models) {
      try {
        one(model);
      } catch (const Error& error) {
        all_there = false;
        tell(model, "failed", 0, error.full());
      }
    }
    return all_there;
  }

 private:
  void one(const ModelFile& model) {
    if (model.is_there) return tell(model, "there", 0, "");
    if (model.url.empty()) throw Error(Code::not_found, "the workflow gives no address for it.");
    const bool is_checked = !model.hash.empty() && is_sha256(model);
    if (!model.hash.empty() && !is_checked)
      to_stderr(cat("heddle: ", model.name, ": its hash is not checked: ",
                    engine::quote(model.hash_type), " is not SHA256."));
    const char* token = std::getenv("HF_TOKEN");
    const bool takes_token = token != nullptr && model.url.starts_with("https://huggingface.co/");
    ProgressLine line(cat(model.directory, "/", model.name), settings_.quiet || settings_.json);
    const std::uint64_t bytes =
        download({model.url, model.path, is_checked ? model.hash : "", takes_token ? token : ""},
                 [&](std::uint64_t done, std::uint64_t total) { line.show(done, total); });
    tell(model, "fetched", bytes, "");
  }

  void tell(const ModelFile& model, const char* what, std::uint64_t bytes,
            const std::string& error) {
    const std::string name = cat(model.directory, "/", model.name);
    if (settings_.json) {
      Json event = Json::object();
      event.set("event", what).set("directory", model.directory).set("name", model.name);
      if (error.empty()) event.set("path", model.path.string());
      if (bytes != 0) event.set("bytes", bytes);
      if (!error.empty()) event.set("error", error);
      output_.write(cat(engine::write_json(event), "\n"));
    } else if (!error.empty()) {
      to_stderr(cat("heddle: ", name, ": ", error));
    } else if (bytes != 0) {
      output_.write(
          cat(name, ": ", engine::format_bytes(bytes), " are in ", model.path.string(), "\n"));
    } else {
      output_.write(cat(name, ": is there: ", model.path.string(), "\n"));
    }
  }

  const Settings& settings_;
  Output& output_;
};

}  // namespace

int fetch_models(const Request& request, Output& output) {
  const Settings& settings = request.settings;
  const std::vector<ModelFile> models =
      model_files(engine::read_file(request.file, engine::kWorkflowFile), request.file.string(),
                  settings.engine);
  if (models.empty()) {
    to_stderr(cat("heddle: ", request.file.string(), " gives no addresses of model files."));
    return kExitDone;
  }
  if (settings.engine.model_dirs.empty() && settings.engine.comfyui_dir.empty())
    throw Error(Code::invalid_argument,
                "where are the files to go? Name a folder with --models or --comfyui.");
  return Fetch(settings, output).all(models) ? kExitDone : kExitFailed;
}

}  // namespace heddle::cli
