// The options of serve, and of the commands that ask a server.
#pragma once

#include "engine/cli/layer.h"
#include "engine/cli/settings.h"

namespace heddle::cli {

ServeSettings read_serve_settings(const Layer& layer);
ServerSettings read_server_settings(const Layer& layer);
JobSettings read_job_settings(const Layer& layer);

}  // namespace heddle::cli
