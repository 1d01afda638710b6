// The plugin of fragment shaders.
#include "plugins/shader/shader_node.h"

namespace heddle::shader {

HEDDLE_PLUGIN("org.heddle.shader", "0.1.0", GLSLShader)

}  // namespace heddle::shader
