// The plugin of pictures: files of them, and what is done to their pixels.
#include "plugins/image/load_nodes.h"
#include "plugins/image/picture_nodes.h"
#include "plugins/image/save_nodes.h"
#include "plugins/image/scale_nodes.h"

namespace heddle::image {

HEDDLE_PLUGIN("org.heddle.image", "0.1.0", SaveImage, PreviewImage, LoadImage, LoadImageMask,
              ImageInvert, ImageBatch, ImageFromBatch, RepeatImageBatch, EmptyImage, SolidMask,
              InvertMask, ImageScale, ImageScaleBy, ImageScaleToTotalPixels, ImagePadForOutpaint)

}  // namespace heddle::image
