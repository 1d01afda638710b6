// The plugin of pictures: files of them, and what is done to their pixels.
#include "plugins/image/advanced_save_nodes.h"
#include "plugins/image/batch_nodes.h"
#include "plugins/image/box_nodes.h"
#include "plugins/image/color_transfer_nodes.h"
#include "plugins/image/composite_nodes.h"
#include "plugins/image/dataset_nodes.h"
#include "plugins/image/draw_box_nodes.h"
#include "plugins/image/filter_nodes.h"
#include "plugins/image/folder_nodes.h"
#include "plugins/image/latent_file_nodes.h"
#include "plugins/image/layer_nodes.h"
#include "plugins/image/load_nodes.h"
#include "plugins/image/marigold_nodes.h"
#include "plugins/image/mask_nodes.h"
#include "plugins/image/painter_nodes.h"
#include "plugins/image/picture_files.h"
#include "plugins/image/picture_nodes.h"
#include "plugins/image/pose_nodes.h"
#include "plugins/image/quantize_nodes.h"
#include "plugins/image/resize_nodes.h"
#include "plugins/image/save_dataset_nodes.h"
#include "plugins/image/save_nodes.h"
#include "plugins/image/scale_nodes.h"
#include "plugins/image/seedvr_nodes.h"
#include "plugins/image/send_nodes.h"
#include "plugins/image/svg_nodes.h"
#include "plugins/image/text_overlay.h"
#include "plugins/image/track_nodes.h"
#include "plugins/image/transform_nodes.h"
#include "plugins/image/view_nodes.h"

namespace heddle::image {

HEDDLE_PLUGIN("org.heddle.image", "0.1.0", SaveImage, PreviewImage, MaskPreview, SaveAnimatedPNG,
              SaveAnimatedWEBP, LoadImage, LoadImageMask, ImageInvert, ImageBatch, ImageFromBatch,
              RepeatImageBatch, EmptyImage, SolidMask, InvertMask, ImageScale, ImageScaleBy,
              ImageScaleToTotalPixels, ImagePadForOutpaint, MaskToImage, ImageToMask,
              ImageColorToMask, CropMask, MaskComposite, FeatherMask, GrowMask, ThresholdMask,
              JoinImageWithAlpha, SplitImageWithAlpha, ImageCompositeMasked, ImageBlend,
              PorterDuffImageComposite, ImageStitch, GetImageSize, ImageCrop, ImageFlip,
              ImageRotate, ImageScaleToMaxDimension, ResizeAndPadImage, FluxKontextImageScale,
              ImageBlur, ImageSharpen, Morphology, Canny, ImageRGBToYUV, ImageYUVToRGB,
              ResizeImageMaskNode, BatchImagesNode, BatchMasksNode, RebatchImages,
              SplitImageToTileList, ImageMergeTileList, MergeImageLists, ResizeImagesByShorterEdge,
              ResizeImagesByLongerEdge, CenterCropImages, RandomCropImages, NormalizeImages,
              AdjustBrightness, AdjustContrast, ShuffleDataset, ShuffleImageTextDataset,
              ImageDeduplication, ImageGrid, ImageCompare, ImageCropV2, ImageHistogram,
              SaveImageAdvanced, LoadImageDataSetFromFolder, LoadImageTextDataSetFromFolder,
              LoadImageSetFromFolderNode, LoadImageTextSetFromFolderNode, SaveSVGNode,
              ColorTransfer, Painter, ImageCropToMask, SaveLatent, LoadLatent, LoadImageOutput,
              WebcamCapture, SaveImageDataSetToFolder, SaveImageTextDataSetToFolder, CropByBBoxes,
              AddLayer, LayersFromBoundingBoxes, ImageCompositor, ImageQuantize, TextOverlay,
              MarigoldV2PostProcess, SeedVR2Preprocess, SeedVR2PostProcessing, DrawBBoxes,
              SdPoseDrawKeypoints, CreateBoundingBoxes, SaveImageWebsocket, WanMoveTracksFromCoords,
              GenerateTracks, WanMoveConcatTrack, WanMoveVisualizeTracks, PictureFiles)

}  // namespace heddle::image
