// The functions of FFmpeg that are used here, under their own names in this namespace: FFmpeg and
// the hundred libraries behind it are opened when the first of them is called, not when the plugin
// is loaded. One that is missing here does not link. Included by ffmpeg.h, after the headers of
// FFmpeg itself.
#pragma once

#include "plugins/blocks/late_library.h"

namespace heddle::video {

inline constexpr blocks::LateLibrary kAvutil{"libavutil.so." AV_STRINGIFY(LIBAVUTIL_VERSION_MAJOR)};
inline constexpr blocks::LateLibrary kAvcodec{
    "libavcodec.so." AV_STRINGIFY(LIBAVCODEC_VERSION_MAJOR)};
inline constexpr blocks::LateLibrary kAvformat{
    "libavformat.so." AV_STRINGIFY(LIBAVFORMAT_VERSION_MAJOR)};
inline constexpr blocks::LateLibrary kSwscale{
    "libswscale.so." AV_STRINGIFY(LIBSWSCALE_VERSION_MAJOR)};
inline constexpr blocks::LateLibrary kSwresample{
    "libswresample.so." AV_STRINGIFY(LIBSWRESAMPLE_VERSION_MAJOR)};

// That a result must not be thrown away is no part of a function's type.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#define HEDDLE_FFMPEG_FUNCTION(library, name) \
  inline constinit blocks::LateFunction<decltype(::name)> name { library, #name }

HEDDLE_FFMPEG_FUNCTION(kAvutil, av_channel_layout_copy);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_channel_layout_default);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_channel_layout_uninit);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_d2q);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_dict_free);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_dict_get);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_dict_set);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_display_rotation_get);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_frame_alloc);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_frame_free);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_frame_get_buffer);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_frame_make_writable);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_frame_unref);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_free);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_freep);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_get_bytes_per_sample);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_get_pix_fmt_name);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_log_set_callback);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_malloc);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_opt_set_int);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_pix_fmt_desc_get);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_rescale_q);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_sample_fmt_is_planar);
HEDDLE_FFMPEG_FUNCTION(kAvutil, av_strerror);

HEDDLE_FFMPEG_FUNCTION(kAvcodec, av_packet_alloc);
HEDDLE_FFMPEG_FUNCTION(kAvcodec, av_packet_free);
HEDDLE_FFMPEG_FUNCTION(kAvcodec, av_packet_rescale_ts);
HEDDLE_FFMPEG_FUNCTION(kAvcodec, av_packet_unref);
HEDDLE_FFMPEG_FUNCTION(kAvcodec, avcodec_alloc_context3);
HEDDLE_FFMPEG_FUNCTION(kAvcodec, avcodec_find_decoder);
HEDDLE_FFMPEG_FUNCTION(kAvcodec, avcodec_find_encoder_by_name);
HEDDLE_FFMPEG_FUNCTION(kAvcodec, avcodec_free_context);
HEDDLE_FFMPEG_FUNCTION(kAvcodec, avcodec_get_name);
HEDDLE_FFMPEG_FUNCTION(kAvcodec, avcodec_open2);
HEDDLE_FFMPEG_FUNCTION(kAvcodec, avcodec_parameters_copy);
HEDDLE_FFMPEG_FUNCTION(kAvcodec, avcodec_parameters_from_context);
HEDDLE_FFMPEG_FUNCTION(kAvcodec, avcodec_parameters_to_context);
HEDDLE_FFMPEG_FUNCTION(kAvcodec, avcodec_receive_frame);
HEDDLE_FFMPEG_FUNCTION(kAvcodec, avcodec_receive_packet);
HEDDLE_FFMPEG_FUNCTION(kAvcodec, avcodec_send_frame);
HEDDLE_FFMPEG_FUNCTION(kAvcodec, avcodec_send_packet);

HEDDLE_FFMPEG_FUNCTION(kAvformat, av_interleaved_write_frame);
HEDDLE_FFMPEG_FUNCTION(kAvformat, av_read_frame);
HEDDLE_FFMPEG_FUNCTION(kAvformat, av_seek_frame);
HEDDLE_FFMPEG_FUNCTION(kAvformat, av_stream_get_side_data);
HEDDLE_FFMPEG_FUNCTION(kAvformat, av_stream_new_side_data);
HEDDLE_FFMPEG_FUNCTION(kAvformat, av_write_trailer);
HEDDLE_FFMPEG_FUNCTION(kAvformat, avformat_alloc_context);
HEDDLE_FFMPEG_FUNCTION(kAvformat, avformat_alloc_output_context2);
HEDDLE_FFMPEG_FUNCTION(kAvformat, avformat_close_input);
HEDDLE_FFMPEG_FUNCTION(kAvformat, avformat_find_stream_info);
HEDDLE_FFMPEG_FUNCTION(kAvformat, avformat_free_context);
HEDDLE_FFMPEG_FUNCTION(kAvformat, avformat_new_stream);
HEDDLE_FFMPEG_FUNCTION(kAvformat, avformat_open_input);
HEDDLE_FFMPEG_FUNCTION(kAvformat, avformat_write_header);
HEDDLE_FFMPEG_FUNCTION(kAvformat, avio_alloc_context);
HEDDLE_FFMPEG_FUNCTION(kAvformat, avio_context_free);
HEDDLE_FFMPEG_FUNCTION(kAvformat, avio_flush);

HEDDLE_FFMPEG_FUNCTION(kSwscale, sws_alloc_context);
HEDDLE_FFMPEG_FUNCTION(kSwscale, sws_freeContext);
HEDDLE_FFMPEG_FUNCTION(kSwscale, sws_getCoefficients);
HEDDLE_FFMPEG_FUNCTION(kSwscale, sws_getContext);
HEDDLE_FFMPEG_FUNCTION(kSwscale, sws_init_context);
HEDDLE_FFMPEG_FUNCTION(kSwscale, sws_isSupportedInput);
HEDDLE_FFMPEG_FUNCTION(kSwscale, sws_scale);
HEDDLE_FFMPEG_FUNCTION(kSwscale, sws_setColorspaceDetails);

HEDDLE_FFMPEG_FUNCTION(kSwresample, swr_alloc_set_opts2);
HEDDLE_FFMPEG_FUNCTION(kSwresample, swr_convert);
HEDDLE_FFMPEG_FUNCTION(kSwresample, swr_convert_frame);
HEDDLE_FFMPEG_FUNCTION(kSwresample, swr_free);
HEDDLE_FFMPEG_FUNCTION(kSwresample, swr_init);

#undef HEDDLE_FFMPEG_FUNCTION
#pragma GCC diagnostic pop

}  // namespace heddle::video
