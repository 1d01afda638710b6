"""What heddle has of ComfyUI's package of this name: what nodes need that block or make nodes."""
