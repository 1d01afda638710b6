"""What heddle has of ComfyUI's package of this name: what nodes of images, masks, latents, texts and conditioning need."""
