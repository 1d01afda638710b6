// The plugin of pictures: files of them, and what is done to their pixels.
#include "plugins/image/composite_nodes.h"
#include "plugins/image/filter_nodes.h"
#include "plugins/image/load_nodes.h"
#include "plugins/image/mask_nodes.h"
#include "plugins/image/picture_nodes.h"
#include "plugins/image/save_nodes.h"
#include "plugins/image/scale_nodes.h"
#include "plugins/image/transform_nodes.h"

namespace heddle::image {

HEDDLE_PLUGIN("org.heddle.image", "0.1.0", SaveImage, PreviewImage, MaskPreview, SaveAnimatedPNG,
              SaveAnimatedWEBP, LoadImage, LoadImageMask, ImageInvert, ImageBatch, ImageFromBatch,
              RepeatImageBatch, EmptyImage, SolidMask, InvertMask, ImageScale, ImageScaleBy,
              ImageScaleToTotalPixels, ImagePadForOutpaint, MaskToImage, ImageToMask,
              ImageColorToMask, CropMask, MaskComposite, FeatherMask, GrowMask, ThresholdMask,
              JoinImageWithAlpha, SplitImageWithAlpha, ImageCompositeMasked, ImageBlend,
              PorterDuffImageComposite, ImageStitch, GetImageSize, ImageCrop, ImageFlip,
              ImageRotate, ImageScaleToMaxDimension, ResizeAndPadImage, FluxKontextImageScale,
              ImageBlur, ImageSharpen, Morphology, Canny, ImageRGBToYUV, ImageYUVToRGB)

}  // namespace heddle::image
