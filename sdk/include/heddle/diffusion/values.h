/* heddle/diffusion/values.h - what the values of diffusion workflows look like: the one place where
 * plugins agree on it.
 *
 * Every value is a record or a list of the kinds of abi/value.h; unknown fields are kept when a
 * node passes a record on.
 *
 * IMAGE         tensor (B, H, W, C) f32, 0 to 1
 * MASK          tensor (B, H, W) f32, 1 = selected
 * LATENT        record
 *   samples       tensor (B, C, h, w) f32. Of pictures with their sound: a list of two tensors,
 *                 and so is noise_mask; only nodes that take the two apart read it
 *   scaled        bool, absent means false: in the autoencoder's own ("raw") units. True: in those
 *                 that the denoiser reads, (raw - shift) * scale, or by latent_means and
 *                 latent_deviations as in MODEL: beside it, where whoever made the latent knew them
 *   noise_mask    tensor (B, H, W), (B, 1, H, W) or (B, 1, F, H, W) f32, optional: 1 is drawn anew
 *   batch_index   list of ints, optional: which item of a batch each item was, for its noise
 *
 *   ComfyUI keeps LATENT raw and normalises inside the sampler. Here samplers hand on what they end
 *   with, scaled, and the VAE nodes scale and shift: with separate files only the autoencoder's own
 *   knows the two numbers, and a diffusers folder and the same model in single files then give the
 *   same bytes. Users see no difference: a sampler takes raw latents too, with the constants of its
 *   model's settings (latent_scale, latent_shift; FLUX's when absent), and leaves a latent of zeros
 *   as it is, whatever its units. A node that computes with latents of both kinds converts first.
 * CONDITIONING  list of records
 *   cross_attn    tensor (B, tokens, width)
 *   pooled_output tensor (B, width), optional
 *   guidance      float, optional; unguided, bool: true means none at all, not even the default
 *   strength      float, optional: weight in the mean of several entries
 *   area          list of numbers, optional: it counts in a part of the latent only. Sizes, then
 *                 positions, of its axes behind batch and channels, in cells (h, w, y, x)
 *   area_fractions  the same in parts of the latent's axes, in the place of area
 *   mask          tensor (B, H, W) f32, optional: how much it counts where; mask_strength, its
 *                 factor (float); set_area_to_bounds (bool): its area is the box around the mask
 *   start_percent, end_percent  floats, optional: the part of the way from noise to picture in
 *                 which it counts
 *   default       bool, optional: it counts where the other entries leave something of 1
 *   concat_latent_image, concat_mask  tensors (B, C, h, w) and (B, 1, H, W) f32, optional: a
 *                 picture with a part masked out, in the autoencoder's units, for models that read
 *                 it (of pixels: plugins/samplers/noised_picture.h). Of videos (B, n C, T, h, w), n
 *                 latents, and (B, 1|4, T, h, w); concat_mask_index, int: channels before the mask
 *   clip_vision_output  CLIP_VISION_OUTPUT, optional: what models with vision_width see of pictures
 *   reference_latents  list of records with samples and scaled as of a LATENT, optional: pictures
 *                 that the model is shown. reference_latents_method, a text: where they lie.
 *                 reference_sounds, a list of such records of sounds (1, C, 2, T). media_start, a
 *                 float: the position in time at which the drawn video begins, behind those of
 *                 references that are shown before it (units: plugins/blocks/minimax_latents.h)
 *                 image_slots, a list of ints, optional: before which token of cross_attn each of
 *                 them stands, for models with reference_slots; those that it lacks are at the end
 *   unclip_conditioning  list of records, optional: pictures, for models with picture_width:
 *                 embeds, tensor (B, picture_width) f32, strength, noise_augmentation (0 to 1)
 *   gligen        record, optional: what stands where, for UNets: model (that of a GLIGEN: a record
 *                 with model), boxes, a list of records: embeds, tensor (1, W) f32, a phrase; x, y,
 *                 width, height (ints, in cells). Negative entries that have none get the positive
 *                 ones'
 *   width, height, crop_w, crop_h, target_width, target_height, aesthetic_score  numbers, optional:
 *                 what models with size_numbers are told about the picture, in its pixels
 *   fps, motion_bucket_id, augmentation_level  numbers, optional, 6, 127, 0: what models of three
 *                 size_numbers are told about a video: pictures a second, how much moves, how much
 *                 noise the picture beside the point has
 *   elevation, azimuth  lists of floats, or a float each, optional, 0: degrees at which a camera
 *                 stands at each frame of a video
 *   guiding_frame_index  number, optional: the level of a video's first frame, which is given, for
 *                 models with an input "first_timestep" (1)
 *   frame_rate    float, optional, 25: pictures a second, of which "frame_time" (1) is the inverse
 *   keyframe_idxs  list of [begin, end] or [begin, end, f], ints, optional, one for each of the
 *                 latent's last frames that are guides: the pictures of the video that it stands
 *                 for. f: the guide is f times smaller than the video, so that one of its tokens
 *                 stands for f rows and f columns and lies at the first of them; the other places
 *                 of the frame are no tokens. The model's input "guide_frames" (K, 2 or 3) holds
 *                 the list. Where an f is not 1, "token_rows" (T) i32 has the places that are
 *                 tokens, and "token_places" for each place its token, or T where it has none
 *   guide_attention_entries  list of records, optional, one for each guide: frames (int), strength
 *                 (float), is_masked (bool), mask (MASK, where it is). What is seen of a guide's
 *                 token, and what it sees of the video, counts strength times the mask;
 *                 "guide_weights" has the logarithms, for each token of guides
 *   ref_audio     record, optional: tokens (B, frames, numbers), of a sound that stands before that
 *                 of the video; the input "voice"
 *   context_latents  list of latents (1|B, C, T, h, w), in the autoencoder's units, optional:
 *                 videos and pictures that models with an input "sources" look at
 *   driving_mask_28ch, ref_mask_28ch, ref_mask_flag  optional: what models with mask_channels read
 *                 of coloured masks (plugins/samplers/scail_input.h)
 *   clip_start_percent, clip_end_percent  floats, optional: the part of the way for which it was
 *                 encoded, besides start_percent and end_percent
 *   hooks         HOOKS, optional: under which the model sees it
 *   control       record, optional: a ControlNet at work beside the model: control_net
 *                 (CONTROL_NET), hint (IMAGE), mask (MASK, optional: 1 is drawn anew), vae (VAE,
 *                 optional), strength, start_percent, end_percent (floats), previous (another such
 *                 record, optional: both are at work). control_apply_to_uncond, a bool: negative
 *                 entries that have none get it, too
 *   sam3_prompts  list of records, of a CLIP of type "sam3": what a text names, each with
 *                 cross_attn (1, N, W), its states without padding, and max_detections (int): of
 *                 how many such things at most masks are made. cross_attn of the entry is the first
 *                 one's
 * MODEL         heddle's model kind. Settings of a denoiser (abi/model.h):
 *   latent_channels, latent_downscale    ints
 *   reference_method  a text, optional: where the pictures lie that the model is shown
 *                 ("references", "reference_positions") when nothing says so: "offset", "index",
 *                 "index_timestep_zero" or "uxo". reference_centred (bool): a picture's middle is
 *                 its origin, and the model has an input "text_start"; reference_timestep (bool):
 *                 it has an input of that name
 *   reference_slots  int, optional: how many pictures it is shown at most, as "reference.0"
 *                 (B|1, C, h, w) and "slot.0" (n + 1), of which the shape is read: it stands before
 *                 token n of the context
 *   reference_step  int, optional, 1: between pictures on the first axis by the method "index"
 *   control_width, controlled_doubles, controlled_singles, controlled_firsts  ints, optional: it
 *                 takes residuals of ControlNets of this width, in so many blocks of two streams,
 *                 of one, and of those whose residuals the first of a stretch of blocks adds alone,
 *                 as its inputs "control.double", "control.single" and "control.first" (1|B, S,
 *                 K width). tokens_model, a
 *                 record, optional: the configuration of a model, built by its family, that makes
 *                 "tokens" (B, S, width) of x, what its first block reads. control_places, a
 *                 record, optional: it takes residuals at inputs of these names (1|B, h, w, C), of
 *                 which each is a list: how often the latent's sides are halved there, rounded up,
 *                 and C
 *   patched_width  int, optional: it takes model patches whose tokens are so wide; patched_config,
 *                 a record: what it was built of. model_patches, a list of records, optional: those
 *                 that it has, for its inputs "patch.<n>.hint" (1|B, C', h, w). model (that of a
 *                 MODEL_PATCH), vae (VAE); image, inpaint_image (IMAGEs) and mask (MASK: 1 is drawn
 *                 anew), each optional; start_percent, end_percent (floats). Of a patch for videos
 *                 these are frames, and the hint is (1, C', F, h, w). A patch for
 *                 sound has no pictures but heard (P, M, N) f32 in host memory: for each of P
 *                 speakers M moments of N numbers, its hint; of two speakers also regions
 *                 (2, S + 1) f32 in host memory, for the input "patch.<n>.regions"; one for a style
 *                 heard (3, tokens, width), the states that it reads. begin
 *                 (1, C, n, h, w) f32, in the autoencoder's units: the first frames of the video,
 *                 which the model sees in the place of the sampler's; begin_stays (bool): they are
 *                 put into the result, too
 *   adapted_blocks  int, optional: it takes IP-Adapters, for so many blocks of transformers,
 *                 and has patched_config as above; adapted_places, a text: where these are, a
 *                 letter each: on the way down (i), in the middle (m), on the way up (o).
 *                 adapters, a list of records, optional: those that it has, for its inputs
 *                 "adapter.<n>.tokens", "adapter.<n>.other", "adapter.<n>.mask.<i>". positive
 *                 and negative: tokens (1|n, T, C) f32 of either side; other_positive and
 *                 other_negative, optional: of transformers that read other ones; of_items
 *                 (bool): each item of a batch has a row; mask (MASK, optional: where it is at
 *                 work); start_percent, end_percent (floats)
 *   gligens       list of texts, optional: files of the GLIGEN models that it has, for its inputs
 *                 "gligen.<n>.boxes"
 *   widens        text, optional: the tensor of the model's file of which a LoRA may have more
 *                 columns; widened_config, a record: what it was built of
 *   part_configs  record, optional: the configurations of models, built by its family, that make up
 *                 this one; parts, a record of these names: the models, as loaders add them. Of the
 *                 family "sam3", which draws nothing: plugins/detection/sam3.h
 *   default_guidance  float, optional: the input "guidance" where no node says it; absent means 3.5
 *   concat_channels  int, optional: of the input "concat". As many as latent_channels: a picture;
 *                 and one for each pixel of a cell more: also its mask; and one more: a mask of a
 *                 number a cell, before it. concat_raw (bool), optional: the picture is in the
 *                 autoencoder's units. With latent_frames: latents of videos, alone or behind
 *                 a mask of four channels, 1 where a frame is given; concat_masks (int): of so
 *                 many; concat_mask_last (bool): behind them; concat_noised (int): the channel at
 *                 which a latent begins that is mixed with noise; concat_always, lists of floats,
 *                 optional: what they are, whatever is given (plugins/samplers/concat_input.h);
 *                 concat_kept (bool): masks alone, 1 where a frame is kept; concat_node (text): the
 *                 class that gives it, where nothing is drawn without
 *   file_texts    list of two ints, optional: tokens of the positive and the negative text that the
 *                 model's file brings; texts_model, a record: what the model that gives them, as
 *                 outputs positive and negative (1, T, W), is built of
 *   mask_channels  int, optional: of coloured masks, which it reads beside poses and pictures;
 *                 reference_stack (bool): it is shown all reference_latents, as frames of a video
 *   latent_frames  bool, optional: latents have an axis of time behind the channels
 *   vision_width  int, optional: of the input "vision" (1|B, tokens, width), the penultimate states
 *                 of a CLIP_VISION_OUTPUT
 *   picture_width  int, optional: of embeddings of pictures that it can read as "y", in place
 *                 of a pooled text; half of y, where that has numbers about their noise (unCLIP)
 *   task_numbers, concat_levels, noise_first, noise_last: plugins/denoisers/unet_settings.h
 *   size_numbers  int, optional: of the input "sizes" (1|B, n): height, width, crop_h, crop_w,
 *                 then target_height and target_width (6), or an aesthetic score (5); fps less 1,
 *                 motion_bucket_id, augmentation_level (3), or the last of these (1)
 *   view_context_width  int, optional: a width that "context" may have besides: of a picture's
 *                 embedding with four numbers about a view behind it
 *   reads_cameras  bool, optional: its input "y" is made of elevation and azimuth
 *                 (plugins/samplers/camera_input.h)
 *   autoencoder_prefix  text, optional: where its checkpoints have the autoencoder
 *   latent_scale, latent_shift           floats: scaled = (raw - shift) * scale
 *   latent_means, latent_deviations      lists of latent_channels floats, optional, instead of
 *                 these two: scaled = (raw - mean) / deviation of each channel
 *   preview_factors  list of latent_channels + 1 lists of three floats, optional: what each channel
 *                 of the scaled latents adds to red, green and blue (0 to 1), and what is added to
 *                 all; of a quarter as many channels where four are a cell of 2 x 2 places.
 *                 Without it, and without the next one's file, a run shows no previews
 *   preview_decoder  string, optional: what the file in models/vae_approx is called that decodes
 *                 scaled latents to small pictures ("taesd": taesd_decoder.safetensors or .pth)
 *   sampling      what the output is. "flow": noise - image; "eps", "v_prediction", "edm", "x0",
 *                 "img_to_img", "img_to_img_velocity", "lcm" as ComfyUI's
 *   noise_table   "discrete_flow" or "flux": how noise levels are spaced; noise_shift, noise_mu
 *                 their parameters. "discrete" or "distilled", also with "_zero_snr" behind it;
 *                 "continuous_edm" or "continuous_v" from noise_lowest to noise_highest; "cascade"
 *   noise_multiplier, noise_scale  the timestep of noise level 1 (1); a factor of all noise (1)
 *   mask_clean    bool, optional: the model sees what a noise mask keeps without noise
 *   reference_downscale_factor  string, optional: what the last LoRA's file says of how much
 *                 smaller than the video the guides are that it was made for (GetICLoRAParameters)
 *   prediction_patches  list of records, optional: what changes the model's predictions behind the
 *                 guidance, in this order. name; numbers, a record of floats; operation, a text,
 *                 and conditioning, a CONDITIONING, or without, a list of blocks to leave out, or
 *                 without_field, a field of conditionings to leave out, where the patch takes such
 *   less_for_negative  record, optional: without, start_percent, end_percent. The negative
 *                 conditioning is asked of the model without these blocks
 *   cfg_overrides  list of records, optional: cfg, start_percent, end_percent
 *   nag           record, optional: scale, alpha, tau. Normalized Attention Guidance (arXiv
 *                 2505.21179), by models with an optional input "nag", a tensor (5) f32 of scale,
 *                 1 - scale, tau, alpha, 1 - alpha. Given it, such a model sees a pair: context
 *                 (1|B, 2 T, width) holds the tokens of the positive conditioning, then those of
 *                 the negative one; so do y (B, 2 width), guidance (B, 2) and the output (B, 2 C,
 *                 ...). x is that of both
 *   keeping_model  record, optional: the configuration of a model, built by its family, that keeps
 *                 what its blocks made of reference pictures: outputs "kept...", (B, R, kept_width)
 *                 of R tokens, and optional inputs of the same names in the place of the pictures.
 *                 reference_cache (bool): it is built so, and a run shows it reference pictures in
 *                 the first evaluation only
 *   keeps_frames  bool, optional: it draws a video block by block of its frames. Given inputs
 *                 "kept...", (B, P, kept_width) of P tokens of the frames before a block, of which
 *                 there may be none, it has outputs of the same names, of the block's own tokens.
 *                 first_frames, a tensor (1, C, n, h, w) f32 in the autoencoder's units, optional:
 *                 with what such a video begins
 *   context_windows  record, optional: which parts of a long latent the model sees
 *                 (plugins/samplers/context_windows.h)
 *   positions     list of six floats, optional: by what the positions of image tokens are scaled,
 *                 and what is added to them, each of time, row and column
 *   mask_steps    record, optional: strength. A noise mask is 0 or 1 at each level
 *   easy_cache, lazy_cache  records, optional: threshold, start_percent, end_percent. Evaluations
 *                 are left out where little changes
 * TRACKS        record: where points of a video are. track_path, tensor (frames, tracks, 2) f32: x
 *               and y in its pixels, which may be outside; track_visibility, tensor (frames, tracks
 *               or 1) f32, optional, 1: 0 where a point is not seen
 * SAM3_TRACK_DATA  record: where things of a video are. packed_masks, tensor (frames, things, H, W
 *               / 8) u8, optional: a bit for each pixel, the first in the lowest, 1 where the thing
 *               is; none where nothing was found; n_frames (int); scores, list of floats, of
 *               things; orig_size, list of two ints: height and width of the video
 * MOGE_MODEL    record: model (MODEL): "geometry_estimator" (plugins/detection/moge.h)
 * MOGE_GEOMETRY record: where what pictures show lies, tensors in host memory. points (B, H, W, 3)
 *               and depth (B, H, W) f32, x to the right, y down, z away, in meters where the model
 *               knows them, infinite where there is nothing; intrinsics (B, 3, 3) f32, of the
 *               camera, in widths and heights of a picture; mask (B, H, W) u8, 1 where something
 *               is; normal (B, H, W, 3) f32, optional, of length 1; image (IMAGE)
 * CONTROL_NET   record: model (MODEL): a denoiser's inputs and "hint" (1|B, C', h, w), "mode" (n)
 *               i32 where it knows several kinds of hints, or also "kinds" (control_modes) f32,
 *               1 for the hint's and 0 for others, "tokens" where it begins with what its denoiser
 *               makes of x -> "control.double.<k>", "control.single.<k>", "control.first.<k>"
 *               (B, S, width), or outputs named as the inputs of control_places, which it has, too;
 *               union_type (int), optional: the mode. Settings of its model: controls (text: the
 *               denoiser's family); control_width, control_doubles, control_singles,
 *               control_firsts, control_modes, hint_channels (ints: one more than latent_channels:
 *               a mask); latent_scale and so on as of a MODEL, of hints; zero_pooled (bool): it is
 *               told a pooled text of zeros; hint_factor, hint_offset (floats): hints are factor *
 *               picture + offset; hint_pixels (bool): they are pixels (1|B, 3, 8 h, 8 w), not
 *               latents; hint_grey (bool): means over their colours; hint_multiple (int): sides are
 *               completed to multiples of it; joined_control (text): the file is a LoRA of its
 *               denoiser or begins with layers of it, whose family builds the ControlNet of both,
 *               joined under this prefix, with joined_control in the configuration, and of a LoRA
 *               tells in the setting control_lora_targets which factors of the file are for which
 *               tensor; strength_square_root (bool): that of its strength counts; control_cycles
 *               (bool): of n residuals block i adds that of i mod n, not each in a stretch of
 *               blocks
 * UPSCALE_MODEL  record: model (MODEL): image (B, H, W, in_channels), 0 to 1 -> image (B, scale H,
 *               scale W, out_channels). Settings of its model: these three; minimum and multiple of
 *               the sides that it takes (ints)
 * LATENT_UPSCALE_MODEL  record: model (MODEL): z (B, C, F, h, w) in the autoencoder's units ->
 *               "larger". Settings of its model: times and step, h' = (times h - 1) / step + 1, and
 *               frame_times, F' = frame_times (F - 1) + 1 (ints)
 * MODEL_PATCH   record: model (MODEL): its part that makes "tokens" of a "hint". Settings of its
 *               model: patches (text: the family of models that take it); patch_width,
 *               latent_channels, hint_channels (ints): as many as latent_channels: a picture; one
 *               more: with a mask behind it; that and once more so many: with another picture, too.
 *               hint_video (bool): these are videos, coded clip by clip; hint_holes_mean (bool):
 *               what is drawn anew of one is the mean of pictures in it, else black. patch_config,
 *               a record, optional: what else the model is told of the patch when it is built.
 *               A patch for sound has moment_numbers (int) in the place of the last two: the
 *               numbers N of a moment; one for a style seen_tokens and seen_width (ints)
 * CLIP          record
 *   type          "flux", "stable_diffusion", "sdxl", "sd3", "chroma", "wan", "ltxv", "qwen_image",
 *                 "z_image", "flux2", "lumina2", "sam3": what the encoders' outputs are for
 *   encoders      list of records: name ("clip_l", "t5xxl", "qwen3"), family ("clip", "t5",
 *                 "language_model"), model (MODEL),
 *                 tokenizer (object HEDDLE_TOKENIZER) or tokenizer_missing (the error text, shown
 *                 when a text is encoded), length (ids of a window, 0 without a limit),
 *                 least_length (ids), least_padding (ids behind those of the text, optional),
 *                 padding (id, optional), config (record, optional: what its model was built
 *                 from), layers (int, optional: how many it has, where the model has fewer),
 *                 empty_is_padding (bool, optional: texts are weighed against padding alone),
 *                 masks_padding (bool, optional: nobody sees padding, whose states are zeros),
 *                 embedding_places (list of texts, optional: where files of embeddings are).
 *                 writer (MODEL: of a language model, the one that writes texts) or
 *                 writer_missing (the error text, shown when it is to write), optional.
 *                 Optional, of language models: template (text with {} where the prompt goes), but
 *                 for prompts that begin with template_unless (text); weights (bool, absent means
 *                 true: "(a:1.2)" weighs); turn and turn_role (texts): states of tokens before the
 *                 second turn, and of that with turn_role behind it, are left out;
 *                 picture_template (template with pictures), picture_token (text: a picture stands
 *                 at each), vision (MODEL: pictures -> what stands there) or vision_missing (the
 *                 error text, shown when it is to see a picture)
 *   stop_at_layer  int, optional: -1 the last layer
 *   hooks         HOOKS, optional: those of what it encodes; clip_hooks, a record: hooks (HOOKS)
 *                 under which it encodes, scheduled (bool): by their keyframes
 *   missing       text, optional: why there are no encoders; what a node says that would encode
 * CLIP_VISION   record: model (MODEL): pictures (B, size, size, 3) -> "last_hidden", and where
 *               its settings have sees_layers (bool) "penultimate", projected_width (int)
 *               "projected", mm_width (int) "mm_projected"
 * IPADAPTER     record: model (MODEL): "seen" (B, D) or (B, S, D) -> "tokens" (B, T, C); its
 *               settings in plugins/encoders/ip_adapter.h. clip_vision (CLIP_VISION), optional
 * PHOTOMAKER    record: model (MODEL): "picture" (1, size, size, 3), "row" (1, width) of a text's
 *               states -> "fused" (1, width), what stands there instead
 * EMBEDS        tensor (n, D) or (n, S, D) f32: "seen" of n pictures
 * STYLE_MODEL   record: model (MODEL): "hidden" -> "tokens", to stand behind those of a text
 * CLIP_VISION_OUTPUT  record: last_hidden, tensor (B, tokens, width) f32; penultimate, another,
 *               and image_embeds, tensor (B, projected_width) f32, of towers that make these;
 *               mm_projected, tensor (B, tokens - 1, mm_width) f32, of towers of LLaVA: what a
 *               language model sees; hidden_20, hidden_11, hidden_2, as last_hidden, of towers of
 *               SigLIP with 20 layers or more: behind the layers so far from the end
 * VAE           record: decoder (MODEL), encoder (MODEL), each absent when the file has none;
 *               scale, shift (floats), channels, downscale (ints); pixel_channels (int), optional,
 *               3: 4 of pictures with alpha; decoder_chunks, encoder_chunks, records, optional: of
 *               autoencoders of videos, first and next, lists of MODELs: the stages that the first
 *               frame and later chunks pass (settings chunk_shapes: plugins/vae), and
 *               frame_downscale (int), frames for each later one of the latent; no_temporal_tiles
 *               (bool), optional: tiles are of all frames; decoder_pieces,
 *               encoder_pieces, lists, optional: of other such autoencoders the stages, each a
 *               record of the MODELs that take the first piece of a video, the next ones, the last
 *               one, and the only one (settings piece: plugins/vae);
 *               audio, a record, optional: of autoencoders of sound, whose decoder makes spectra
 *               (B, 2, frames, mel_bins) of latents (B, channels, frames, bands): vocoder (MODEL),
 *               which makes sound of these, sample_rate, hop_length (samples from one frame of a
 *               spectrum to the next), mel_bins and channels (ints);
 *               preview_factors, latent_means, latent_deviations as in MODEL, optional;
 *               pixel_space (bool), optional: it has no models, its latents are pictures
 *               (B, 3, H, W) from -1 to 1
 * HOOKS         list of records, each a change of weights (weight_hooks.h); none: no hooks
 *   id            text: changes of one id are the same one
 *   kind, file    texts: who reads it ("lora", "model_as_lora"), and its path
 *   strength_model, strength_clip  floats: for a diffusion model and for text encoders
 *   keyframes     HOOK_KEYFRAMES, optional: how strong when; clock, a text: hooks of one clock go
 *                 through them together
 * HOOK_KEYFRAMES  list of records, by start_percent: strength (float), start_percent (float),
 *               guarantee_steps (int)
 * SIGMAS        tensor (n) f32 in host memory, falling
 * NOISE         record: seed (int), add (bool)
 * SAMPLER       record: name, eta, noise_factor; options, optional: a record of floats, by the
 *               names that the sampler asks for (heddle_sampler_desc::options);
 *               frames_per_block (int), optional: of a video that is drawn in blocks of frames
 * GUIDER        record: model, positive, cfg; negative, absent when cfg is 1; negative_model
 *               (MODEL), optional: that the negative is asked of; mix, optional: how a
 *               third conditioning is mixed in ("perp_neg", "dual_cfg", "dual_cfg_nested"), with
 *               third (CONDITIONING) and number (float)
 *
 * Before a run, infer() names parts of these values by paths of keys and indices (abi/node.h):
 *
 * LATENT        "samples"; "noise_mask" where there is one
 * CONDITIONING  "0.cross_attn", "0.pooled_output", "1.cross_attn" ...: all entries of the list or
 *               none, so that a reader can count them; an entry without a pooled_output has none.
 *               "0.mask", and "0.area", "0.strength" ... as known parts
 * GUIDER        "model", "cfg", "mix" and "number" as known parts; "positive.0.cross_attn",
 *               "negative.0.pooled_output" ... as CONDITIONING
 * TRACKS        "track_path", "track_visibility"
 * IMAGE, MASK   "" */
#ifndef HEDDLE_DIFFUSION_VALUES_H
#define HEDDLE_DIFFUSION_VALUES_H

/* Latent constants of FLUX.1, for files that do not say. */
#define HEDDLE_FLUX_LATENT_SCALE 0.3611
#define HEDDLE_FLUX_LATENT_SHIFT 0.1159

#endif
