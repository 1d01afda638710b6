"""What packs import of ComfyUI's module of nodes. The nodes themselves are the engine's: a pack asks for them by name (GraphBuilder)."""

MAX_RESOLUTION = 16384
NODE_CLASS_MAPPINGS = {}
NODE_DISPLAY_NAME_MAPPINGS = {}
EXTENSION_WEB_DIRS = {}
