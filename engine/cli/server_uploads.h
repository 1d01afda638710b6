// Input files of a workflow that are here, and not on the server that is to run it: pictures,
// sounds, videos and what else nodes read. One thread at a time.
#pragma once

#include <filesystem>

#include "engine/base/json.h"
#include "engine/cli/server_client.h"
#include "engine/cli/settings.h"

namespace heddle::cli {

// Where `heddle run` writes and reads what was made: that of the settings, or "output".
std::filesystem::path output_folder(const Settings& settings);

// Uploads the files and folders of the input folder that inputs of the nodes name, and the files of
// the output folder ("x.png [output]"), in `body` of POST /v1/jobs, its values that are set and its
// lists of values; puts the names there that they have in the server's input folder, a folder one
// of its own. A file that is there with the same content is not written again, and another one of
// that name stays: then the server takes the next name. Names of files that are not here are left
// to the server. Throws as ServerClient does, and engine::Error for a file that cannot be read.
void upload_inputs(engine::Json& body, const Settings& settings, const ServerClient& server);

}  // namespace heddle::cli
