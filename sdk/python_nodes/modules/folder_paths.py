"""Where files are: what ComfyUI's module of this name tells nodes, of the folders that heddle was given."""

import os
import time

from heddle_nodes.pack import FileNames

supported_pt_extensions = {".ckpt", ".pt", ".pt2", ".bin", ".pth", ".safetensors", ".pkl", ".sft", ".gguf"}
base_path = ""
models_dir = ""
folder_names_and_paths = {}  # name -> (folders, endings)
extension_mimetypes_cache = {"webp": "image", "fbx": "model"}

_input = _output = _temp = ""
_places = []
_NAMES = ("checkpoints", "configs", "loras", "vae", "text_encoders", "clip", "diffusion_models", "unet", "clip_vision",
          "style_models", "embeddings", "diffusers", "vae_approx", "controlnet", "gligen", "upscale_models", "hypernetworks",
          "photomaker", "classifiers", "model_patches", "audio_encoders")
_TWO_NAMES = {"diffusion_models": ("unet", "diffusion_models"), "text_encoders": ("text_encoders", "clip"),
              "controlnet": ("controlnet", "t2i_adapter")}


def _set_places(told):
    """`told`: models, a list of [path, folder or ""]; input, output, temp."""
    global _input, _output, _temp, _places, models_dir, base_path
    _input, _output, _temp = told["input"], told["output"], told["temp"]
    _places = told["models"]
    models_dir = next((path for path, folder in _places if not folder), "")
    base_path = os.path.dirname(models_dir)
    for name in _NAMES:
        folder_names_and_paths[name] = (_folders(name), set(supported_pt_extensions))


def map_legacy(folder_name):
    return {"unet": "diffusion_models", "clip": "text_encoders"}.get(folder_name, folder_name)


def _folders(name):
    name, found = map_legacy(name), []
    for path, folder in _places:
        if folder:
            found += [path] if map_legacy(folder) == name else []
        else:
            found += [os.path.join(path, one) for one in _TWO_NAMES.get(name, (name,))]
    return found


def get_input_directory():
    return _input


def get_output_directory():
    return _output


def get_temp_directory():
    return _temp


def get_user_directory():
    return os.path.join(os.path.dirname(_output), "user")


def get_directory_by_type(type_name):
    return {"input": _input, "output": _output, "temp": _temp}.get(type_name)


def get_folder_paths(folder_name):
    name = map_legacy(folder_name)
    known = folder_names_and_paths.get(folder_name) or folder_names_and_paths.get(name)
    return list(known[0]) if known is not None else _folders(name)


def add_model_folder_path(folder_name, full_folder_path, is_default=False):
    folders, _ = folder_names_and_paths.setdefault(map_legacy(folder_name), ([], set()))
    if full_folder_path not in folders:
        folders.insert(0 if is_default else len(folders), full_folder_path)


def recursive_search(directory, excluded_dir_names=None):
    """Paths of all files from there on, and when each folder changed."""
    files, folders = [], {}
    for place, names, here in os.walk(directory, followlinks=True):
        names[:] = sorted(n for n in names if n not in (excluded_dir_names or ()))
        folders[place] = os.path.getmtime(place)
        files += [os.path.relpath(os.path.join(place, one), directory) for one in here]
    return files, folders


def filter_files_extensions(files, extensions):
    return sorted(f for f in files if not extensions or os.path.splitext(f)[1].lower() in extensions)


def get_filename_list(folder_name):
    known = folder_names_and_paths.get(map_legacy(folder_name)) or folder_names_and_paths.get(folder_name)
    endings = known[1] if known is not None else supported_pt_extensions
    found = set()
    for folder in get_folder_paths(folder_name):
        if os.path.isdir(folder):
            found.update(filter_files_extensions(recursive_search(folder)[0], endings))
    names = FileNames(sorted(found))
    # Of a pack's own folders the engine knows nothing.
    names.folder = map_legacy(folder_name) if all(f in _folders(map_legacy(folder_name)) for f in get_folder_paths(folder_name)) else None
    return names


def get_full_path(folder_name, filename):
    """None where no folder has it. The name may not leave its folder."""
    name = os.path.relpath(os.path.join("/", filename), "/")
    for folder in get_folder_paths(folder_name):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    return None


def get_full_path_or_raise(folder_name, filename):
    path = get_full_path(folder_name, filename)
    if path is None:
        raise FileNotFoundError(f"{filename!r} is not in the folder {folder_name!r} of the models")
    return path


def annotated_filepath(name):
    """("a.png", the folder) of "a.png [output]"; None for the folder where none is named."""
    for kind in ("output", "input", "temp"):
        if name.endswith(f"[{kind}]"):
            return name[:-len(kind) - 2].rstrip(), get_directory_by_type(kind)
    return name, None


def get_annotated_filepath(name, default_dir=None):
    name, folder = annotated_filepath(name)
    return os.path.join(folder or default_dir or _input, name)


def exists_annotated_filepath(name):
    name, folder = annotated_filepath(name)
    return os.path.exists(os.path.join(folder or _input, name))


def filter_files_content_types(files, content_types):
    import mimetypes
    kinds = [(f, (mimetypes.guess_type(f)[0] or "").split("/")[0]) for f in files]
    return [f for f, kind in kinds if (kind or extension_mimetypes_cache.get(f.rsplit(".", 1)[-1])) in content_types]


def get_save_image_path(filename_prefix, output_dir, image_width=0, image_height=0):
    """(folder, name, counter, subfolder, prefix) of a new file NAME_00001_: one more than the highest that is there."""
    now = time.localtime()
    for key, value in (("width", image_width), ("height", image_height), ("year", now.tm_year), ("month", f"{now.tm_mon:02}"),
                       ("day", f"{now.tm_mday:02}"), ("hour", f"{now.tm_hour:02}"), ("minute", f"{now.tm_min:02}"),
                       ("second", f"{now.tm_sec:02}")):
        filename_prefix = filename_prefix.replace(f"%{key}%", str(value))
    subfolder, name = os.path.split(os.path.normpath(filename_prefix))
    folder = os.path.join(output_dir, subfolder)
    if os.path.commonpath((os.path.abspath(output_dir), os.path.abspath(folder))) != os.path.abspath(output_dir):
        raise ValueError(f"{filename_prefix!r} leaves the folder of outputs")
    os.makedirs(folder, exist_ok=True)
    counter = 0
    for there in os.listdir(folder):
        number = there[len(name) + 1:].split("_")[0]
        if there.startswith(name + "_") and number.isdigit():
            counter = max(counter, int(number))
    return folder, name, counter + 1, subfolder, filename_prefix
