import a_module_that_nobody_has  # noqa: F401

NODE_CLASS_MAPPINGS = {}
