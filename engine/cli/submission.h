// What a workflow and its options are for a server: the body of POST /v1/jobs. One thread at a
// time.
#pragma once

#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/cli/server_client.h"
#include "engine/cli/settings.h"
#include "engine/cli/sweep.h"

namespace heddle::cli {

// Values of --set that stand for several, as heddle run reads them.
class SubmittedSweep {
 public:
  // A second list of one input replaces the first.
  void add(const std::string& input, std::vector<std::string> values);
  void remove(const std::string& input);
  bool is_empty() const { return inputs_.empty(); }
  engine::Json json(bool zipped) const;                   // "sweep" of the body
  std::string label(std::size_t job, bool zipped) const;  // "3.seed=5, 3.steps=8"

 private:
  struct Input {
    std::string name;                 // NODE.INPUT
    std::vector<std::string> values;  // JSON
  };
  std::vector<Input> inputs_;
};

struct Submission {
  engine::Json body;
  SubmittedSweep sweep;
};

// Asks the server for the types of inputs where a value may stand for several. `where`: the file,
// for messages. Throws as ServerClient does, and engine::Error for values that are wrong.
Submission submission_of(const Workflow& flow, const std::string& where, const Settings& settings,
                         const ServerClient& server);

}  // namespace heddle::cli
