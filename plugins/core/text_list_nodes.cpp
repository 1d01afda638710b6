#include "text_list_nodes.h"

#include "characters.h"

namespace heddle::loaders {

void ReplaceText::execute(Context& ctx) {
  ctx[out] = replaced(ctx[texts], ctx[find], ctx[replace]);
}
void StripWhitespace::execute(Context& ctx) { ctx[out] = stripped(ctx[texts]); }
void TextToLowercase::execute(Context& ctx) { ctx[out] = lower(ctx[texts]); }
void TextToUppercase::execute(Context& ctx) { ctx[out] = upper(ctx[texts]); }
void TruncateText::execute(Context& ctx) { ctx[out] = slice_of(ctx[texts], 0, ctx[max_length]); }

}  // namespace heddle::loaders
